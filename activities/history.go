package activities

import (
	"context"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
)

// viewFromHistory puts the last state of a closed turn together from the events of its runs, the latest
// first, until one of them has asked the model.
func (a *Activities) viewFromHistory(ctx context.Context, in agent.RecoverInput) (agent.TurnView, error) {
	id, run := agent.TurnID(in.Session, in.Turn), ""
	for {
		w := &walk{view: agent.TurnView{Session: in.Session, Turn: in.Turn, Head: in.Head}, scheduled: map[int64]any{}}
		events := a.Client.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				return w.view, err
			}
			w.event(e)
		}
		if w.asked || w.previous == "" {
			return w.end(), nil
		}
		run = w.previous
	}
}

// A walk follows the activities of one run. What it cannot decode it passes over: the rest is still worth
// knowing.
type walk struct {
	view      agent.TurnView
	scheduled map[int64]any      // inputs of model and tool activities by event
	pending   *agent.ModelInput  // asked and not answered
	answer    *agent.ModelResult // the last one
	asked     bool
	previous  string // the run before this one
}

func (w *walk) event(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		attr := e.GetWorkflowExecutionStartedEventAttributes()
		w.previous = attr.GetContinuedExecutionRunId()
		if in, ok := decodeFirst[agent.TurnInput](attr.GetInput()); ok {
			w.view.Agent, w.view.Store, w.view.Serial = in.Agent, in.Store, in.Serial
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		w.schedule(e.GetEventId(), e.GetActivityTaskScheduledEventAttributes())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		attr := e.GetActivityTaskCompletedEventAttributes()
		w.complete(w.scheduled[attr.GetScheduledEventId()], attr.GetResult())
	}
}

func (w *walk) schedule(event int64, attr *historypb.ActivityTaskScheduledEventAttributes) {
	switch attr.GetActivityType().GetName() {
	case agent.ActivityModel:
		if in, ok := decodeFirst[agent.ModelInput](attr.GetInput()); ok {
			w.asked, w.pending, w.scheduled[event] = true, &in, in
			w.view.Head, w.view.Step, w.view.Serial = in.Head, in.Step, in.Serial
		}
	case agent.ActivityTool:
		in, ok := decodeFirst[agent.ToolInput](attr.GetInput())
		if !ok || in.Class == agent.ClassRead {
			return
		}
		w.scheduled[event] = in
		w.view.Ledger = slices.DeleteFunc(w.view.Ledger, func(e agent.Effect) bool { return e.Key == in.Key() }) // void, and asked for again
		w.view.Ledger = append(w.view.Ledger, agent.Effect{
			Key: in.Key(), Tool: in.Tool, Place: in.Place, Class: in.Class, Undoes: in.Undoes,
			State: agent.StateDispatched, Action: in.Action, Intent: w.intent(in),
		})
	}
}

// intent is what the model's answer says of the call; a place that it does not have has none, nor has a
// compensation.
func (w *walk) intent(in agent.ToolInput) string {
	if w.answer == nil || in.Call < 1 || in.Call > len(w.answer.Calls) || in.Undoes != "" {
		return ""
	}
	return w.answer.Calls[in.Call-1].Intent
}

func (w *walk) complete(input any, result *commonpb.Payloads) {
	switch in := input.(type) {
	case agent.ModelInput:
		if res, ok := decodeFirst[agent.ModelResult](result); ok {
			w.pending, w.answer = nil, &res
			w.view.Head, w.view.Usage = res.Head, w.view.Usage.Add(res.Usage)
		}
	case agent.ToolInput:
		if res, ok := decodeFirst[agent.ToolResult](result); ok {
			w.settle(in.Key(), res)
		}
	}
}

// settle enters a result that the turn had heard of. Recovery asks the store about the others.
func (w *walk) settle(key string, r agent.ToolResult) {
	for i := range w.view.Ledger {
		if e := &w.view.Ledger[i]; e.Key == key {
			e.State, e.Attempt, e.At, e.Note, e.Conflict = r.State, r.Attempt, r.At, r.Note, r.Conflict
		}
	}
}

// end adds what was said and did not get into the transcript: the entries of a question without an answer,
// or what is known of the last answer's calls.
func (w *walk) end() agent.TurnView {
	switch {
	case w.pending != nil:
		w.view.Entries = w.pending.Entries
	case w.answer != nil:
		for _, c := range w.answer.Calls {
			if c.Trouble != "" {
				w.view.Entries = append(w.view.Entries, agent.Entry{Role: agent.RoleTool, Call: c.ID, Text: c.Trouble})
			}
		}
	}
	return w.view
}

// decodeFirst reads the first payload.
func decodeFirst[T any](p *commonpb.Payloads) (v T, ok bool) {
	if len(p.GetPayloads()) == 0 {
		return v, false
	}
	err := converter.GetDefaultDataConverter().FromPayload(p.GetPayloads()[0], &v)
	return v, err == nil
}
