package workflows

import (
	"github.com/holdfast-run/holdfast/agent"
)

// upgrade asks people whether the turn takes another definition of its agent than the session's last one, when the
// opening offered one. Only an approval takes it; whatever else becomes of the request, the turn goes on with what it
// has. Nothing was said to a model yet, so that nothing of the one definition is mixed with the other.
func (t *turn) upgrade() *end {
	if t.st.Open.Offer == nil { // as in every run that is not told its session's definition
		return nil
	}
	j := job{place: agent.Place{Turn: t.in.Turn, Call: 1}, call: &t.st.Open.Offer.Call, ask: &t.st.UpgradeAsk}
	if *j.ask == "" {
		if err := t.ask(j, 1, ""); err != nil {
			t.log.Warn("Nobody is asked about another definition of the agent.", "error", err)
			t.st.Open.Offer = nil
			return nil
		}
	}
	a, ended := t.answered(t.ctx, j)
	if !ended {
		return &end{renew: true}
	}
	if a.Outcome == agent.OutcomeApproved {
		return t.take(a)
	}
	t.st.Open.Offer = nil
	return nil
}

// take opens the turn anew, with the definition that was approved. Whether it still is approved, the activity looks
// at again.
func (t *turn) take(a agent.Approval) *end {
	var opened agent.OpenResult
	err := local(t.ctx, agent.ActivityOpen, "open: agent "+t.in.Agent+", upgraded", agent.OpenInput{
		Scope: t.in.Scope, Turn: t.in.Turn, Agent: t.in.Agent, Serial: t.st.Serial, Store: t.st.Store,
		Definition: t.in.Definition, Take: t.st.Open.Offer.To, Grant: grantOf(a), Senders: t.st.Senders,
	}, &opened)
	if err != nil {
		return failed(t.reason(err))
	}
	opened.Entry, opened.Sender, opened.Offer = t.st.Open.Entry, t.st.Open.Sender, nil
	t.st.Open = opened
	t.st.Store, t.st.Serial = opened.Store, max(t.st.Serial, opened.Serial)
	return nil
}
