package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// checkDecision is the cheap half of looking into a decision: what fails here costs no activity.
func (t *turn) checkDecision(payload []byte) (agent.ApprovalDecision, bool) {
	d, err := approval.ParseDecision(payload)
	var why string
	if err != nil {
		why = err.Error()
	} else {
		why = t.unfit(d)
	}
	switch {
	case why == "" && len(t.st.Decisions) >= maxInbox:
		why = fmt.Sprintf("%d decisions wait to be looked into; send it again in a moment", maxInbox)
	case why == early && len(t.st.Early) < agent.MaxEarly:
		t.st.Early = append(t.st.Early, letter[agent.ApprovalDecision]{d, workflow.GetInfo(t.root).WorkflowExecution.RunID})
		return d, false
	}
	if why != "" {
		t.refuse(d, why)
		return d, false
	}
	return d, true
}

// early is why a decision cannot be judged yet: a reset reapplies signals ahead of the request that they answer.
const early = "there is no such request in this turn (yet)"

// unfit says why a decision cannot count, "" if it has to be looked into.
func (t *turn) unfit(d agent.ApprovalDecision) string {
	a, ok := t.st.Requests.Get(d.ID)
	switch {
	case !ok && strings.HasPrefix(d.ID, agent.TurnKeys(t.in.Scope, t.in.Turn)):
		return early
	case !ok:
		return "there is no such request in this turn"
	case a.Outcome != agent.OutcomePending:
		return "the request has ended: " + string(a.Outcome)
	case d.Digest != a.Action:
		return "its digest is not that of the action that waits: look at the request again"
	case d.Args != "" && a.Tool == agent.ToolUpgrade:
		return "there is nothing to edit in an upgrade: approve it as it is, or decline it"
	case d.Args != "" && t.st.Acting == nil:
		return "the arguments of a compensation cannot be edited"
	}
	for _, given := range a.Decisions {
		if given.Approver == d.Approver && d.Choice == agent.ChoiceApprove {
			return fmt.Sprintf("%s has approved it before", d.Approver)
		}
	}
	return ""
}

func (t *turn) refuse(d agent.ApprovalDecision, why string) {
	t.st.Requests.Refuse(refusalOf(t.root, d.ID, string(d.Choice), d.Approver, d.Ref, why))
}

// takeEarly takes up the decisions that came before their request.
func (t *turn) takeEarly(id string) {
	var left []letter[agent.ApprovalDecision]
	for _, l := range t.st.Early {
		switch {
		case l.Body.ID != id:
			left = append(left, l)
		case t.unfit(l.Body) != "":
			t.refuse(l.Body, t.unfit(l.Body))
		default:
			t.st.Decisions = append(t.st.Decisions, l)
		}
	}
	t.st.Early = left
}

// judge looks into a decision: who it is from, whether they may, and when the server had it.
func (t *turn) judge(ctx workflow.Context, l letter[agent.ApprovalDecision]) {
	d := l.Body
	if why := t.unfit(d); why != "" { // an earlier one may have ended the request
		t.refuse(d, why)
		return
	}
	a, _ := t.st.Requests.Get(d.ID)
	var res agent.JudgeResult
	err := local(ctx, agent.ActivityJudge, "decision: "+string(d.Choice)+" "+a.Tool, agent.JudgeInput{
		Scope: t.in.Scope, Request: a.ApprovalRequest, Decision: d, Given: a.Decisions, Senders: t.st.Senders,
		Definition: t.st.Open.Definition.Short(), Run: l.Run, Root: t.family(), Store: t.st.Store, Serial: t.st.Serial,
	}, &res)
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil:
		t.refuse(d, "it could not be looked into: "+reasonOf(err).Message)
		return
	}
	t.st.Serial = max(t.st.Serial, res.Serial)
	switch {
	case res.Why != "":
		t.refuse(d, res.Why)
	case t.outcome(d.ID) != agent.OutcomePending: // the turn was cancelled meanwhile
		t.refuse(d, "the request has ended: "+string(t.outcome(d.ID)))
	default:
		t.decided(ctx, a, res)
	}
	t.publish()
}

// decided enters a decision that counts.
func (t *turn) decided(ctx workflow.Context, a agent.Approval, res agent.JudgeResult) {
	d := res.Decided
	who := agent.Who(d.Approver, d.Claimed)
	switch d.Choice {
	case agent.ChoiceDecline:
		note := "declined by " + who + because(d.Reason)
		t.st.Requests.Decline(a.ID, d, note)
		t.moveAsked(a, agent.StateDeclined, who, note)
	case agent.ChoiceCancel:
		note := "withdrawn by " + who + because(d.Reason)
		t.st.Requests.Decline(a.ID, d, note)
		t.moveAsked(a, agent.StateCancelled, who, note)
	case agent.ChoiceApprove:
		if res.Edited != nil {
			t.edit(ctx, a, res)
			return
		}
		if t.st.Requests.Accept(a.ID, d, res.Quorum) {
			t.moveAsked(a, agent.StateAuthorized, who, d.Reason)
		}
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// edit replaces the action that waits by what its approver made of it: another action, with a key of its own, to
// which the approver's word is the first approval.
func (t *turn) edit(ctx workflow.Context, a agent.Approval, res agent.JudgeResult) {
	d, c := res.Decided, *res.Edited
	who := agent.Who(d.Approver, d.Claimed)
	j := t.job(a.Place.Call - 1)
	c.ID = j.call.ID
	if c.Terms == nil { // policy would allow it by itself: then it takes what the first one took
		c.Terms, c.Verdict = &a.Terms, a.Verdict
	}
	next := job{place: j.place, call: &c, ask: j.ask, voids: j.voids}
	if why := t.uneditable(ctx, a, next); why != "" {
		t.refuse(d.ApprovalDecision, why)
		return
	}
	t.st.Requests.End(a.ID, agent.OutcomeSuperseded, "edited by "+who, workflow.Now(t.root))
	t.moveAsked(a, agent.StateSuperseded, who, "edited by "+who)
	*j.call = c
	if err := t.ask(j, 1, "edited by "+who); err != nil {
		panic(err) // a request has just ended, so there is room, and its id is new
	}
	t.st.Requests.Proposed(*j.ask, a)
	if t.st.Requests.Accept(*j.ask, d, res.Quorum) {
		edited, _ := t.st.Requests.Get(*j.ask)
		t.moveAsked(edited, agent.StateAuthorized, who, "edited by "+who)
	}
}

// uneditable says why a job, whose request waits, cannot become another one, "" when that has begun.
func (t *turn) uneditable(ctx workflow.Context, a agent.Approval, next job) string {
	_, before := t.st.Requests.Get(agent.ApprovalID(t.key(next), 1))
	_, begun := t.st.Ledger.Get(t.key(next))
	switch {
	case before || begun:
		return "the edited action was asked for before"
	case next.call.Class != a.Class: // what runs the one cannot run the other
		return fmt.Sprintf("the tool %s has changed since this was asked for: decline it, so that it is asked for again", a.Tool)
	case a.Class == agent.ClassRead:
		return ""
	}
	e, _ := t.st.Ledger.Get(a.Key)
	if happened(t.reconcile(ctx, e, errors.New("it was approved before"))) { // see unsent
		return "by an earlier approval it was sent as it is, or may have been: decline it, and look at its effect"
	}
	if o := t.outcome(a.ID); o != agent.OutcomePending { // the turn was cancelled meanwhile
		return "the request has ended: " + string(o)
	}
	if err := t.begin(next); err != nil {
		return "the edited action cannot be entered: " + err.Error()
	}
	return ""
}
