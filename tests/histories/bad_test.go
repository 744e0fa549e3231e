package histories

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

const (
	activityScheduled = enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
	timerStarted      = enumspb.EVENT_TYPE_TIMER_STARTED
	childInitiated    = enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
	signalInitiated   = enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED
	upserted          = enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
	marked            = enumspb.EVENT_TYPE_MARKER_RECORDED
	completed         = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
	failed            = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED
	cancelled         = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
	continued         = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
	updateCompleted   = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED
)

// A falsified history is a good one turned into one that another code must have left. What Temporal's own replay
// sees says nondeterminism; want names the cause.
type falsified struct {
	what     string
	file     string
	edit     func(*draft)
	temporal bool // Temporal's own replay refuses it too
	want     []string
}

var bad = []falsified{
	{
		"an activity removed", "turn-effect-committed", func(d *draft) { d.dropActivity("tool", 2) }, true,
		[]string{"TMPRL1100", "history has nothing, this build has activity (type tool"},
	},
	{
		"an activity renamed", "turn-effect-committed",
		func(d *draft) { d.activity("tool", 2).ActivityType.Name = "refund" }, true,
		[]string{"TMPRL1100", "ActivityType:(Name:refund)", "ActivityType:(Name:tool)"},
	},
	{
		"two commands reordered", "turn-done",
		func(d *draft) { i := d.nth(upserted, 2); d.swap(i-1, i) }, true,
		[]string{"TMPRL1100", "UpsertWorkflowSearchAttributes", "LocalActivity"},
	},
	{
		"two activities of one type reordered", "turn-reads-parallel",
		func(d *draft) {
			a, b := d.activity("tool", 3), d.activity("tool", 4)
			a.Input, b.Input = b.GetInput(), a.GetInput()
		}, false,
		[]string{"activity tool: input.action", "activity tool: input.args"},
	},
	{
		"a timer added without a change id", "turn-effect-committed",
		func(d *draft) {
			i := d.nth(activityScheduled, 2)
			d.insert(i, &historypb.HistoryEvent{
				EventType: timerStarted,
				Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{
					TimerId: "99", StartToFireTimeout: durationpb.New(time.Hour),
					WorkflowTaskCompletedEventId: d.h.Events[i].GetActivityTaskScheduledEventAttributes().GetWorkflowTaskCompletedEventId(),
				}},
			})
		}, true,
		[]string{"TMPRL1100", "history has timer (duration 1h0m0s), this build has nothing"},
	},
	{
		"an activity's input changed", "turn-effect-committed",
		func(d *draft) { d.reword(d.activity("tool", 2).GetInput(), "19.90", "19.00") }, false,
		[]string{"activity tool: input.args", "19.90", "19.00"},
	},
	{
		"a timer's duration changed", "turn-waits-and-extended",
		func(d *draft) {
			d.event(timerStarted, 1).GetTimerStartedEventAttributes().StartToFireTimeout = durationpb.New(time.Hour)
		}, false,
		[]string{"timer: duration", "1h0m0s"},
	},
	{
		"a child's id changed", "session-two-turns-closed",
		func(d *draft) {
			d.event(childInitiated, 1).GetStartChildWorkflowExecutionInitiatedEventAttributes().WorkflowId = "plain:turn-9"
			d.event(enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED, 1).GetChildWorkflowExecutionStartedEventAttributes().WorkflowExecution.WorkflowId = "plain:turn-9"
			d.event(enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, 1).GetChildWorkflowExecutionCompletedEventAttributes().WorkflowExecution.WorkflowId = "plain:turn-9"
		}, true,
		[]string{"plain:turn-9"},
	},
	{
		"a child's input changed", "session-two-turns-closed",
		func(d *draft) {
			d.reword(d.event(childInitiated, 2).GetStartChildWorkflowExecutionInitiatedEventAttributes().GetInput(), `"turn":2`, `"turn":3`)
		}, false,
		[]string{"child workflow plain:turn-2: input.turn"},
	},
	{
		"a child's search attribute changed", "session-two-turns-closed",
		func(d *draft) {
			p := d.event(childInitiated, 1).GetStartChildWorkflowExecutionInitiatedEventAttributes().GetSearchAttributes().GetIndexedFields()
			p["HoldfastTenant"].Data = []byte(`"other"`)
		}, false,
		[]string{"child workflow plain:turn-1: search attributes.HoldfastTenant", "other", "acme"},
	},
	{
		"a signal's input changed", "session-steered",
		func(d *draft) {
			d.reword(d.event(signalInitiated, 1).GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetInput(), "message-2", "message-7")
		}, false,
		[]string{"signal steer: input.message.id"},
	},
	{
		"a signal not sent", "session-cancels-turn",
		func(d *draft) {
			d.drop(func(e *historypb.HistoryEvent) bool {
				return e.GetEventType() == signalInitiated || e.GetEventType() == enumspb.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED
			})
		}, true,
		[]string{"TMPRL1100", "SignalExternalWorkflowExecution"},
	},
	{
		"a search attribute changed", "turn-done",
		func(d *draft) {
			d.event(upserted, 2).GetUpsertWorkflowSearchAttributesEventAttributes().SearchAttributes.IndexedFields["HoldfastStatus"].Data = []byte(`"failed"`)
		}, false,
		[]string{"search attributes: values.HoldfastStatus", `"failed"`, `"done"`},
	},
	{
		"a local activity renamed", "turn-done",
		func(d *draft) {
			d.reword(d.event(marked, 3).GetMarkerRecordedEventAttributes().GetDetails()["data"], `"close"`, `"seal"`)
		}, true,
		[]string{"TMPRL1100", "local activity close", "seal"},
	},
	{
		"a local activity removed", "turn-done",
		func(d *draft) {
			gone := d.event(marked, 3)
			d.drop(func(e *historypb.HistoryEvent) bool { return e == gone })
		}, true,
		[]string{"TMPRL1100"},
	},
	{
		"a change number that this build does not know", "turn-done",
		func(d *draft) {
			d.event(marked, 1).GetMarkerRecordedEventAttributes().GetDetails()["version"].Payloads[0].Data = []byte("99")
		}, true,
		[]string{"holdfast-Turn", "99"},
	},
	{
		"a renamed change id", "turn-done",
		func(d *draft) {
			d.reword(d.event(marked, 1).GetMarkerRecordedEventAttributes().GetDetails()["change-id"], "holdfast-Turn", "holdfast-turn")
		}, true,
		[]string{"holdfast-Turn"},
	},
	{
		"another result", "turn-done",
		func(d *draft) {
			d.reword(d.event(completed, 1).GetWorkflowExecutionCompletedEventAttributes().GetResult(), `"steps":1`, `"steps":2`)
		}, false,
		[]string{"end of the run: completed.steps", "history has 2, this build has 1"},
	},
	{
		"another failure", "turn-failed-faults",
		func(d *draft) {
			d.event(failed, 1).GetWorkflowExecutionFailedEventAttributes().Failure.GetApplicationFailureInfo().Type = "refusal"
		}, false,
		[]string{"end of the run: failed.type", "refusal", "faults"},
	},
	{
		"another result of a cancelled run", "turn-cancelled-by-signal",
		func(d *draft) {
			d.reword(d.event(cancelled, 1).GetWorkflowExecutionCanceledEventAttributes().GetDetails(), "no longer needed", "because")
		}, false,
		[]string{"end of the run: cancelled.reason.message", "no longer needed"},
	},
	{
		"another state carried on", "turn-continued",
		func(d *draft) {
			d.reword(d.event(continued, 1).GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput(), `\"step\":1`, `\"step\":2`)
		}, false,
		[]string{"end of the run: continued as new", "state.step: history has 2"},
	},
	{
		"another answer to an update", "session-two-turns-closed",
		func(d *draft) {
			d.event(updateCompleted, 1).GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetSuccess().Payloads[0].Data = []byte(`{"ahead":7}`)
		}, false,
		[]string{`update "message-1": completed.ahead`},
	},
	{
		"a run that ended otherwise", "turn-done",
		func(d *draft) {
			last := d.event(completed, 1)
			last.EventType = cancelled
			last.Attributes = &historypb.HistoryEvent_WorkflowExecutionCanceledEventAttributes{WorkflowExecutionCanceledEventAttributes: &historypb.WorkflowExecutionCanceledEventAttributes{
				WorkflowTaskCompletedEventId: last.GetWorkflowExecutionCompletedEventAttributes().GetWorkflowTaskCompletedEventId(),
			}}
		}, false,
		[]string{"end of the run: history has cancelled, this build has completed"},
	},
	{
		"a run that ended sooner", "turn-effect-committed",
		func(d *draft) {
			last := d.event(completed, 1)
			i := d.nth(activityScheduled, 4) // the effect is asked for; the run ends instead
			last.GetWorkflowExecutionCompletedEventAttributes().WorkflowTaskCompletedEventId = d.h.Events[i].GetActivityTaskScheduledEventAttributes().GetWorkflowTaskCompletedEventId()
			d.h.Events = append(d.h.Events[:i], last)
			d.renumber()
		}, true,
		[]string{"TMPRL1100"},
	},
	{
		"a run that ended where it now waits", "session-two-turns-closed",
		func(d *draft) {
			i := d.nth(enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, 1) + 4 // and the task that it woke
			d.h.Events = append(d.h.Events[:i], &historypb.HistoryEvent{
				EventType: continued,
				Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
					WorkflowTaskCompletedEventId: int64(i),
				}},
			})
			d.renumber()
		}, true,
		[]string{"end of the run: history has continued as new, this build has the run goes on"},
	},
	{
		"a run that went on after its end", "turn-done",
		func(d *draft) {
			last := d.event(completed, 1)
			i := len(d.h.Events) - 1
			next := copyOf(d.event(activityScheduled, 1))
			next.EventId = 0
			a := next.GetActivityTaskScheduledEventAttributes()
			a.ActivityId, a.WorkflowTaskCompletedEventId = "99", last.GetWorkflowExecutionCompletedEventAttributes().GetWorkflowTaskCompletedEventId()
			d.h.Events[i] = next
			d.renumber()
		}, true,
		[]string{"TMPRL1100"},
	},
}

func TestABadHistoryIsRefusedWithItsCause(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(bad, badAuthority) {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			d := &draft{t, read(t, filesOf(t, release, c.file)[0])}
			if err := today.Replay(d.h); err != nil {
				t.Fatalf("before the edit: %v", err)
			}
			c.edit(d)
			err := today.Replay(d.h)
			var m *replay.Mismatch
			if !errors.As(err, &m) {
				t.Fatalf("error %v, want a mismatch", err)
			}
			if (m.Temporal != nil) != c.temporal {
				t.Errorf("Temporal's own replay says: %v", m.Temporal)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}
