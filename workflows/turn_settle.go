package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/effect"
)

// checkSettlement is the cheap half of looking into a word on an effect.
func (t *turn) checkSettlement(payload []byte) (agent.Settlement, bool) {
	s, err := approval.ParseSettlement(payload)
	var why string
	switch e, ok := t.st.Ledger.Get(s.Key); {
	case err != nil:
		why = err.Error()
	case !ok:
		why = "there is no such effect in this turn"
	default:
		why = unsettleable(e, s)
	}
	t.told = t.told || err == nil && s.Outcome == "" && s.Key == t.sending
	if why == "" && len(t.st.Settlements) >= maxInbox {
		why = "too many settlements wait to be looked into; send it again in a moment"
	}
	if why != "" {
		t.refuseSettlement(s, why)
	}
	return s, why == "" && t.looks.worth(t.st.Settlements, s)
}

// maxLooks bounds how often in one run the records or a destination are asked because of a key alone: anybody can send
// one, a late attempt sends one once, and each look costs an activity of which a run can carry some thousands.
const maxLooks = 200

// looks counts them.
type looks int

// worth says whether a settlement that may count is to be looked into. A key that waits already says all that
// another would.
func (n *looks) worth(waiting []letter[agent.Settlement], s agent.Settlement) bool {
	if s.Outcome != "" {
		return true
	}
	for _, l := range waiting {
		if l.Body.Key == s.Key && l.Body.Outcome == "" {
			return false
		}
	}
	*n++
	return *n <= maxLooks
}

// unsettleable says why nobody can settle an effect, "" if somebody can.
func unsettleable(e agent.Effect, s agent.Settlement) string {
	switch {
	case s.Outcome == "" && (e.State == agent.StateUncertain || !effect.Open(e.State)):
		return "" // a late attempt's word, which may also contradict an end
	case effect.Unresolved(e):
		return ""
	case effect.Open(e.State):
		return "it is " + string(e.State) + ": nothing is uncertain about it yet"
	}
	return "its outcome is known: " + string(e.State)
}

// refuseSettlement lists what a person is told. A worker that names a key which needs nothing is not told anything.
func (t *turn) refuseSettlement(s agent.Settlement, why string) {
	if s.Outcome == "" && s.Key != "" {
		return
	}
	t.st.RefusedSettlements, t.st.MoreSettlements = approval.Refuse(t.st.RefusedSettlements, t.st.MoreSettlements,
		refusalOf(t.root, s.Key, string(s.Outcome), s.Approver, s.Ref, why))
}

// settle looks into a word on an effect: a person's rights, or what the record or the destination says.
func (t *turn) settle(ctx workflow.Context, l letter[agent.Settlement]) {
	s := l.Body
	e, ok := t.st.Ledger.Get(s.Key)
	if !ok || unsettleable(e, s) != "" { // it was settled meanwhile
		t.refuseSettlement(s, "its outcome is known: "+string(e.State))
		return
	}
	res, err := settlement(ctx, agent.SettleInput{
		Scope: t.in.Scope, Effect: e, Settlement: s, Senders: t.st.Senders, Run: l.Run, Store: t.st.Store, Serial: t.st.Serial,
	})
	switch {
	case err != nil:
		t.refuseSettlement(s, "it could not be looked into: "+reasonOf(err).Message)
	case res.Why != "":
		t.refuseSettlement(s, res.Why)
	default:
		if err := t.settled(s.Key, res); err != nil {
			t.refuseSettlement(s, err.Error())
		}
	}
	t.publish()
}

// settlement runs the activity: a person's word is looked into on this worker, the destination is asked from any.
func settlement(ctx workflow.Context, in agent.SettleInput) (res agent.SettleResult, err error) {
	if in.Settlement.Outcome != "" {
		err = local(ctx, agent.ActivitySettle, "settle: "+in.Effect.Tool, in, &res)
		return res, err
	}
	err = bounded(ctx, agent.ActivitySettle, "settle: ask about "+in.Effect.Tool, in, &res)
	return res, err
}

// settled enters the outcome of an effect that was uncertain, and what follows from it.
func (t *turn) settled(key string, res agent.SettleResult) error {
	before, _ := t.st.Ledger.Get(key)
	t.st.Serial = max(t.st.Serial, res.Serial)
	if res.Looked {
		return t.st.Ledger.Amend(key, func(e *agent.Effect) { e.Looked = res.Result.Evidence })
	}
	if err := t.st.Ledger.Settle(key, res.Result, workflow.Now(t.root), res.By); err != nil {
		return err
	}
	if before.State != agent.StateUncertain {
		return nil // it was final, or contradicts it
	}
	if before.Undoes != "" {
		t.st.Ledger.Undone(before.Undoes, res.Result, workflow.Now(t.root), res.By)
	}
	if a := t.st.Acting; a != nil && before.Place.Step == t.st.Step && before.Undoes == "" {
		r := res.Result
		a.Results[before.Place.Call-1] = &r
	}
	return nil
}

// hold waits while the outcome of the i-th call is uncertain, if policy says so, for a person or a late attempt to
// settle it.
func (t *turn) hold(i int) *end {
	r := t.st.Acting.Results[i]
	if r == nil || !r.Hold || r.State != agent.StateUncertain || t.st.Open.Limits.Wait <= 0 {
		return nil
	}
	key := t.key(t.job(i))
	if t.st.HoldUntil.IsZero() {
		t.st.HoldUntil = workflow.Now(t.root).Add(t.st.Open.Limits.Wait.Std())
	}
	renew := false
	t.waits(+1)
	defer func() { t.waited(renew) }()
	timerCtx, stop := workflow.WithCancel(t.root)
	defer stop()
	timer := workflow.NewTimerWithOptions(timerCtx, max(t.st.HoldUntil.Sub(workflow.Now(t.root)), 0),
		workflow.TimerOptions{Summary: "wait for a word on " + t.st.Acting.Calls[i].Tool})
	known := func() bool {
		e, _ := t.st.Ledger.Get(key)
		return e.State != agent.StateUncertain
	}
	over := func() bool { return known() || timer.IsReady() }
	// An error is the turn's cancellation, which the next step sees for itself.
	_ = workflow.Await(t.ctx, func() bool { return over() || t.renews() })
	if renew = t.ctx.Err() == nil && !over(); renew {
		return &end{renew: true}
	}
	t.st.HoldUntil = time.Time{}
	if !known() {
		r.Hold = false // nobody came: the model is told that it is not known
	}
	return nil
}
