package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// maxAgain bounds how often one action is sent again, over all runs of its turn.
const maxAgain = 100

// Whoever sends an action another time first takes the next place in the list of those who may send: <key>/again-1,
// /again-2 and so on, each created if absent; the owner of the dispatch record has place 0. So an attempt that did
// nothing can find out whether it speaks for all of them: a zombie whose connection was refused, or a repeat
// that was told 401, knows nothing of the attempt that was sent meanwhile or before.

func (r *toolRun) placeKey(place int) string {
	if place == 0 {
		return r.key
	}
	return fmt.Sprintf("%s/again-%d", r.key, place)
}

// isPlace says whether a key is that of a place after the first.
func isPlace(key string) bool {
	return strings.HasPrefix(key[strings.LastIndexByte(key, '/')+1:], "again-")
}

// again sends an idempotent action another time, at the first place that is free.
func (r *toolRun) again(standing store.Dispatch) (agent.ToolResult, error) {
	if err := r.overdue(); err != nil {
		return agent.ToolResult{}, err
	}
	for place := max(r.progress().Unsent, 1); place <= maxAgain; place++ {
		began := time.Now()
		mine := r.sending(place)
		taken, err := r.take(mine)
		switch {
		case unreadable(err):
			continue // somebody's: whoever it was may have sent
		case err != nil:
			return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "recording the dispatch", err)
		case taken.Revoked:
			return r.closed(standing)
		case taken.Token == mine.Token:
			r.place = place
			return r.resend(standing, began)
		}
	}
	return r.uncertain(standing, fmt.Sprintf("it was sent again %d times", maxAgain)), nil
}

func (r *toolRun) resend(standing store.Dispatch, began time.Time) (agent.ToolResult, error) {
	if err := r.held(began); err != nil {
		return r.unsent(standing, err)
	}
	if !r.repeatable(standing) {
		return r.unsent(standing, errors.New("the key's window is over"))
	}
	out, err := r.send(began)
	return r.conclude(standing, out, err)
}

// resume sends an action of which it is known that the attempts at the places before have done nothing, as if it
// were new: what it needs of authority, it needs now. It goes on at the next place only, because a later one would
// be behind somebody of whom nothing is known.
func (r *toolRun) resume(standing store.Dispatch, place int) (agent.ToolResult, error) {
	if place > maxAgain || r.progress().Troubles >= sendTries {
		return r.shut(standing, place, fmt.Sprintf("nothing was done in %d attempts", place))
	}
	refusal, err := r.admission()
	if err == nil && refusal == nil {
		refusal, err = r.repeated()
	}
	switch {
	case err != nil:
		return agent.ToolResult{}, err
	case refusal != nil && (ends(*refusal) || !r.askable()):
		return r.shut(standing, place, "nothing was sent: "+refusal.Note)
	case refusal != nil:
		return *refusal, nil
	}
	if err := r.overdue(); err != nil {
		return agent.ToolResult{}, err
	}
	began := time.Now()
	mine := r.sending(place)
	taken, err := r.take(mine)
	switch {
	case unreadable(err):
		return r.uncertain(standing, "the record of an attempt cannot be read"), nil
	case err != nil:
		return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "recording the dispatch", err)
	case taken.Revoked:
		return r.closed(standing)
	case taken.Token != mine.Token:
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, 0, "tool %q: another attempt is at it", r.in.Tool)
	}
	r.place, r.clear = place, place
	return r.first(mine, began)
}

// closed is for an attempt that finds the list closed: nothing was done and nothing will be sent.
func (r *toolRun) closed(standing store.Dispatch) (agent.ToolResult, error) {
	res, err := r.outcome(r.ctx, r.snap, r.space, standing, r.result(agent.StateUncertain))
	if res != nil || err != nil {
		return value(res), err
	}
	return withdrawn(r.result(agent.StateCancelled)), nil
}

// shut ends an action of which the attempts at the places before have done nothing, so that nobody sends it later.
func (r *toolRun) shut(standing store.Dispatch, place int, why string) (agent.ToolResult, error) {
	end := claimOf(r.placeKey(place), r.attempt, r.spec.Class, r.in.Action)
	taken, err := r.take(end)
	switch {
	case unreadable(err) || err == nil && taken.Token != end.Token && !taken.Revoked:
		return r.uncertain(standing, "another attempt may have sent it"), nil
	case err != nil:
		return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "closing the dispatch", err)
	}
	res, _ := r.told(tool.Result{}, errors.New(why))
	res.Attempt = max(standing.Attempt, 1)
	return r.record(res), nil
}

// nothingDone is the end of an action of which this attempt has done nothing: definite if no other attempt
// can have done anything, and then recorded so that nobody sends it later. Otherwise it is uncertain.
func (r *toolRun) nothingDone(d store.Dispatch, why error) (agent.ToolResult, error) {
	alone := max(r.progress().Unsent, r.clear) == r.place
	if alone && r.spec.Class != agent.ClassOnce { // which is sent again only by leave of who had this place
		shut := claimOf(r.placeKey(r.place+1), r.attempt, r.spec.Class, r.in.Action)
		standing, err := r.take(shut)
		if err != nil && !unreadable(err) {
			r.note(r.count)
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

// take creates a record of the list, or returns the one that stands there.
func (r *toolRun) take(d store.Dispatch) (store.Dispatch, error) {
	return persist(r.ctx, func(ctx context.Context) (store.Dispatch, error) {
		// Trying again with the same token finds out whether a create that failed had succeeded.
		_, standing, err := r.space.CreateDispatch(ctx, d)
		return standing, err
	})
}
