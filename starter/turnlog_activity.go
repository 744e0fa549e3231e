package starter

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
)

const lineLimit = 160

func (t *turnLog) activityScheduled(ev *historypb.HistoryEvent) []event {
	a := ev.GetActivityTaskScheduledEventAttributes()
	act := &activity{
		kind: a.GetActivityType().GetName(), summary: t.text(ev.GetUserMetadata().GetSummary()),
		open: true, code: t.code,
	}
	if act.kind == agent.ActivityModel || act.kind == agent.ActivityTool {
		act.crossed, t.crossed = t.crossed, nil
	}
	t.scheduled[ev.GetEventId()] = act
	t.order = append(t.order, act)
	switch act.kind {
	case agent.ActivityModel:
		var in agent.ModelInput
		if err := t.first(a.GetInput(), &in); err != nil {
			return []event{{Type: evModelAsked, Text: "asking the model " + shown(err)}}
		}
		act.model = &in
		return []event{{
			Type: evModelAsked, Step: in.Step, Model: t.modelName(),
			Text: fmt.Sprintf("step %d: asking %s", in.Step, line(t.modelName(), 64)),
		}}
	case agent.ActivityTool:
		var in agent.ToolInput
		if err := t.first(a.GetInput(), &in); err != nil {
			return []event{{Type: evToolStarted, Text: act.name() + " " + shown(err)}}
		}
		act.tool = &in
		t.sent(&in)
		e := act.toolEvent(evToolStarted)
		e.Text = act.name()
		return []event{e}
	case agent.ActivitySettle:
		var in agent.SettleInput
		if t.first(a.GetInput(), &in) == nil {
			act.settle = &in
		}
	case agent.ActivityReconcile:
		var in agent.ReconcileInput
		if t.first(a.GetInput(), &in) == nil {
			act.ask = &in
		}
	}
	return []event{{Type: evOther, Text: line(act.name(), lineLimit)}}
}

// modelName is the configuration's name of the model, if the turn's opening could be read.
func (t *turnLog) modelName() string {
	if t.opened != nil && t.opened.Model != "" {
		return t.opened.Model
	}
	return "the model"
}

// name is the activity for a line: "tool refund order 42", or the tool with its arguments.
func (a *activity) name() string {
	switch {
	case a.tool != nil && a.tool.Undoes != "":
		return "compensation: tool " + line(a.tool.Tool+" "+a.tool.Args, lineLimit)
	case a.kind == agent.ActivityTool && a.summary != "" && a.summary != "tool: ":
		return "tool " + line(strings.TrimPrefix(a.summary, "tool: "), lineLimit)
	case a.kind == agent.ActivityTool && a.tool != nil:
		return "tool " + line(a.tool.Tool+" "+a.tool.Args, lineLimit)
	case a.kind == agent.ActivityTool:
		return "tool"
	case a.summary != "":
		return line(a.summary, lineLimit)
	case a.kind != "":
		return line(a.kind, 64)
	}
	return "an activity"
}

func (a *activity) toolName() string {
	if a.tool == nil {
		return ""
	}
	return a.tool.Tool
}

func (a *activity) toolEvent(kind string) event {
	e := event{Type: kind}
	if in := a.tool; in != nil {
		e.Step, e.Call, e.Tool, e.Args = in.Step, in.Call, in.Tool, in.Args
		e.Key, e.Undoes = in.Key(), in.Undoes
		if in.Grant != nil {
			e.Approval = in.Grant.ID
		}
		if in.Undoes != "" {
			e.Type = undoType(kind)
		}
	}
	return e
}

// undoType is the type of a compensation's event.
func undoType(kind string) string {
	switch kind {
	case evToolStarted:
		return evUndoStarted
	case evToolEnded:
		return evUndoEnded
	case evToolFailed:
		return evUndoFailed
	}
	return kind
}

// activityStarted is written when an activity closes; a high attempt is news.
func (t *turnLog) activityStarted(id int64, attempt int) []event {
	if act := t.scheduled[id]; act != nil {
		act.attempt = attempt
	}
	return nil
}

func (t *turnLog) activityCompleted(ev *historypb.HistoryEvent) []event {
	a := ev.GetActivityTaskCompletedEventAttributes()
	act := t.scheduled[a.GetScheduledEventId()]
	if act == nil {
		return t.unknown(ev)
	}
	act.open = false
	switch {
	case act.kind == agent.ActivityModel:
		var r agent.ModelResult
		if err := t.first(a.GetResult(), &r); err != nil {
			act.trouble = shown(err)
			return []event{{Type: evModelAnswered, Text: "the model answered " + shown(err)}}
		}
		act.result, t.answer, t.head = &r, &r, r.Head
		return append(t.crossing(act, t.seen.answered(&r)), t.modelAnswered(act, &r)...)
	case act.kind == agent.ActivityTool:
		var r agent.ToolResult
		if err := t.first(a.GetResult(), &r); err != nil {
			e := act.toolEvent(evToolEnded)
			act.trouble = shown(err)
			e.Text = act.name() + ": ended " + shown(err)
			return []event{e}
		}
		return append(t.crossing(act, t.seen.acted(act.toolName(), &r)), t.toolEnded(act, &r)...)
	case act.settle != nil:
		var r agent.SettleResult
		if t.first(a.GetResult(), &r) == nil {
			return t.settlement(act.settle.Settlement, &r)
		}
	case act.ask != nil:
		var r agent.ReconcileResult
		if t.first(a.GetResult(), &r) == nil {
			return t.reconciled(act, &r)
		}
	}
	return nil
}

