package replay

import (
	"errors"
	"os"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/workflows"
)

var today = Replayer{Register: func(r worker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) }}

func recording(t testing.TB, name string) *historypb.History {
	t.Helper()
	f, err := os.Open("../../tests/histories/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAReplayedRunSaysWhatItIs(t *testing.T) {
	t.Parallel()
	h := recording(t, "0.2.0/turn-approved")
	got, err := today.Run(h)
	if err != nil {
		t.Fatal(err)
	}
	if got.Workflow != "approved:turn-1" || got.Type != agent.WorkflowTurn || got.Change != 2 || got.Run == "" || got.Events != len(h.GetEvents()) {
		t.Errorf("got %+v", got)
	}
}

// The query is answered by the code itself, in the state in which history leaves it.
func TestAReplayedRunAnswersQueriesAsOfItsEnd(t *testing.T) {
	t.Parallel()
	h := recording(t, "0.2.0/turn-approved")
	var seen []agent.Status
	var asked []int
	for n := 1; n <= len(h.GetEvents()); n++ {
		got, err := today.Run(&historypb.History{Events: h.GetEvents()[:n]})
		if errors.Is(err, ErrNotRun) {
			if err := got.Query(agent.QueryTurn, new(agent.TurnView)); err == nil {
				t.Error("a run whose code has not run has answered")
			}
			continue
		}
		if err != nil {
			continue // cut in the middle of what the server writes at once
		}
		var turn agent.TurnView
		var approvals agent.ApprovalsView
		if err := errors.Join(got.Query(agent.QueryTurn, &turn), got.Query(agent.QueryApprovals, &approvals)); err != nil {
			t.Fatalf("after event %d: %v", n, err)
		}
		if len(seen) == 0 || seen[len(seen)-1] != turn.Status {
			seen, asked = append(seen, turn.Status), append(asked, len(approvals.Approvals))
		}
	}
	want := []agent.Status{agent.StatusRunning, agent.StatusWaiting, agent.StatusRunning, agent.StatusDone}
	if !equal(seen, want) || asked[0] != 0 || asked[1] != 1 {
		t.Errorf("the turn was %v in this order, with %v requests; want %v", seen, asked, want)
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// odd is a workflow that waits for ever, with odd handlers, and whose state changes when it is unwound.
func odd(ctx workflow.Context) error {
	state := "began"
	defer func() { state = "unwound" }()
	err := errors.Join(
		workflow.SetQueryHandler(ctx, "state", func() (string, error) { return state, nil }),
		workflow.SetQueryHandler(ctx, "panics", func() (string, error) { panic("odd") }),
		workflow.SetQueryHandler(ctx, "fails", func() (string, error) { return "", errors.New("not today") }),
		workflow.SetQueryHandler(ctx, "takes", func(int) (string, error) { return "", nil }),
	)
	if err != nil {
		return err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
		state = "went"
		workflow.GetSignalChannel(ctx, "never").Receive(ctx, nil)
	})
	workflow.GetSignalChannel(ctx, "never").Receive(ctx, nil)
	return nil
}

// oddHistory is one that the odd workflow has left, after so many signals.
func oddHistory(signals int) *historypb.History {
	h := &historypb.History{}
	add := func(typ enumspb.EventType, e *historypb.HistoryEvent) {
		e.EventType, e.EventId = typ, int64(len(h.Events))+1
		h.Events = append(h.Events, e)
	}
	task := func() {
		at := int64(len(h.Events))
		add(enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
			WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
		}})
		add(enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: at + 1},
		}})
		add(enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
				ScheduledEventId: at + 1, StartedEventId: at + 2, WorkerVersion: &commonpb.WorkerVersionStamp{BuildId: "the-old-one"}, //nolint:staticcheck // what a worker without a deployment writes
			},
		}})
	}
	add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: "odd"}, WorkflowId: "odd-1", OriginalExecutionRunId: "r",
			TaskQueue: &taskqueuepb.TaskQueue{Name: "odd"},
		},
	}})
	task()
	for range signals {
		add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: "go"},
		}})
		task()
	}
	return h
}

