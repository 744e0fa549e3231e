package histories

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/workflows"
)

// gate replays files as "holdfast replay" does.
func gate() deploy.Gate {
	return deploy.Gate{Register: func(r sdkworker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) }}
}

func TestTheGatePassesEveryRecordedHistory(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("[0-9]*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders: %v", err)
	}
	seen := 0
	r, err := gate().Files(context.Background(), folders, func(i deploy.Item) {
		seen++
		if i.Err != nil || !i.Fetched || i.Replayed.Events == 0 {
			t.Errorf("%s: %+v", i.Source, i)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(all(t)); !r.OK() || r.Total != n || seen != n || r.Replayed() != n {
		t.Errorf("%d files, %d items, report %+v", n, seen, r)
	}
	for _, typ := range r.Types {
		if typ.Passed != typ.Runs || typ.Numbers[1] == 0 || typ.Numbers[2] == 0 || typ.Numbers[0] != 0 {
			t.Errorf("%+v: want histories of numbers 1 and 2, and none without", typ)
		}
	}
}

// explained is what a falsified history is told to be.
type explained struct {
	what                    string
	file                    string
	edit                    func(*draft)
	event                   int64 // 0: any
	wanted, recorded, cause string
}

var explanations = []explained{
	{
		"an activity removed", "turn-effect-committed", func(d *draft) { d.dropActivity("tool", 2) },
		25,
		"activity (type tool", "nothing", "a command was added",
	},
	{
		"an activity renamed", "turn-effect-committed", func(d *draft) { d.activity("tool", 2).ActivityType.Name = "refund" },
		26,
		"activity (type tool", "activity (type refund", "it was renamed",
	},
	{
		"two commands reordered", "turn-done", func(d *draft) { i := d.nth(upserted, 2); d.swap(i-1, i) },
		14,
		"local activity close", "search attributes", "the order has changed",
	},
	{
		"two activities of one type reordered", "turn-reads-parallel", func(d *draft) {
			a, b := d.activity("tool", 3), d.activity("tool", 4)
			a.Input, b.Input = b.GetInput(), a.GetInput()
		},
		16,
		"activity tool: input.action", "activity tool: input.action", "the same commands come in another order",
	},
	{
		"a timer added without a change id", "turn-effect-committed", func(d *draft) {
			i := d.nth(activityScheduled, 2)
			d.insert(i, &historypb.HistoryEvent{
				EventType: timerStarted,
				Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{
					TimerId: "99", StartToFireTimeout: durationpb.New(3600e9),
					WorkflowTaskCompletedEventId: d.h.Events[i].GetActivityTaskScheduledEventAttributes().GetWorkflowTaskCompletedEventId(),
				}},
			})
		},
		14,
		"nothing", "timer (duration 1h0m0s)", "a command was removed",
	},
	{
		"an input changed", "turn-effect-committed", func(d *draft) { d.reword(d.activity("tool", 2).GetInput(), "19.90", "19.00") },
		26,
		`19.90`, `19.00`, "what it is made from has changed",
	},
	{
		"a local activity not asked for", "turn-compensated", func(d *draft) { d.dropEvents(d.local("plan", 1)) },
		0, "local activity (type plan)", "nothing", "a command was added",
	},
	{
		"another end", "turn-done", func(d *draft) {
			d.reword(d.event(completed, 1).GetWorkflowExecutionCompletedEventAttributes().GetResult(), `"steps":1`, `"steps":2`)
		},
		16,
		"completed.steps 1", "completed.steps 2", "ends with something else",
	},
	{
		"a number of a newer build", "turn-done", func(d *draft) {
			d.reword(d.event(marked, 1).GetMarkerRecordedEventAttributes().GetDetails()["version"], "2", "99")
		},
		5,
		"or a lower one", "number 99 of Turn", fmt.Sprintf("the run carries number 99 of Turn; this build understands %d to %d",
			versioning.Bounds("Turn").Oldest, versioning.Bounds("Turn").Newest),
	},
	{
		"a renamed change id", "turn-done", func(d *draft) {
			d.reword(d.event(marked, 1).GetMarkerRecordedEventAttributes().GetDetails()["change-id"], "holdfast-Turn", "holdfast-turn")
		},
		0, "or a higher one", "no number of Turn", "its change id has been renamed",
	},
	{
		"a carried state that was altered", "turn-continued.2", func(d *draft) {
			d.reword(d.h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), `\"step\":1`, `\"step\":7`)
		},
		1, "a state that this build can take", "a state of schema", "was altered",
	},
	{
		"a carried state of a newer build", "turn-continued.2", func(d *draft) {
			d.reword(d.h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), `"checkpoint":{"schema":`, `"checkpoint":{"schema":9`)
		},
		1, "a state that this build can take", "a state of schema 9", "which this build does not know",
	},
	{
		"another workflow type", "turn-done", func(d *draft) {
			d.h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name = "Order"
		},
		1, "nothing", "workflow type Order", "this build has no such workflow type",
	},
}

