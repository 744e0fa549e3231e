package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// maxAgain bounds how often one action is sent again, over all runs of its turn.
const maxAgain = 100

// again sends an idempotent action another time. Before it does, it takes the next place in the list of those
// who may send: <key>/again-1, /again-2 and so on, each created if absent; the owner of the dispatch record has
// place 0. So an attempt that did nothing can find out whether it speaks for all of them: a zombie whose
// connection was refused, or a repeat that was told 401, knows nothing of the attempt that was sent meanwhile
// or before.
func (r *toolRun) again(standing store.Dispatch) (agent.ToolResult, error) {
	for r.place = max(r.progress().Unsent, 1); r.place <= maxAgain; r.place++ {
		mine := r.claim(r.place)
		mine.Verdict, mine.Revoked = r.verdict, false
		taken, err := r.take(mine)
		switch {
		case unreadable(err):
			continue // somebody's: whoever it was may have sent
		case err != nil:
			return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "recording the dispatch", err)
		case taken.Revoked:
			return r.closed(standing)
		case taken.Token == mine.Token:
			return r.resend(standing)
		}
	}
	return r.uncertain(standing, fmt.Sprintf("it was sent again %d times", maxAgain)), nil
}

func (r *toolRun) resend(standing store.Dispatch) (agent.ToolResult, error) {
	switch { // taking the place may have been slow
	case r.ctx.Err() != nil:
		return r.unsent(standing, errors.New("the attempt was cancelled before it could send"))
	case !r.repeatable(standing):
		return r.unsent(standing, errors.New("the key's window is over"))
	}
	out, err := r.send()
	return r.conclude(standing, out, err)
}

// closed is for an attempt that finds the list closed: nothing was done and nothing will be sent.
func (r *toolRun) closed(standing store.Dispatch) (agent.ToolResult, error) {
	res, err := r.outcome(r.ctx, r.snap, r.space, standing, r.result(agent.StateUncertain))
	if res != nil || err != nil {
		return value(res), err
	}
	return withdrawn(r.result(agent.StateCancelled)), nil
}

// nothingDone is the end of an action of which this attempt has done nothing: definite if no other attempt
// can have done anything, and then recorded so that nobody sends it later. Otherwise it is uncertain.
func (r *toolRun) nothingDone(d store.Dispatch, why error) (agent.ToolResult, error) {
	alone := r.progress().Unsent == r.place
	if alone && r.spec.Class == agent.ClassIdempotent { // nothing else is ever sent again
		shut := r.claim(r.place + 1)
		standing, err := r.take(shut)
		if err != nil && !unreadable(err) {
			r.note(func(p *Progress) { p.Unsent = r.place + 1 })
			return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "closing the dispatch", err)
		}
		alone = err == nil && standing.Token == shut.Token
	}
	if !alone {
		return r.uncertain(d, "another attempt may have sent it; this one: "+why.Error()), nil
	}
	res, _ := r.told(tool.Result{}, why) // an error that cannot be stored has happened all the same
	return r.record(res), nil
}

// claim returns a record that closes the list at a place.
func (r *toolRun) claim(place int) store.Dispatch {
	return claimOf(fmt.Sprintf("%s/again-%d", r.key, place), r.attempt, r.spec.Class, r.in.Action)
}

// take creates a record of the list, or returns the one that stands there.
func (r *toolRun) take(d store.Dispatch) (store.Dispatch, error) {
	return persist(r.ctx, func(ctx context.Context) (store.Dispatch, error) {
		_, standing, err := r.space.CreateDispatch(ctx, d)
		return standing, err
	})
}