func (t *turnLog) toolEnded(act *activity, r *agent.ToolResult) []event {
	act.outcome = r
	e := act.toolEvent(evToolEnded)
	e.State, e.Note, e.Attempt, e.Verdict, e.Cancel = r.State, r.Note, act.attempt, r.Verdict, r.Cancel
	e.Text = act.name() + ": " + outcomeText(r, act.attempt)
	out := []event{e}
	if act.tool == nil {
		return out
	}
	out = append(out, t.resulted(act.tool.Key(), r, "")...)
	out = append(out, t.undone(act.tool.Undoes, r.State, r.Note)...)
	return append(out, t.voided(act, r)...)
}

func outcomeText(r *agent.ToolResult, attempt int) string {
	text := line(string(r.State), 32)
	if r.Note != "" {
		text += " (" + line(r.Note, lineLimit) + ")"
	}
	if r.Adopted {
		text += ", as an earlier attempt had recorded"
	}
	if r.Evidence != "" {
		text += ", " + line(r.Evidence, lineLimit)
	}
	if r.Cancel != "" {
		text += "; " + cancelText(r.Cancel)
	}
	if r.Conflict != "" {
		text += "; conflict: " + line(r.Conflict, lineLimit)
	}
	return text + attempts(attempt)
}

func attempts(n int) string {
	if n > 1 {
		return fmt.Sprintf(" (attempt %d)", n)
	}
	return ""
}

func (t *turnLog) modelAnswered(act *activity, r *agent.ModelResult) []event {
	step := 0
	if act.model != nil {
		step = act.model.Step
	}
	e := event{Type: evModelAnswered, Step: step, Model: r.Producer.Model, Usage: &r.Usage, Attempt: act.attempt}
	switch {
	case r.Finish == agent.FinishLength:
		e.Text = "was cut off by the output limit"
	case r.Text != "" && len(r.Calls) > 0:
		e.Text = fmt.Sprintf("says %q and asks for %s", line(r.Text, lineLimit), count(len(r.Calls), "action"))
	case len(r.Calls) > 0:
		e.Text = "asks for " + count(len(r.Calls), "action")
	default:
		e.Text = "answered"
	}
	e.Text = fmt.Sprintf("step %d: %s", step, e.Text) + attempts(act.attempt)
	if r.Adopted {
		e.Text += ", taken from an earlier attempt's record"
	}
	out := []event{e}
	for i, c := range r.Calls {
		if act.model != nil {
			p := act.model.Place
			p.Call = i + 1
			out = append(out, t.called(act.model.Scope, p, c)...)
		}
	}
	return out
}

// called reads what policy said about one call.
func (t *turnLog) called(s agent.Scope, p agent.Place, c agent.Call) []event {
	e := event{Type: evToolRefused, Step: p.Step, Call: p.Call, Tool: c.Tool, Args: c.Args}
	key := agent.ActionKey(s, p, c.Action)
	switch {
	case c.Verdict.Decision == agent.DecisionDeny:
		t.wanted(key, p, c)
		e.State, e.Note, e.Verdict = agent.StateDenied, c.Verdict.Rule, &c.Verdict
		e.Text = fmt.Sprintf("tool %s: denied by rule %s", line(c.Tool, 64), line(c.Verdict.Rule, 64))
	case c.Trouble != "":
		e.Note = c.Trouble
		e.Text = fmt.Sprintf("tool %s cannot run: %s", line(c.Tool, 64), line(c.Trouble, lineLimit))
	case c.Verdict.Decision == agent.DecisionAsk:
		t.wanted(key, p, c)
		e = t.requested(key, p, c, 1, "")
	default:
		t.wanted(key, p, c)
		return nil
	}
	return []event{e}
}

func (t *turnLog) activityFailed(scheduled int64, why string) []event {
	act := t.scheduled[scheduled]
	if act == nil {
		return []event{{Type: evOther, Text: "an activity failed: " + line(why, lineLimit), Note: why}}
	}
	act.open, act.trouble = false, why
	e := event{Type: evOther, Text: act.name() + " failed: " + line(why, lineLimit)}
	switch {
	case act.kind == agent.ActivityTool:
		e = act.toolEvent(evToolFailed)
		e.Text = act.name() + ": no answer: " + line(why, lineLimit)
		if act.tool != nil && act.tool.Class != agent.ClassRead {
			t.moved(e.Key, agent.StateUncertain, "", why) // until it has been found out
		}
	case act.model != nil:
		e.Type, e.Step = evModelFailed, act.model.Step
		e.Text = fmt.Sprintf("step %d: asking %s failed: %s", e.Step, line(t.modelName(), 64), line(why, lineLimit))
	}
	e.Text += attempts(act.attempt)
	e.Note, e.Attempt = why, act.attempt
	return []event{e}
}

// count is "1 action", "2 actions".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
