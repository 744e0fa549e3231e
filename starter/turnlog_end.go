package starter

import (
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// marker reads the results of local activities.
func (t *turnLog) marker(ev *historypb.HistoryEvent) []event {
	a := ev.GetMarkerRecordedEventAttributes()
	t.numbered(a)
	switch t.localActivity(a) {
	case agent.ActivityOpen:
		return t.open(ev)
	case agent.ActivityJudge:
		return t.judged(ev)
	case agent.ActivitySettle:
		return t.settled(ev)
	case agent.ActivityPlan:
		return t.planned(ev)
	}
	return nil
}

// open reads what the turn took over from the configuration, and whether people are asked for another definition first.
func (t *turnLog) open(ev *historypb.HistoryEvent) []event {
	var r agent.OpenResult
	if t.first(ev.GetMarkerRecordedEventAttributes().GetDetails()["result"], &r) != nil || r.Model == "" {
		return nil
	}
	before := agent.Digest("")
	if t.input != nil {
		before = t.input.Definition
	}
	t.opened = &r
	bs := t.seen.opened(before, &r)
	t.boundaries = append(t.boundaries, bs...)
	out := t.told(bs)
	if o := r.Offer; o != nil {
		p := agent.Place{Turn: t.turn, Call: 1}
		out = append(out, t.requested(agent.ActionKey(t.scope(), p, o.Call.Action), p, o.Call, 1, ""))
	}
	return out
}

// attributes reads what the turn shows to lists: that it waits, and for what.
func (t *turnLog) attributes(ev *historypb.HistoryEvent) []event {
	fields := ev.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
	before := t.attention
	if p, ok := fields[agent.AttributeAttention]; ok {
		t.attention = t.text(p)
	}
	var out []event
	switch status := agent.Status(t.text(fields[agent.AttributeStatus])); {
	case status == agent.StatusWaiting && !t.waiting:
		t.waiting = true
		out = append(out, event{Type: evTurnWaiting, Text: "waiting for a person" + waitsOn(t.attention), Note: t.attention, Status: status})
	case status == agent.StatusRunning && t.waiting:
		t.waiting = false
		out = append(out, event{Type: evTurnResumed, Text: "goes on", Status: status})
	}
	if t.attention == agent.AttentionBudget && before != t.attention && t.waiting {
		out = append(out, event{
			Type: evBudget, Command: extendCommand(t.scope().Session, ""),
			Text: "the budget is used up; give it more with: " + line(extendCommand(t.scope().Session, ""), 120) +
				", or what else it lacks: --tokens, --cost, --effects, --time",
		})
	}
	return out
}

// waitsOn says what kind of word a turn waits for.
func waitsOn(attention string) string {
	switch attention {
	case agent.AttentionApproval:
		return " to approve or decline"
	case agent.AttentionUncertain:
		return " to settle an effect whose outcome is uncertain"
	case agent.AttentionBudget:
		return " to extend its budget"
	}
	return ""
}

func (t *turnLog) signalled(ev *historypb.HistoryEvent) []event {
	a := ev.GetWorkflowExecutionSignaledEventAttributes()
	e := event{Type: evTurnSignal}
	switch a.GetSignalName() {
	case agent.SignalCancel:
		var c agent.Cancel
		e.Text = "asked to cancel"
		if t.first(a.GetInput(), &c) == nil {
			e.Text += by(c.From) + because(c.Reason)
		}
	case agent.SignalExtend:
		var x agent.Extend
		e.Text = "given more"
		if t.first(a.GetInput(), &x) == nil {
			e.Text = "given" + extension(x) + by(x.From)
		}
	case agent.SignalSteer:
		var s agent.Steering
		e.Text = "told"
		if err := t.first(a.GetInput(), &s); err != nil {
			e.Text += " " + shown(err)
		} else {
			e.Text += fmt.Sprintf(" %q", line(s.Message.Text, lineLimit)) + by(s.Message.From)
		}
	case agent.SignalApproval:
		return []event{t.decisionArrived(ev)}
	case agent.SignalSettle:
		return []event{t.settlementArrived(ev)}
	default:
		e.Text = "signal " + line(a.GetSignalName(), 64)
	}
	return []event{e}
}

func by(from string) string {
	if from == "" {
		return ""
	}
	return " by " + line(from, 64)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + line(reason, lineLimit)
}

func extension(x agent.Extend) string {
	var more []string
	if x.Steps > 0 {
		more = append(more, count(x.Steps, "step"))
	}
	if x.Tokens > 0 {
		more = append(more, fmt.Sprintf("%d tokens", x.Tokens))
	}
	if x.Micros > 0 {
		more = append(more, money(x.Micros))
	}
	if x.Effects > 0 {
		more = append(more, count(x.Effects, "effect"))
	}
	if x.Time > 0 {
		more = append(more, x.Time.String())
	}
	if len(more) == 0 {
		return " nothing"
	}
	return " " + strings.Join(more, " and ") + " more"
}

// decisionArrived reads a decision that nobody has looked into yet. What a cheap check refuses at once leaves no
// further trace in history; the query "approvals" lists it.
func (t *turnLog) decisionArrived(ev *historypb.HistoryEvent) event {
	e := event{Type: evApprovalArrived, Text: "a decision arrived"}
	var d agent.ApprovalDecision
	if err := t.first(ev.GetWorkflowExecutionSignaledEventAttributes().GetInput(), &d); err != nil {
		e.Text += " " + shown(err)
		return e
	}
	e.Approval, e.Digest, e.Decision, e.By = d.ID, d.Digest, d.Choice, d.Approver
	e.Text += by(d.Approver) + ": " + line(string(d.Choice), 32) + because(d.ID)
	return e
}

func (t *turnLog) settlementArrived(ev *historypb.HistoryEvent) event {
	e := event{Type: evTurnSignal, Text: "a word on an effect arrived"}
	var s agent.Settlement
	if err := t.first(ev.GetWorkflowExecutionSignaledEventAttributes().GetInput(), &s); err != nil {
		e.Text += " " + shown(err)
		return e
	}
	// Of an effect that is not in doubt the workflow refuses it at once, without an activity.
	if known := t.effect(s.Key); s.Outcome != "" && known != nil && effect.Unresolved(*known) && len(t.letters) < agent.MaxRefusals {
		t.letters = append(t.letters, s)
	}
	e.Key, e.By = s.Key, s.Approver
	e.Text += by(s.Approver) + ": " + line(string(s.Outcome)+" "+s.Key, 240)
	return e
}

// closed reads an event that ends a run.
func (t *turnLog) closed(ev *historypb.HistoryEvent) ([]event, bool) {
	switch ev.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		t.next = ev.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		return nil, true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		a := ev.GetWorkflowExecutionCompletedEventAttributes()
		t.next = a.GetNewExecutionRunId()
		return t.end(t.completed(a.GetResult())), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		a := ev.GetWorkflowExecutionFailedEventAttributes()
		t.next = a.GetNewExecutionRunId()
		f := t.failure(a.GetFailure())
		status := agent.StatusFailed
		switch {
		case f.result != nil && f.result.Status != agent.StatusDone:
			status = f.result.Status
		case f.kind == agent.ErrCancelled:
			status = agent.StatusCancelled
		case f.kind == agent.ErrBudget:
			status = agent.StatusBudget
		}
		return t.end(status, f.result, &agent.Reason{Type: f.kind, Message: f.message}), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		r := t.turnResult(ev.GetWorkflowExecutionCanceledEventAttributes().GetDetails())
		return t.end(agent.StatusCancelled, r, &agent.Reason{Type: agent.ErrCancelled, Message: "cancelled"}), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		a := ev.GetWorkflowExecutionTerminatedEventAttributes()
		return t.end(agent.StatusFailed, nil, &agent.Reason{Type: agent.ErrTerminated, Message: "terminated" + because(a.GetReason())}), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		t.next = ev.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId()
		return t.end(agent.StatusFailed, nil, &agent.Reason{Type: agent.ErrTerminated, Message: "the workflow timed out"}), true
	}
	return nil, false
}

