package starter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// requested enters what policy wants a person for. The workflow opens all requests of a step when it has the
// model's result, so the request's id follows from the result alone.
func (t *turnLog) requested(key string, p agent.Place, c agent.Call, ask int, why string) event {
	a := &agent.Approval{Outcome: agent.OutcomePending, ApprovalRequest: approval.NewRequest(key, ask, p, c, t.now, why)}
	t.approvals = append(t.approvals, a)
	t.askers[a.ID] = t.seen[[2]string{ofBuild, ""}]
	t.moved(key, agent.StateAwaitingApproval, "", why)
	if e := t.effect(key); e != nil {
		e.Approval, e.Verdict = a.ID, c.Verdict
	}
	e := t.approvalEvent(evApprovalRequested, a)
	e.Expires, e.Command, e.Note, e.Verdict = a.ExpiresAt, approveCommand(a.ID), why, &a.Verdict
	what := "tool " + c.Tool + " " + c.Args + " waits for approval"
	if name, _ := upgradeOf(c.Tool, c.Args); name != "" {
		what = "a word is wanted on " + actionText(c.Tool, c.Args)
	}
	e.Text = fmt.Sprintf("%s, rule %s%s", line(what, lineLimit+len("tool  waits for approval")), line(c.Verdict.Rule, 64), because(why))
	return e
}

func approveCommand(id string) string { return "holdfast approve " + quoted(id) }

// quoted is an argument for a shell. An id that no worker of ours made up must not end its quotes.
func quoted(s string) string { return "'" + strings.ReplaceAll(line(s, 240), "'", `'\''`) + "'" }

func (t *turnLog) approvalEvent(kind string, a *agent.Approval) event {
	return event{
		Type: kind, Step: a.Place.Step, Call: a.Place.Call, Tool: a.Tool, Args: a.Args, Key: a.Key,
		Approval: a.ID, Digest: a.Action,
	}
}

func (t *turnLog) approval(id string) *agent.Approval {
	for i := len(t.approvals) - 1; i >= 0; i-- {
		if t.approvals[i].ID == id {
			return t.approvals[i]
		}
	}
	return nil
}

// waitingFor returns the requests that wait, as far as the history has them.
func (t *turnLog) waitingFor() []agent.Approval {
	var out []agent.Approval
	for _, a := range t.approvals {
		if a.Outcome == agent.OutcomePending && !t.ended {
			out = append(out, *a)
		}
	}
	return out
}

// judged reads the word of the local activity that looked into a decision.
func (t *turnLog) judged(ev *historypb.HistoryEvent) []event {
	var r agent.JudgeResult
	if err := t.first(ev.GetMarkerRecordedEventAttributes().GetDetails()["result"], &r); err != nil {
		return []event{{Type: evApprovalRefused, Text: "a decision could not be looked into " + shown(err)}}
	}
	d := r.Decided
	a := t.approval(d.ID)
	if a == nil {
		a = &agent.Approval{ApprovalRequest: agent.ApprovalRequest{ID: d.ID, Action: d.Digest}}
	}
	e := t.approvalEvent(evApprovalDecided, a)
	e.Decision, e.By, e.Note = d.Choice, agent.Who(d.Approver, d.Claimed), d.Reason
	if r.Why != "" {
		e.Type, e.Note = evApprovalRefused, r.Why
		e.Text = strings.TrimSpace("a decision"+by(d.Approver)) + " does not count: " + line(r.Why, 2*lineLimit)
		return []event{e}
	}
	e.Text = fmt.Sprintf("%s by %s%s", choiceText(d.Choice), decidedBy(d), because(d.Reason)) + ofAction(a)
	out := []event{e}
	switch d.Choice {
	case agent.ChoiceDecline:
		t.endApproval(a, agent.OutcomeDeclined, agent.StateDeclined, d)
		out = append(out, t.notApproved(a, agent.StateDeclined)...)
	case agent.ChoiceCancel:
		t.endApproval(a, agent.OutcomeCancelled, agent.StateCancelled, d)
		out = append(out, t.notApproved(a, agent.StateCancelled)...)
	case agent.ChoiceApprove:
		if r.Edited != nil {
			return append(out, t.edited(a, r)...)
		}
		out[0].Text += t.agreed(a, d, r.Quorum)
	}
	return out
}

// agreed enters an approval that counts and says how many more it takes.
func (t *turnLog) agreed(a *agent.Approval, d agent.Decided, quorum int) string {
	a.Decisions = append(a.Decisions, d)
	if quorum = max(quorum, a.Terms.Quorum, 1); len(a.Decisions) < quorum {
		return fmt.Sprintf("; %d of %d", len(a.Decisions), quorum)
	}
	a.Outcome, a.EndedAt = agent.OutcomeApproved, d.At
	t.moved(a.Key, agent.StateAuthorized, agent.Who(d.Approver, d.Claimed), d.Reason)
	return ""
}

