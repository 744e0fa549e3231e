package activities

import (
	"errors"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// adopt returns a recorded answer. What the calls are is taken from the record to the byte; what may be
// done about them is decided as things stand now.
func (r *modelRun) adopt(rec store.ModelRecord) (agent.ModelResult, error) {
	res := rec.Result
	calls := make([]agent.Call, len(res.Calls))
	for i, c := range res.Calls {
		if calls[i] = c; c.Args != "" { // what could not be read as arguments cannot be decided on either
			var err error
			if calls[i], err = r.decideAgain(c, i+1); err != nil {
				return agent.ModelResult{}, err
			}
		}
	}
	r.desk.inform(r.ctx, r.claims(r.in.Scope, r.in.Root), calls)
	res.Calls, res.Adopted, res.Serial = told(calls), true, r.snap.newer(r.in.Serial)
	return res, nil
}

// decideAgain decides on a call of an answer that was accepted before. A run that was reset adopts it too, and
// then the call may have been sent: decided otherwise today, because its tool or the policy has changed, it
// would be sent a second time under another key, or be called not run, or wait for a person who cannot undo it.
// So its first key is looked at first. If the call has a dispatch record it stays what it was, and its tool
// activity finds out what became of it.
func (r *modelRun) decideAgain(c agent.Call, n int) (agent.Call, error) {
	again := r.desk.decide(agent.Call{ID: c.ID, Tool: c.Tool, Args: c.Args}, n)
	same := again.Trouble == "" && again.Action == c.Action
	if c.Class == agent.ClassRead || c.Action == "" || same && again.Verdict.Decision == agent.DecisionAllow {
		return again, nil
	}
	key := agent.ActionKey(r.in.Scope, agent.Place{Turn: r.in.Turn, Step: r.in.Step, Call: n}, c.Action)
	standing, err := r.hold(key, c, same || c.Trouble != "")
	switch {
	case unreadable(err), err == nil && !standing.Revoked:
		return r.sent(c), nil
	case err != nil && !errors.Is(err, store.ErrAbsent):
		return c, r.snap.storeTrouble(r.ctx, "looking for the dispatch of "+key, err)
	}
	return again, nil
}

// hold returns the dispatch record of a key. One that nothing is to be sent under any more is claimed, so that a zombie
// of the attempt that decided otherwise does not; one that may still be wanted, after an approval or under
// another policy, is only read.
func (r *modelRun) hold(key string, c agent.Call, wanted bool) (store.Dispatch, error) {
	if wanted {
		return r.space.Dispatch(r.ctx, key)
	}
	_, standing, err := r.space.CreateDispatch(r.ctx, claimOf(key, r.attempt, c.Class, c.Action))
	return standing, err
}

// ruleSent is the rule of a call that needs no decision any more: what may have been sent is found out about,
// whatever authority says now.
const ruleSent = "already-sent"

// sent returns a call that may have been sent as one that goes to its tool activity at once.
func (r *modelRun) sent(c agent.Call) agent.Call {
	if c.Trouble == "" && c.Verdict.Decision == agent.DecisionAllow {
		return c
	}
	c.Trouble, c.Terms = "", nil
	c.Verdict = agent.Verdict{Decision: agent.DecisionAllow, Rule: ruleSent, Policy: r.snap.Policy.Version().Short()}
	return c
}