func (t *turnLog) completed(ps *commonpb.Payloads) (agent.Status, *agent.TurnResult, *agent.Reason) {
	var r agent.TurnResult
	err := t.first(ps, &r)
	switch {
	case err == nil && r.Status.Final():
		return r.Status, &r, r.Reason
	case errors.Is(err, errStored):
		return agent.StatusDone, nil, nil
	case err == nil:
		err = fmt.Errorf("status %q", line(string(r.Status), 32))
	}
	return agent.StatusFailed, nil, &agent.Reason{Type: agent.ErrInternal, Message: "the turn's result " + shown(err)}
}

// unresolved counts the effects that somebody has to look at: the result of a compensation lists what it undid, too.
func unresolved(effects []agent.Effect) int {
	n := 0
	for _, e := range effects {
		if effect.Unresolved(e) {
			n++
		}
	}
	return n
}

func (t *turnLog) end(status agent.Status, r *agent.TurnResult, reason *agent.Reason) []event {
	t.ended, t.waiting, t.status, t.reason = true, false, status, reason
	t.withdrawn()
	if r != nil {
		t.result, t.head = r, r.Head
		if r.Reason != nil {
			t.reason = r.Reason
		}
	}
	if status == agent.StatusDone {
		t.reason = nil
	}
	e := event{Type: evTurnEnded, Status: status, Reason: t.reason, Text: fmt.Sprintf("%s: %s", t.name(), status)}
	if t.reason != nil {
		e.Text += ": " + line(t.reason.Message, 2*lineLimit)
	}
	if r != nil {
		e.Usage = &r.Usage
		if n := unresolved(r.Effects); n > 0 {
			e.Text += fmt.Sprintf("; %s not resolved", count(n, "effect"))
		}
	}
	return []event{e}
}
