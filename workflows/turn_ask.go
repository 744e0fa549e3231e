package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// ask opens a request for a job, as the n-th for its action. Why says what led to it when it is not the first.
// The error says why there can be none.
func (t *turn) ask(j job, n int, why string) error {
	r := approval.NewRequest(t.key(j), n, j.place, *j.call, workflow.Now(t.root), why)
	if err := t.st.Requests.Open(agent.Approval{ApprovalRequest: r}); err != nil {
		return err
	}
	*j.ask = r.ID
	if j.call.Class != agent.ClassRead {
		t.move(r.Key, agent.StateAwaitingApproval, "", why, func(e *agent.Effect) {
			e.Approval, e.Verdict = r.ID, j.call.Verdict
		})
	}
	t.expire(r)
	t.takeEarly(r.ID)
	return nil
}

// expire ends a request when its time is over. A decision that came in time counts even if it is looked into
// afterwards: whatever came before the timer in history has its turn first.
func (t *turn) expire(r agent.ApprovalRequest) {
	workflow.Go(t.root, func(ctx workflow.Context) {
		// Compensations wait for people when the turn has been cancelled.
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		timerCtx, stop := workflow.WithCancel(ctx)
		defer stop()
		left := max(r.ExpiresAt.Sub(workflow.Now(ctx)), 0)
		timer := workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: agent.ExpirySummary + r.Tool})
		over := func() bool { return t.outcome(r.ID) != agent.OutcomePending || t.leaving }
		if workflow.Await(ctx, func() bool { return timer.IsReady() || over() }) != nil || over() {
			return
		}
		about := func(d agent.ApprovalDecision) bool { return d.ID == r.ID }
		if workflow.Await(ctx, func() bool { return over() || !t.decisions.pending(about) }) != nil || over() {
			return
		}
		t.endAsk(r.ID, agent.OutcomeExpired, agent.StateExpired, "nobody decided in time")
	})
}

func (t *turn) outcome(id string) agent.Outcome {
	a, _ := t.st.Requests.Get(id)
	return a.Outcome
}

// endAsk ends a request that waits, and its effect with it, without a person's decision.
func (t *turn) endAsk(id string, o agent.Outcome, s agent.State, note string) {
	a, ok := t.st.Requests.Get(id)
	if !ok || a.Outcome != agent.OutcomePending {
		return
	}
	t.st.Requests.End(id, o, note, workflow.Now(t.root))
	t.moveAsked(a, s, "", note)
	t.publish()
}

// withdraw ends what a request was for: the request if it waits, and an effect that was approved and not sent.
func (t *turn) withdraw(id, note string) {
	t.endAsk(id, agent.OutcomeCancelled, agent.StateCancelled, note)
	a, _ := t.st.Requests.Get(id)
	if e, ok := t.st.Ledger.Get(a.Key); ok && e.State == agent.StateAuthorized {
		t.move(a.Key, agent.StateCancelled, "", note, nil)
	}
}

// withdrawAll does that for all requests of the turn.
func (t *turn) withdrawAll(note string) {
	for _, a := range t.st.Requests.All() {
		t.withdraw(a.ID, note)
	}
}

// moveAsked moves the effect of a request; a read has none.
func (t *turn) moveAsked(a agent.Approval, s agent.State, who, note string) {
	if a.Class != agent.ClassRead {
		t.move(a.Key, s, who, note, nil)
	}
}

// answered waits until the request that a job has then has ended. It returns false when the run is to be continued
// as new instead.
func (t *turn) answered(ctx workflow.Context, j job) (agent.Approval, bool) {
	over := func() bool { return t.outcome(*j.ask) != agent.OutcomePending } // an edit changes the id
	if !over() {
		t.waits(+1)
		if err := workflow.Await(ctx, func() bool { return over() || t.renews() }); err != nil {
			t.endAsk(*j.ask, agent.OutcomeCancelled, agent.StateCancelled, "the turn was cancelled")
		}
		t.waited(!over())
	}
	a, _ := t.st.Requests.Get(*j.ask)
	return a, over()
}

// unanswered is what the model is told about a request that did not end as approved.
func unanswered(a agent.Approval) agent.ToolResult {
	res := agent.ToolResult{Note: a.Note}
	switch a.Outcome {
	case agent.OutcomeDeclined:
		res.State = agent.StateDeclined
		res.Text = "not run: " + a.Note + ". Do not ask for the same again unless the user wants something else."
	case agent.OutcomeExpired:
		res.State = agent.StateExpired
		res.Text = fmt.Sprintf("not run: it needed an approval and nobody decided by %s. Nobody has said no; tell the user.",
			a.ExpiresAt.UTC().Format("2006-01-02 15:04 MST"))
	default:
		res.State = agent.StateCancelled
		res.Text = "not run: the request for its approval has ended (" + a.Note + ")"
	}
	return res
}

// grantOf is an approval as the tool activity gets it.
func grantOf(a agent.Approval) *agent.Grant {
	return &agent.Grant{
		ID: a.ID, Action: a.Action, Proposed: a.Proposed, Requested: a.RequestedAt, Expires: a.ExpiresAt,
		Escalates: a.EscalatesAt, Terms: a.Terms, Decisions: a.Decisions,
	}
}
