package activities

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// discarded is for a turn that was reset: its history begins anew, but what the discarded run sent has happened.
// As long as the model is asked the same, the new run derives the same keys and adopts. If the agent was edited
// meanwhile, or a read answered differently, the same effect may be asked for under another key, and only its
// intent tells. It returns nil when nothing stands in the way of sending.
func (r *toolRun) discarded() (*agent.ToolResult, error) {
	if !r.in.Reset {
		return nil, nil
	}
	switch _, err := r.space.Dispatch(r.ctx, r.key); {
	case err == nil || unreadable(err):
		return nil, nil // the key itself is known: its own records decide
	case !errors.Is(err, store.ErrAbsent):
		return nil, r.snap.storeTrouble(r.ctx, "reading the dispatch of "+r.key, err)
	}
	wanted, err := intent(r.spec, r.in.Args)
	if err != nil {
		return nil, r.snap.final(agent.ErrInternal, "the arguments that were accepted have no intent: %v", err)
	}
	keys, err := r.space.List(r.ctx, store.KindDispatches, fmt.Sprintf("%s:turn-%d/", r.in.Scope, r.in.Turn))
	if err != nil {
		return nil, r.snap.storeTrouble(r.ctx, "listing the dispatch records", err)
	}
	for _, key := range keys {
		if strings.Count(key, "/") != 2 { // the rest are repeats: see toolRun.again
			continue
		}
		if res, err := r.earlier(key, wanted); res != nil || err != nil {
			return res, err
		}
	}
	return nil, nil
}

// earlier returns what stands under the key of a discarded run, if it is the effect that is wanted and may have
// happened.
func (r *toolRun) earlier(key, wanted string) (*agent.ToolResult, error) {
	d, err := r.space.Dispatch(r.ctx, key)
	switch {
	case unreadable(err):
		d = store.Dispatch{Key: key, Intent: wanted} // it may be the one
	case err != nil:
		return nil, r.snap.storeTrouble(r.ctx, "reading the dispatch of "+key, err)
	}
	if d.Revoked || d.Intent != wanted {
		return nil, nil
	}
	res, err := r.outcome(r.ctx, r.snap, r.space, d, r.result(agent.StateUncertain))
	switch {
	case err != nil:
		return nil, err
	case res == nil:
		unknown := r.uncertain(d, "it was sent before the turn was reset, under the key "+key)
		return &unknown, nil
	case res.State == agent.StateFailed:
		return nil, nil // that attempt did nothing
	}
	res.Note = joined(res.Note, "done before the turn was reset, under the key "+key)
	return res, nil
}
