package transcript

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// copyBytes bounds how many bytes of bodies one copy holds at once. A body that is larger goes alone.
const copyBytes = 64 << 20

// Copy writes the transcript of a session up to head into another session's part of the store: every segment, and every
// body that the entries name. The chain knows no session, so the copy has the same heads and reads the same. Every
// entry is checked before anything is written; one that is lost beyond mending is an error that is
// [store.ErrDamaged] or [store.ErrAbsent], and so is a body. What can be mended is whole in the copy.
//
// Copy is idempotent. An interrupted one goes on with what is not there yet. Progress, if it is not nil, is told how many
// of all objects are there, one call at a time.
func (l *Log) Copy(ctx context.Context, from, to agent.Scope, head agent.Head, progress func(done, total int)) error {
	if err := errors.Join(check(from, head), check(to, head)); err != nil || head == (agent.Head{}) {
		return err
	}
	c, err := newReader(l.store.Space(from)).read(ctx, head)
	if err != nil {
		return err
	}
	if gaps := c.gaps(); len(gaps) > 0 {
		return fmt.Errorf("transcript of %q: %s: %w", from, gaps[0].Reason, store.ErrDamaged)
	}
	bodies, err := c.bodies()
	if err != nil {
		return err
	}
	k := &copying{log: l, from: l.store.Space(from), to: to, progress: progress, total: len(bodies) + len(c.blocks)}
	if err := k.bodies(ctx, bodies); err != nil {
		return err
	}
	return k.segments(ctx, c.blocks)
}

// bodies returns what the entries name, each once.
func (c *reading) bodies() ([]agent.Body, error) {
	var out []agent.Body
	seen := map[agent.Digest]bool{}
	note := func(b *agent.Body) {
		if b != nil && !seen[b.Digest] {
			seen[b.Digest] = true
			out = append(out, *b)
		}
	}
	for _, b := range c.blocks {
		entries, err := decodeEntries(b.line)
		if err != nil {
			return nil, fmt.Errorf("segment %q holds what this build cannot read: use a newer one: %w", b.name(), err)
		}
		for _, e := range entries {
			note(e.Body)
			for _, call := range e.Calls {
				note(call.Body)
			}
		}
	}
	return out, nil
}

// A copying is one copy under way.
type copying struct {
	log      *Log
	from     *store.Space
	to       agent.Scope
	progress func(done, total int)

	mu          sync.Mutex
	done, total int
}

func (k *copying) did() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done++
	if k.progress != nil {
		k.progress(k.done, k.total)
	}
}

// objects writes n objects of a kind, several at once, but for those that are there already: their names follow from what
// is in them, and none is half written.
func (k *copying) objects(ctx context.Context, kind store.Kind, n int, name func(i int) string, write func(ctx context.Context, i int) error) error {
	names, err := k.target().List(ctx, kind, "")
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !there[name(i)] {
				if err := write(ctx, i); err != nil {
					return err
				}
			}
			k.did()
			return nil
		})
	}
	return g.Wait()
}

func (k *copying) target() *store.Space { return k.from.Of(k.to) }

func (k *copying) bodies(ctx context.Context, bodies []agent.Body) error {
	room := semaphore.NewWeighted(copyBytes)
	name := func(i int) string { return string(bodies[i].Digest) }
	return k.objects(ctx, store.KindBodies, len(bodies), name, func(ctx context.Context, i int) error {
		size := min(max(bodies[i].Size, 1), copyBytes)
		if err := room.Acquire(ctx, size); err != nil {
			return err
		}
		defer room.Release(size)
		raw, err := k.from.Body(ctx, bodies[i])
		if err == nil {
			_, err = k.target().PutBody(ctx, raw, bodies[i].Type)
		}
		return err
	})
}

// segments encodes each segment anew from the entries, which gives the bytes that it was written with when nothing was
// lost then.
func (k *copying) segments(ctx context.Context, blocks []block) error {
	name := func(i int) string { return blocks[i].name() }
	return k.objects(ctx, store.KindSegments, len(blocks), name, func(ctx context.Context, i int) error {
		object, err := encodeSegment(blocks[:i], blocks[i])
		if err != nil {
			return err
		}
		return k.log.write(ctx, k.to, blocks[i].link, object)
	})
}
