package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-run/holdfast/store"
)

// Bounds of writing down what the outside has already done. It was paid for or has happened, so a store in
// trouble is tried for as long as the attempt may last: the workflows give an attempt a minute beyond the
// call itself.
const (
	keepFor   = 40 * time.Second
	keepGrace = 5 * time.Second // after a cancellation
	firstWait = 100 * time.Millisecond
	longWait  = 5 * time.Second
)

// persist calls write until it succeeds, says something definite about the object, or the time is up. The
// context that write gets outlives a cancellation by a little.
func persist[T any](ctx context.Context, write func(context.Context) (T, error)) (T, error) {
	ctx, cancel := linger(ctx, keepGrace, keepFor)
	defer cancel()
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		v, err := write(ctx)
		if err == nil || definite(err) {
			return v, err
		}
		if sleep(ctx, jitter(wait)) != nil {
			return v, err
		}
	}
}

// keepResult is [store.Space.CreateResult], tried as persist does.
func keepResult(ctx context.Context, space *store.Space, rec store.Result) (first bool, standing store.Result, err error) {
	standing, err = persist(ctx, func(ctx context.Context) (store.Result, error) {
		var s store.Result
		var err error
		first, s, err = space.CreateResult(ctx, rec)
		return s, err
	})
	return first, standing, err
}

// definite says whether an error of the store is about the object and not about the store.
func definite(err error) bool {
	return errors.Is(err, store.ErrAbsent) || unreadable(err)
}

// unreadable says that there is an object and that nobody may build on what it holds.
func unreadable(err error) bool {
	return errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrSeal)
}

// linger returns a context that ends grace after ctx does, and at the latest after most.
func linger(ctx context.Context, grace, most time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// sleep waits for d or the end of ctx, whose error it returns then.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jitter returns between three quarters of d and d, so that many attempts do not come back at once.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// backoff is the wait after the n-th trouble in a row: it doubles from half a second to 30 seconds.
func backoff(n int) time.Duration {
	const first, most = 500 * time.Millisecond, 30 * time.Second
	d := most
	if n < 7 {
		d = min(first<<max(n-1, 0), most)
	}
	return jitter(d)
}

// maxRetryAfter caps what a destination may ask us to wait.
const maxRetryAfter = 2 * time.Minute

// pause is the wait before the next attempt: what the destination asked for, or else the backoff.
func pause(asked time.Duration, troubles int) time.Duration {
	if asked > 0 {
		return min(asked, maxRetryAfter)
	}
	return backoff(troubles)
}