var oddReplayer = Replayer{Register: func(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(odd, workflow.RegisterOptions{Name: "odd"})
}}

// When a replay is over, the SDK unwinds the code, and deferred functions run: that is no state of the run.
func TestAQueryIsAnsweredBeforeTheCodeIsUnwound(t *testing.T) {
	t.Parallel()
	for signals, want := range map[int]string{0: "began", 1: "went", 3: "went"} {
		got, err := oddReplayer.Run(oddHistory(signals))
		if err != nil {
			t.Fatal(err)
		}
		var state string
		if err := got.Query("state", &state); err != nil || state != want {
			t.Errorf("after %d signals: %q, %v; want %q", signals, state, err, want)
		}
	}
}

func TestAQueryThatCannotBeAnsweredSaysWhy(t *testing.T) {
	t.Parallel()
	got, err := oddReplayer.Run(oddHistory(0))
	if err != nil {
		t.Fatal(err)
	}
	var n int
	for name, want := range map[string]string{
		"panics": "its handler failed: odd", "fails": "not today", "takes": "it takes arguments", "none": `has no query "none"`, "state": "answers something else",
	} {
		if err := got.Query(name, &n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	if err := (Replayed{}).Query("state", &n); err == nil {
		t.Error("what was never replayed has answered")
	}
}

func TestAReplayThatStopsHalfWayAnswersNothing(t *testing.T) {
	t.Parallel()
	h := recording(t, "0.2.0/turn-approved")
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == agent.ActivityTool {
			a.ActivityType.Name = "another"
		}
	}
	got, err := today.Run(h)
	var m *Mismatch
	if !errors.As(err, &m) {
		t.Fatalf("error %v, want a Mismatch", err)
	}
	if err := got.Query(agent.QueryTurn, new(agent.TurnView)); err == nil {
		t.Error("it has answered")
	}
	if got.Workflow != m.Workflow || got.Change != 2 || m.Change != 2 || !strings.HasPrefix(m.Build, "dev-") {
		t.Errorf("replayed %+v, mismatch %+v", got, m)
	}
}

func TestAHistoryWithPayloadsThatSayNothingIsNotCalledADifference(t *testing.T) {
	t.Parallel()
	for what, metadata := range map[string]map[string][]byte{
		"workers' store":                 {converter.MetadataEncoding: []byte("json/protobuf"), messageType: []byte(storedMessage)},
		"kept in the workers' store":     {converter.MetadataEncoding: []byte(encodingStoredOld)},
		`encoding is "binary/secret"`:    {converter.MetadataEncoding: []byte("binary/secret")},
		`encoding is ""; name the codec`: {},
	} {
		h := recording(t, "0.2.0/turn-done")
		var event int64
		for _, e := range h.GetEvents() {
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				a.GetInput().GetPayloads()[0].Metadata, event = metadata, e.GetEventId()
			}
		}
		_, err := today.Run(h)
		var p *PayloadError
		if !errors.As(err, &p) || p.Event != event || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one about event %d with %q", err, event, what)
		}
		if f := Explain(err); len(f) != 1 || f[0].Event != event || f[0].Advice == "" {
			t.Errorf("explained as %+v", f)
		}
	}
}

// Workers may encode what failures say, so that servers do not see it.
func TestAFailureWhoseMessageIsEncodedIsTheSame(t *testing.T) {
	t.Parallel()
	h := recording(t, "0.2.0/turn-failed-refusal")
	last := h.GetEvents()[len(h.GetEvents())-1]
	f := last.GetWorkflowExecutionFailedEventAttributes().GetFailure()
	for _, c := range []struct {
		said string
		same bool
	}{{f.GetMessage(), true}, {"something else", false}} {
		payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"message": c.said, "stack_trace": ""})
		if err != nil {
			t.Fatal(err)
		}
		f.Message, f.EncodedAttributes = "Encoded failure", payload
		if err := today.Replay(h); (err == nil) != c.same {
			t.Errorf("%q: %v", c.said, err)
		}
	}
}
