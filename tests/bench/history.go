package main

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-run/holdfast/agent"
)

// A tally is what stands in a history or a part of it.
type tally struct {
	Events  int `json:"events"`
	Bytes   int `json:"bytes"` // of the events in their wire form
	Actions int `json:"actions"`
}

func (t tally) plus(u tally) tally {
	return tally{t.Events + u.Events, t.Bytes + u.Bytes, t.Actions + u.Actions}
}

// A run is the history of one run of a workflow.
type run []*historypb.HistoryEvent

// runs reads the histories of all runs of a workflow, the first run first.
func runs(ctx context.Context, c client.Client, workflowID string) ([]run, error) {
	last, err := history(ctx, c, workflowID, "")
	if err != nil {
		return nil, err
	}
	var out []run
	for id := last[0].GetWorkflowExecutionStartedEventAttributes().FirstExecutionRunId; ; {
		r, err := history(ctx, c, workflowID, id)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
		next := r[len(r)-1].GetWorkflowExecutionContinuedAsNewEventAttributes()
		if next == nil {
			return out, nil
		}
		id = next.NewExecutionRunId
	}
}

// history reads one run, the current one if runID is empty.
func history(ctx context.Context, c client.Client, workflowID, runID string) (r run, err error) {
	it := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, err
		}
		r = append(r, e)
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("workflow %q has no history", workflowID)
	}
	return r, nil
}

// tally counts a run or a part of one.
func (r run) tally() tally {
	t := tally{Events: len(r)}
	markers := map[int64]bool{}
	for _, e := range r {
		t.Bytes += proto.Size(e)
		t.Actions += actions(e, markers)
	}
	return t
}

// actions returns how many billable actions of Temporal Cloud an event stands for, by the list at
// https://docs.temporal.io/cloud/actions: a workflow's start (also as a child and by continue-as-new) is
// one, the parent's command to start a child another; each start or retry of an activity; all markers of
// one workflow task (local activities, versions, side effects) together; a timer; a signal; an update that
// a worker received; an upsert of search attributes, unless it is the SDK's TemporalChangeVersion.
// Heartbeats and queries are billed too and stand in no history. Markers collects the workflow tasks of
// which a marker was counted.
func actions(e *historypb.HistoryEvent, markers map[int64]bool) int {
	switch e.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_TIMER_STARTED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		return 1
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		return int(e.GetActivityTaskStartedEventAttributes().Attempt)
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
		if _, version := fields["TemporalChangeVersion"]; version && len(fields) == 1 {
			return 0
		}
		return 1
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		task := e.GetMarkerRecordedEventAttributes().WorkflowTaskCompletedEventId
		if markers[task] {
			return 0
		}
		markers[task] = true
		return 1
	}
	return 0
}

// A part is what stands between two events of a kind, the second excluded.
type part struct {
	tally
	took time.Duration
}

// parts cuts a run at the events that begin something. What comes before the first and after the last is
// left out.
func (r run) parts(begins func(*historypb.HistoryEvent) bool) []part {
	var out []part
	from := -1
	for i, e := range r {
		if !begins(e) {
			continue
		}
		if from >= 0 {
			out = append(out, part{r[from:i].tally(), e.EventTime.AsTime().Sub(r[from].EventTime.AsTime())})
		}
		from = i
	}
	return out
}

// step begins where the model is asked.
func step(e *historypb.HistoryEvent) bool {
	return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == agent.ActivityModel
}

// sessionTurn begins where the session has its turn started.
func sessionTurn(e *historypb.HistoryEvent) bool {
	return e.EventType == enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
}

// answered counts the model activities that were completed.
func answered(rs []run) int {
	n := 0
	for _, r := range rs {
		model := map[int64]bool{}
		for _, e := range r {
			if step(e) {
				model[e.EventId] = true
			}
			if c := e.GetActivityTaskCompletedEventAttributes(); c != nil && model[c.ScheduledEventId] {
				n++
			}
		}
	}
	return n
}
