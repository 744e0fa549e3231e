package deploy

import (
	"errors"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// tasks is a history of workflow tasks, one for each mark: of a started one, whether it has the mark that keeps a reset
// run from its worker.
func tasks(marks ...bool) *historypb.History {
	h := &historypb.History{}
	add := func(kind enumspb.EventType, fill func(*historypb.HistoryEvent)) {
		ev := &historypb.HistoryEvent{EventId: int64(len(h.Events) + 1), EventType: kind}
		if fill != nil {
			fill(ev)
		}
		h.Events = append(h.Events, ev)
	}
	for _, marked := range marks {
		add(enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, func(ev *historypb.HistoryEvent) {
			a := &historypb.WorkflowTaskStartedEventAttributes{}
			if marked {
				a.WorkerVersion = &commonpb.WorkerVersionStamp{UseVersioning: true} //nolint:staticcheck // see beforeStamp
			}
			ev.Attributes = &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{WorkflowTaskStartedEventAttributes: a}
		})
		add(enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, nil)
	}
	return h
}

func TestAResetGoesBackBehindWhatWouldKeepItFromAWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marks []bool
		want  int64
	}{
		"nothing is marked":          {[]bool{false, false, false}, 6},
		"the last task is":           {[]bool{false, false, true}, 4},
		"one in the middle is":       {[]bool{false, true, false}, 2},
		"the first is":               {[]bool{true, false, false}, 2},
		"the only one is":            {[]bool{true}, 2},
		"the second and the last":    {[]bool{false, true, true}, 2},
		"there is one, and unmarked": {[]bool{false}, 2},
	} {
		h := tasks(c.marks...)
		x := &Recovery{Workflow: "s:turn-1", Type: agent.WorkflowTurn, Event: int64(len(h.Events))}
		if err := x.beforeStamp(h); err != nil || x.Event != c.want {
			t.Errorf("%s: event %d, %v; want %d", name, x.Event, err, c.want)
		}
		s := &Recovery{Workflow: "s", Type: agent.WorkflowSession, Event: int64(len(h.Events))}
		var refused *NotRecoverableError
		if err := s.beforeStamp(h); errors.As(err, &refused) != (c.want != int64(len(h.Events))) {
			t.Errorf("%s: a session: %v", name, err)
		}
	}
}

func TestOnlyWhatStaysOfARunHasToReplay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found []replay.Finding
		want  string
	}{
		"it replays":                    {nil, ""},
		"its last task goes otherwise":  {[]replay.Finding{{Event: 20, Cause: "the run ends otherwise"}}, ""},
		"an earlier task does":          {[]replay.Finding{{Event: 20, Cause: "late"}, {Event: 7, Cause: "early"}}, "early"},
		"what it is about is not known": {[]replay.Finding{{Cause: "anything"}}, "anything"},
	} {
		got := firstBefore(c.found, 19)
		if (got == nil) != (c.want == "") || got != nil && got.Cause != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestASignalIsHandedOnOnce(t *testing.T) {
	t.Parallel()
	signal := func(name, text string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: name, Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(text)}}},
			},
		}}
	}
	reset := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{
		WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW},
	}}
	old := signalsOf(&historypb.History{Events: []*historypb.HistoryEvent{signal("steer", "a"), signal("steer", "a"), signal("extend", "b")}})
	got := signalsAfterReset(&historypb.History{Events: []*historypb.HistoryEvent{signal("extend", "b"), reset, signal("steer", "a")}})
	missing := lacking(old, got)
	if len(missing) != 2 || missing[0] != &old[1] || missing[1] != &old[2] {
		t.Errorf("missing %+v of %+v", missing, old)
	}
}

// A worker may have died with the first task of a run, which is all that the server writes down then.
func TestAStateThatIsRefusedIsKnownWithoutAWorkersWord(t *testing.T) {
	t.Parallel()
	seal := func(schema int, spoil bool) *agent.Checkpoint {
		c, err := versioning.Seal(schema, map[string]int{"turns": 1})
		if err != nil {
			t.Fatal(err)
		}
		if spoil {
			c.State += " "
		}
		return c
	}
	for name, c := range map[string]struct {
		in   any
		want bool
	}{
		"altered":           {agent.SessionInput{Checkpoint: seal(2, true)}, true},
		"newer":             {agent.SessionInput{Checkpoint: seal(versioning.Bounds(agent.WorkflowSession).Newest+1, false)}, true},
		"of this build":     {agent.SessionInput{Checkpoint: seal(versioning.Bounds(agent.WorkflowSession).Newest, false)}, false},
		"older":             {agent.SessionInput{Checkpoint: seal(1, false)}, false},
		"none":              {agent.SessionInput{}, false},
		"no session at all": {[]int{7}, false},
	} {
		input, err := converter.GetDefaultDataConverter().ToPayloads(c.in)
		if err != nil {
			t.Fatal(err)
		}
		started := &historypb.HistoryEvent{
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input},
			},
		}
		why := Gate{}.Refusal(t.Context(), agent.WorkflowSession, started)
		if (why != "") != c.want || c.want && !versioning.RefusesCheckpoint(why) {
			t.Errorf("%s: %q", name, why)
		}
	}
}
