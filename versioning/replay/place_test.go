package replay

import (
	"errors"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
)

// eventOf returns the n-th event of a type.
func eventOf(t *testing.T, h *historypb.History, typ enumspb.EventType, n int) *historypb.HistoryEvent {
	t.Helper()
	for _, e := range h.GetEvents() {
		if e.GetEventType() == typ {
			if n--; n == 0 {
				return e
			}
		}
	}
	t.Fatalf("no %s", typ)
	return nil
}

// What the SDK says of a command is little: history says which one it is.
func TestWhatTemporalStumblesOverIsNamedByHistory(t *testing.T) {
	t.Parallel()
	const (
		scheduled = enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
		child     = enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
		signalled = enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED
		started   = enumspb.EVENT_TYPE_TIMER_STARTED
		fired     = enumspb.EVENT_TYPE_TIMER_FIRED
	)
	for _, c := range []struct {
		name, file string
		edit       func(*historypb.History) *historypb.HistoryEvent // returns the one that is to be named
		temporal   string
		recorded   []string
	}{
		{
			"a signal", "0.2.0/session-cancels-turn", func(h *historypb.History) *historypb.HistoryEvent {
				e := eventOf(t, h, signalled, 1)
				e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().Control = "99" //nolint:staticcheck // the SDK looks at it
				return e
			}, "a matching Signal command was expected in history event position 99",
			[]string{"signal (name cancel, workflow ", ":turn-1", `"turn":1`},
		},
		{
			"a timer", "0.2.0/turn-limit-expired", func(h *historypb.History) *historypb.HistoryEvent {
				e := eventOf(t, h, started, 1)
				e.GetTimerStartedEventAttributes().TimerId = "99"
				return e
			}, "a matching Timer command was expected in history event position 99",
			[]string{"timer (duration ", `summary "wait for extend"`},
		},
		{
			"a timer that is cancelled", "0.2.0/turn-limit-expired", func(h *historypb.History) *historypb.HistoryEvent {
				e := eventOf(t, h, fired, 1)
				a := e.GetTimerFiredEventAttributes()
				e.EventType = enumspb.EVENT_TYPE_TIMER_CANCELED
				e.Attributes = &historypb.HistoryEvent_TimerCanceledEventAttributes{TimerCanceledEventAttributes: &historypb.TimerCanceledEventAttributes{
					TimerId: a.GetTimerId(), StartedEventId: a.GetStartedEventId(), WorkflowTaskCompletedEventId: e.GetEventId() - 1,
				}}
				return e
			}, "invalid state transition: attempt to handleCanceledEvent, CommandType: Timer",
			[]string{"TimerCanceled of timer (duration ", "wait for extend"},
		},
		{
			"a child", "0.2.0/session-two-turns-closed", func(h *historypb.History) *historypb.HistoryEvent {
				return again(h, eventOf(t, h, child, 2), func(e *historypb.HistoryEvent) {
					e.GetStartChildWorkflowExecutionInitiatedEventAttributes().WorkflowId = "another:turn-2"
				})
			}, "a matching ChildWorkflow command was expected in history event position another:turn-2",
			[]string{"child workflow (id another:turn-2, type Turn"},
		},
		{
			"an activity", "0.2.0/turn-done", func(h *historypb.History) *historypb.HistoryEvent {
				return again(h, eventOf(t, h, scheduled, 1), func(e *historypb.HistoryEvent) {
					e.GetActivityTaskScheduledEventAttributes().ActivityId = "99"
				})
			}, "lookup failed for scheduledEventID to activityID: scheduleEventID: 16",
			[]string{"activity (type model, input "},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := recording(t, c.file)
			want := c.edit(h)
			err := today.Replay(h)
			var m *Mismatch
			if !errors.As(err, &m) || m.Temporal == nil || !strings.Contains(m.Temporal.Error(), c.temporal) {
				t.Fatalf("%v; want one of Temporal's with %q", err, c.temporal)
			}
			found := Explain(err)
			if found[0].Event != want.GetEventId() || m.found.event != want.GetEventId() {
				t.Errorf("explained as %+v, found %+v; want event %d", found, m.found, want.GetEventId())
			}
			for _, part := range c.recorded {
				if !strings.Contains(found[0].Recorded, part) || !strings.Contains(m.found.what, part) {
					t.Errorf("history has %s, found %s; want %q in it", found[0].Recorded, m.found.what, part)
				}
			}
		})
	}
}

// again puts a copy of an event in the place of the run's end, as if the code had gone on there.
func again(h *historypb.History, e *historypb.HistoryEvent, edit func(*historypb.HistoryEvent)) *historypb.HistoryEvent {
	c := proto.CloneOf(e)
	edit(c)
	last := len(h.GetEvents()) - 1
	c.EventId = h.Events[last].GetEventId()
	h.Events[last] = c
	return c
}
