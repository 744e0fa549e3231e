package activities

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
)

// findOut is for an attempt that found another's dispatch record: that one may have sent. damage is why
// the record cannot be read, if it cannot.
func (r *toolRun) findOut(standing store.Dispatch, damage error) (agent.ToolResult, error) {
	r.phase("finding out what an earlier attempt did")
	standing.Key = r.key
	res, err := r.outcome(r.ctx, r.snap, r.space, standing, r.result(agent.StateUncertain))
	if res != nil || err != nil {
		return value(res), err
	}
	switch {
	case damage != nil:
		return r.damaged(standing)
	case standing.Revoked && r.refusal != nil && ends(*r.refusal):
		return *r.refusal, nil
	case standing.Revoked:
		return withdrawn(r.result(agent.StateCancelled)), nil
	case (r.refusal == nil || r.passing) && r.repeatable(standing):
		return r.again(standing)
	}
	place, err := r.proven()
	switch {
	case err != nil:
		return agent.ToolResult{}, err
	case place > 0:
		return r.resume(standing, place)
	case r.askable():
		return r.inquire(standing, "an earlier attempt may have sent it")
	}
	return r.await(standing, "an earlier attempt may have sent it and left no outcome")
}

// damaged is for a dispatch record that cannot be read: somebody has written it, and may send for as long as
// anybody may after writing one.
func (r *toolRun) damaged(standing store.Dispatch) (agent.ToolResult, error) {
	const why = "the record of its dispatch cannot be read"
	if !r.askable() {
		return r.uncertain(standing, why), nil
	}
	standing.SendBy = r.clock().Add(r.reach())
	return r.inquire(standing, why)
}

// proven returns the first free place when it is known of every attempt before that it has sent nothing: they said
// so in their last words. It is 0 when it is not.
func (r *toolRun) proven() (int, error) {
	place := r.progress().Unsent
	if place == 0 {
		return 0, nil
	}
	switch _, err := r.space.Dispatch(r.ctx, r.placeKey(place)); {
	case errors.Is(err, store.ErrAbsent):
		return place, nil
	case err != nil && !definite(err):
		return 0, r.snap.storeTrouble(r.ctx, "reading the dispatches of "+r.key, err)
	}
	return 0, nil
}

// await gives an earlier attempt that may still be alive the time in which it could have an outcome, before
// the action is called uncertain.
func (r *toolRun) await(standing store.Dispatch, why string) (agent.ToolResult, error) {
	const first, most = 100 * time.Millisecond, 2 * time.Second
	until := standing.SendBy.Add(r.spec.Timeout - r.unheld() + doGrace + keepGrace)
	for wait := first; r.clock().Before(until); wait = min(2*wait, most) {
		if err := r.rest(wait); err != nil {
			return agent.ToolResult{}, err
		}
		// A store in trouble is asked again like one that has no record yet.
		if res, err := r.space.Result(r.ctx, r.key); err == nil && res.Tool != nil {
			return adopted(res), nil
		}
	}
	return r.uncertain(standing, why), nil
}

func (r *toolRun) uncertain(d store.Dispatch, why string) agent.ToolResult {
	if d.Attempt == 0 {
		d.Attempt = r.attempt
	}
	return r.snap.uncertain(r.result(agent.StateUncertain), d, why)
}

// uncertain makes res the result of an action that may have happened.
func (s *Snapshot) uncertain(res agent.ToolResult, d store.Dispatch, why string) agent.ToolResult {
	res.State, res.Attempt = agent.StateUncertain, max(d.Attempt, 1)
	if !d.At.IsZero() {
		res.At = d.At
	}
	res.Note = cut(s.Mask.String(why), 2*maxWords)
	res.Text = "It is not known whether this happened: " + res.Note +
		". It may have taken effect or not. Do not repeat it; tell the user that its outcome is uncertain."
	res.Hold = s.Policy.Uncertain() == policy.DoubtWait
	return res
}

// withdrawn makes res the result of an action that was never sent and never will be.
func withdrawn(res agent.ToolResult) agent.ToolResult {
	res.State, res.Attempt = agent.StateCancelled, 0
	res.Text = "not run: it was withdrawn before anything was sent"
	res.Note = "withdrawn before anything was sent"
	return res
}

// withhold makes sure that an action which is not going to be sent never will be, not by a zombie of an
// earlier attempt either, and returns unsent. If it is too late for that, what became of the action counts,
// whatever reason there was to withhold it. It reads before it claims, because most actions asked about
// have an outcome.
func (a *Activities) withhold(ctx context.Context, s *Snapshot, scope agent.Scope, claim store.Dispatch, unsent agent.ToolResult) (agent.ToolResult, error) {
	space := a.Store.Space(scope)
	if res, err := a.outcome(ctx, s, space, claim, unsent); res != nil || err != nil {
		return value(res), err
	}
	first, standing, err := space.CreateDispatch(ctx, claim)
	switch {
	case unreadable(err):
		return s.uncertain(unsent, claim, "the record of its dispatch cannot be read"), nil
	case err != nil:
		return agent.ToolResult{}, s.storeTrouble(ctx, "claiming the dispatch of "+claim.Key, err)
	case first || standing.Revoked:
		return unsent, nil
	}
	// Its outcome may have come since.
	if res, err := a.outcome(ctx, s, space, claim, unsent); res != nil || err != nil {
		return value(res), err
	}
	return s.uncertain(unsent, standing, "an attempt may have sent it and left no outcome"), nil
}

// outcome returns the recorded outcome of a key, nil if there is none.
func (a *Activities) outcome(ctx context.Context, s *Snapshot, space *store.Space, claim store.Dispatch, unsent agent.ToolResult) (*agent.ToolResult, error) {
	rec, err := space.Result(ctx, claim.Key)
	switch {
	case errors.Is(err, store.ErrAbsent):
		return nil, nil
	case unreadable(err) || err == nil && rec.Tool == nil:
		res := s.uncertain(unsent, claim, "the record of its outcome cannot be read")
		return &res, nil
	case err != nil:
		return nil, s.storeTrouble(ctx, "reading the outcome of "+claim.Key, err)
	}
	res := adopted(rec)
	res.Conflict, err = contradicted(ctx, space, claim.Key, res)
	if err != nil {
		return nil, s.storeTrouble(ctx, "reading the late outcome of "+claim.Key, err)
	}
	return &res, nil
}

func value(r *agent.ToolResult) agent.ToolResult {
	if r == nil {
		return agent.ToolResult{}
	}
	return *r
}