// edited follows an approver's other arguments: the action that waited is superseded by another one.
func (t *turnLog) edited(a *agent.Approval, r agent.JudgeResult) []event {
	c, who := *r.Edited, agent.Who(r.Decided.Approver, r.Decided.Claimed)
	t.endApproval(a, agent.OutcomeSuperseded, agent.StateSuperseded, r.Decided)
	a.Decisions = nil // the word counts for what took its place
	if c.Terms == nil {
		c.Terms, c.Verdict = &a.Terms, a.Verdict
	}
	key := agent.ActionKey(t.scope(), a.Place, c.Action)
	t.wanted(key, a.Place, c)
	e := t.requested(key, a.Place, c, 1, "edited by "+who)
	next := t.approvals[len(t.approvals)-1]
	approval.Edited(&next.ApprovalRequest, a.ApprovalRequest)
	t.askers[next.ID] = cmp.Or(t.code, t.askers[next.ID]) // whose worker looked into the arguments
	if t.agreed(next, r.Decided, r.Quorum); next.Outcome == agent.OutcomePending {
		return []event{e}
	}
	e.Type, e.Command, e.Expires = evApprovalDecided, "", time.Time{}
	e.Decision, e.By = agent.ChoiceApprove, who
	e.Text = "approved as edited by " + line(who, 80) + ": " + line(c.Tool+" "+c.Args, lineLimit)
	return []event{e}
}

func (t *turnLog) endApproval(a *agent.Approval, o agent.Outcome, s agent.State, d agent.Decided) {
	if a.Outcome != agent.OutcomePending {
		return
	}
	a.Outcome, a.EndedAt, a.Note = o, d.At, d.Reason
	a.Decisions = append(a.Decisions, d)
	t.moved(a.Key, s, agent.Who(d.Approver, d.Claimed), d.Reason)
}

// granted enters that an approval was used: whatever else the history seemed to say of it.
func (t *turnLog) granted(g *agent.Grant) {
	if g == nil {
		return
	}
	if a := t.approval(g.ID); a != nil && a.Outcome != agent.OutcomeApproved {
		a.Outcome, a.Decisions = agent.OutcomeApproved, slices.Clone(g.Decisions)
	}
}

// voided follows an approval that was not valid any more when its action was to be sent.
func (t *turnLog) voided(act *activity, r *agent.ToolResult) []event {
	in := act.tool
	if in == nil || r.State != agent.StateVoid {
		return nil
	}
	e := act.toolEvent(evApprovalVoid)
	e.State, e.Note, e.Verdict = r.State, r.Note, r.Verdict
	e.Text = fmt.Sprintf("tool %s was not sent, its approval is void: %s", line(in.Tool, 64), line(r.Note, 2*lineLimit))
	ask := 1
	if in.Grant != nil {
		e.Approval = in.Grant.ID
	}
	for _, a := range t.approvals {
		if a.Key != in.Key() {
			continue
		}
		ask = a.Ask + 1
		if a.Outcome == agent.OutcomeApproved {
			a.Outcome, a.Note, a.EndedAt = agent.OutcomeVoid, r.Note, t.now
		}
	}
	out := []event{e}
	if r.Verdict != nil && r.Verdict.Decision == agent.DecisionAsk && r.Terms != nil && t.void(in.Key()) < agent.MaxVoids {
		c := agent.Call{Tool: in.Tool, Args: in.Args, Class: in.Class, Action: in.Action, Verdict: *r.Verdict, Terms: r.Terms}
		out = append(out, t.requested(in.Key(), in.Place, c, ask, r.Note))
	}
	return out
}

// void counts how often the authority of an action was void.
func (t *turnLog) void(key string) int {
	t.voids[key]++
	return t.voids[key]
}

// timerFired reads that the time of a request is over. The timer names the tool only, so it is the request of
// that tool which was to expire first.
func (t *turnLog) timerFired(ev *historypb.HistoryEvent) []event {
	tool, ok := strings.CutPrefix(t.timers[ev.GetTimerFiredEventAttributes().GetStartedEventId()], agent.ExpirySummary)
	if !ok {
		return nil
	}
	var first *agent.Approval
	for _, a := range t.approvals {
		if a.Outcome == agent.OutcomePending && a.Tool == tool && (first == nil || a.ExpiresAt.Before(first.ExpiresAt)) {
			first = a
		}
	}
	if first == nil {
		return nil
	}
	first.Outcome, first.EndedAt = agent.OutcomeExpired, t.now
	t.moved(first.Key, agent.StateExpired, "", "nobody decided in time")
	e := t.approvalEvent(evApprovalExpired, first)
	e.Text = "the time to decide is over" + ofAction(first)
	return append([]event{e}, t.notApproved(first, agent.StateExpired)...)
}

// notApproved goes on after a request that did not end as approved, if it was for a compensation.
func (t *turnLog) notApproved(a *agent.Approval, s agent.State) []event {
	if e := t.effect(a.Key); e != nil {
		return t.undone(e.Undoes, s, "")
	}
	return nil
}

func ofAction(a *agent.Approval) string {
	if a.ID == "" {
		return ""
	}
	if a.Tool == "" {
		return ": " + line(a.ID, 240)
	}
	if name, _ := upgradeOf(a.Tool, a.Args); name != "" {
		return fmt.Sprintf(": %s (%s)", line(newDefinition(name), 120), line(a.ID, 240))
	}
	return fmt.Sprintf(": tool %s (%s)", line(a.Tool, 64), line(a.ID, 240))
}

func choiceText(c agent.Choice) string {
	switch c {
	case agent.ChoiceApprove:
		return "approved"
	case agent.ChoiceDecline:
		return "declined"
	case agent.ChoiceCancel:
		return "withdrawn"
	}
	return line(string(c), 32)
}

// decidedBy is who decided and what proves it, for a line.
func decidedBy(d agent.Decided) string {
	who := line(agent.Who(d.Approver, d.Claimed), 80)
	if d.Key != "" {
		who += " (signed, " + line(d.Key, 60) + ")"
	}
	return who
}