// Whoever reads it is told where, what, why and what to do.
func TestAFalsifiedHistoryIsExplained(t *testing.T) {
	t.Parallel()
	for _, c := range explanations {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			d := &draft{t: t, h: read(t, "0.2.0/"+c.file+".json")}
			c.edit(d)
			found := replay.Explain(today.Replay(d.h))
			if len(found) == 0 {
				t.Fatal("nothing is explained")
			}
			f := found[0]
			if f.Event < 1 || c.event != 0 && f.Event != c.event {
				t.Errorf("event %d: %+v", f.Event, f)
			}
			if !strings.Contains(f.Wanted, c.wanted) || !strings.Contains(f.Recorded, c.recorded) || !strings.Contains(f.Cause, c.cause) || f.Advice == "" {
				t.Errorf("explained as %+v\nwant %q, %q, %q", f, c.wanted, c.recorded, c.cause)
			}
		})
	}
}

// Every falsified history fails at the gate and every other one passes beside it.
func TestTheGateFindsTheBadAmongTheGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, c := range explanations {
		d := &draft{t: t, h: read(t, "0.2.0/"+c.file+".json")}
		write(t, filepath.Join(dir, fmt.Sprintf("good-%02d.json", i)), d.h)
		c.edit(d)
		write(t, filepath.Join(dir, fmt.Sprintf("bad-%02d.json", i)), d.h)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut.json"), []byte(`{"events":[`), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := gate().Files(context.Background(), []string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, f := range r.Failures {
		failed = append(failed, filepath.Base(f.Source))
		if f.Workflow == "" || f.Type == "" || len(f.Findings) == 0 || !strings.HasPrefix(f.Build, "dev-") && f.Findings[0].Event > 5 {
			t.Errorf("failure %+v", f)
		}
	}
	if len(failed) != len(explanations) || slices.ContainsFunc(failed, func(s string) bool { return !strings.HasPrefix(s, "bad-") }) {
		t.Errorf("failed are %v, want the %d bad ones", failed, len(explanations))
	}
	if r.OK() || len(r.Unread) != 1 || filepath.Base(r.Unread[0].Source) != "cut.json" || r.Total != 2*len(explanations)+1 {
		t.Errorf("unread %+v of %d", r.Unread, r.Total)
	}
}

func write(t *testing.T, file string, h *historypb.History) {
	t.Helper()
	b, err := protojson.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A run that has been asked a thousand things replays as one that was asked one.
func TestALongHistoryIsReadAndReplayed(t *testing.T) {
	t.Parallel()
	d := &draft{t: t, h: read(t, "0.2.0/turn-terminated.json")}
	d.drop(func(e *historypb.HistoryEvent) bool {
		return e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
	})
	events := d.h.GetEvents()
	for events[len(events)-1].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && !replay.Asked(events[len(events)-1]) {
		events = events[:len(events)-1]
	}
	var task []*historypb.HistoryEvent
	for _, e := range events {
		if typ := e.GetEventType(); typ >= enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED && typ <= enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			task = append(task, e)
		}
	}
	task = task[len(task)-3:]
	for range 5000 {
		next := int64(len(events)) + 1
		signal := &historypb.HistoryEvent{EventId: next, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED}
		signal.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: "nobody-listens"},
		}
		events = append(events, signal)
		for i, e := range task {
			c := copyOf(e)
			c.EventId = next + 1 + int64(i)
			if a := c.GetWorkflowTaskStartedEventAttributes(); a != nil {
				a.ScheduledEventId = next + 1
			}
			if a := c.GetWorkflowTaskCompletedEventAttributes(); a != nil {
				a.ScheduledEventId, a.StartedEventId = next+1, next+2
			}
			events = append(events, c)
		}
	}
	file := filepath.Join(t.TempDir(), "long.json")
	write(t, file, &historypb.History{Events: events})
	var got deploy.Item
	r, err := gate().Files(context.Background(), []string{file}, func(i deploy.Item) { got = i })
	if err != nil || !r.OK() {
		t.Fatalf("%v, %+v", err, r)
	}
	if got.Replayed.Events != len(events) || len(events) < 20_000 {
		t.Errorf("%d events were replayed of %d", got.Replayed.Events, len(events))
	}
	if err := got.Replayed.Query("turn", new(struct{})); err != nil {
		t.Error(err)
	}
}

func TestAMismatchIsToldFromWhatCannotBeReplayed(t *testing.T) {
	t.Parallel()
	d := &draft{t: t, h: read(t, "0.2.0/turn-done.json")}
	d.h.Events = append(d.h.Events[:3:3], d.h.Events[4:]...)
	err := today.Replay(d.h)
	var m *replay.Mismatch
	if err == nil || errors.As(err, &m) {
		t.Errorf("error %v, want one that is no mismatch", err)
	}
	if f := replay.Explain(err); len(f) != 1 || !strings.Contains(f[0].Cause, "is missing") {
		t.Errorf("explained as %+v", f)
	}
}
