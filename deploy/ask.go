package deploy

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
)

const (
	// outage is how long a server may be silent or busy before all is given up: one that is restarted is back by
	// then.
	outage       = 30 * time.Second
	askTimeout   = 20 * time.Second
	retryAtFirst = 100 * time.Millisecond
	retryAtMost  = 3 * time.Second
)

// ask asks the server, again while it may answer later, and for patience at most ([outage] for 0). The last error is
// then the answer.
func ask[R any](ctx context.Context, patience time.Duration, request func(context.Context) (R, error)) (R, error) {
	if patience == 0 {
		patience = outage
	}
	begun := time.Now()
	for delay := retryAtFirst; ; delay = min(2*delay, retryAtMost) {
		within, cancel := context.WithTimeout(ctx, askTimeout)
		r, err := request(within)
		cancel()
		if err == nil || !isOutage(err) || ctx.Err() != nil || time.Since(begun)+delay > patience {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(delay):
		}
	}
}

// isOutage says whether the server may answer the same request later.
func isOutage(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		busy        *serviceerror.ResourceExhausted
		internal    *serviceerror.Internal
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &busy) || errors.As(err, &internal) ||
		errors.Is(err, context.DeadlineExceeded)
}

func isNotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// isFinal says whether asking again cannot help.
func isFinal(err error) bool {
	var (
		denied  *serviceerror.PermissionDenied
		invalid *serviceerror.InvalidArgument
		unknown *serviceerror.Unimplemented
		gone    *serviceerror.NamespaceNotFound
	)
	return errors.As(err, &denied) || errors.As(err, &invalid) || errors.As(err, &unknown) || errors.As(err, &gone)
}
