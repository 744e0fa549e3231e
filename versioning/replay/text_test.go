package replay

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/versioning"
)

// Texts that SDK 1.51 leaves, as workers and replays have been seen to write them.
const (
	textRenamed = `[TMPRL1100] nondeterministic workflow: history event is ActivityTaskScheduled: (ActivityId:26, ActivityType:(Name:refund), TaskQueue:(Name:holdfast, Kind:Normal), Header:(Fields:map[]), Input:(Payloads:[len=1]), StartToCloseTimeout:(Seconds:130, Nanos:0), WorkflowTaskCompletedEventId:25, UseWorkflowBuildId:true), replay command is ScheduleActivityTask: (ActivityId:26, ActivityType:(Name:tool), TaskQueue:(Name:holdfast, Kind:Normal), StartToCloseTimeout:(Seconds:130, Nanos:0))`
	textSwapped = `[TMPRL1100] nondeterministic workflow: history event is UpsertWorkflowSearchAttributes: (EventId:14, EventTime:(Seconds:1795994367, Nanos:674965690), EventType:UpsertWorkflowSearchAttributes, Version:0, Attributes:&{workflow_task_completed_event_id:13 search_attributes:{indexed_fields:{key:"HoldfastStatus" value:{data:"\"done\""}}}}), replay command is RecordMarker: (MarkerName:LocalActivity, Details:map[data:payloads:{metadata:{key:"encoding" value:"json/plain"} data:"{\"ActivityID\":\"2\",\"ActivityType\":\"close\",\"Attempt\":1}"}])`
	textExtra   = `[TMPRL1100] nondeterministic workflow: extra replay command for SignalExternalWorkflowExecution: (CommandType:SignalExternalWorkflowExecution, EventGroupMarkers:[len=0], Attributes:&{namespace:"default" execution:{workflow_id:"chat:turn-1"} signal_name:"cancel" control:"18" header:{}})`
	textMissing = `[TMPRL1100] nondeterministic workflow: missing replay command for TimerStarted: (TimerId:12, StartToFireTimeout:(Seconds:600, Nanos:0), WorkflowTaskCompletedEventId:11)`
	textChild   = `[TMPRL1100] nondeterministic workflow: missing replay command for StartChildWorkflowExecutionInitiated: (EventId:9, EventType:StartChildWorkflowExecutionInitiated, Attributes:&{namespace:"default" workflow_id:"chat:turn-1" workflow_type:{name:"Turn"} task_queue:{name:"holdfast"}})`
)

func TestWhatTemporalSaysIsExplained(t *testing.T) {
	t.Parallel()
	const turn = "put the change under a number in versioning/table.go, with the old code kept for runs like this one, or let a worker of the build that wrote it go on"
	for _, c := range []struct {
		text string
		want Finding
	}{
		{textRenamed, Finding{26, "activity tool", "activity refund", "another command stands in its place: it was renamed, or the order has changed", turn}},
		{textSwapped, Finding{14, "local activity close", "search attributes", "another command stands in its place: it was renamed, or the order has changed", turn}},
		{textExtra, Finding{0, "signal cancel", "nothing", "a command was added, or comes sooner than it did", turn}},
		{textMissing, Finding{12, "nothing", "timer 600s", "a command was removed, or comes later than it did", turn}},
		{textChild, Finding{9, "nothing", "child workflow Turn", "a command was removed, or comes later than it did", turn}},
		{
			`[TMPRL1100] During replay, a matching ChildWorkflow command was expected in history event position chat:turn-9. However, the replayed code did not produce that. Possible causes are nondeterministic workflow definition code, or an incompatible change in the workflow definition.`,
			Finding{0, "nothing", "child workflow chat:turn-9", "a command was removed, or comes later than it did", turn},
		},
		{
			`[TMPRL1100] During replay, a matching Timer command was expected in history event position 99. However, the replayed code did not produce that.`,
			Finding{99, "nothing", "timer 99", "a command was removed, or comes later than it did", turn},
		},
		{
			`[TMPRL1100] lookup failed for scheduledEventID to activityID: scheduleEventID: 29, activityID: 32`,
			Finding{29, "nothing", "activity", "a command was removed, or comes later than it did", turn},
		},
		{
			`[TMPRL1100] unable to find activityID for the scheduledEventID: 29`,
			Finding{29, "nothing", "activity", "a command was removed, or comes later than it did", turn},
		},
		{
			`[TMPRL1100] code executed local activity close, but history event found seal, markerData: payloads:{data:"{}"}`,
			Finding{0, "local activity close", "local activity seal", "another command stands in its place: it was renamed, or the order has changed", turn},
		},
		{
			`[TMPRL1100] invalid state transition: attempt to handleCanceledEvent, CommandType: Timer, ID: 27, state=Initiated, isDone()=false, history=[Created handleCommandSent]`,
			Finding{0, "the same command in another state", "timer 27: canceled", "the code did something else with a command before history went on with it", turn},
		},
		{
			`[TMPRL1100] No cached result found for side effectID=3. KnownSideEffects=[1 2]`,
			Finding{0, "", "", "the code does something else than history holds: No cached result found for side effectID=3. KnownSideEffects=[1 2]", turn},
		},
		{
			`[TMPRL1100] Workflow code is too old to support version 4 for "holdfast-Session" changeID. The maximum supported version is 1`,
			Finding{
				0, "number 1 or a lower one", "number 4 of Session", "the run carries number 4 of Session; the worker's build understands none above 1",
				"a worker of a newer build has to take it, one that understands number 4",
			},
		},
		{
			`[TMPRL1100] Workflow code removed support of version 1. for "holdfast-Turn" changeID. The oldest supported version is 2`,
			Finding{
				0, "number 2 or a higher one", "number 1 of Turn", "the run carries number 1 of Turn, which the worker's build does not have any more: it understands 2 and higher",
				"keep a worker of an older build until the last run of number 1 has ended; a number is retired after that only",
			},
		},
		{
			`[TMPRL1100] Workflow code removed support of version -1. for "holdfast-Turn" changeID. The oldest supported version is 1`,
			Finding{
				0, "number 1 or a higher one", "no number of Turn", "the run carries no number of Turn: it began before there was one, or its change id has been renamed",
				"a change id is never renamed: give it its name back, or keep a worker of the build that began the run",
			},
		},
		{
			`unable to find workflow type: Order. Supported types: [Session, Turn]`,
			Finding{1, "nothing", "workflow type Order", "the worker's build has no such workflow type", "only histories of Session and Turn can be replayed; a workflow type is never renamed"},
		},
		{
			`unknown SDK flag: 99`,
			Finding{0, "", "unknown SDK flag: 99", "the history was written with a newer Temporal SDK than that of the worker's build", "a worker of a build with that SDK has to take the run"},
		},
	} {
		got, ok := ExplainText(c.text)
		if diff := cmp.Diff(c.want, got); !ok || diff != "" {
			t.Errorf("%s\n%v %s", c.text, ok, diff)
		}
	}
}

// The texts are those that package versioning makes, whatever they come to be.
func TestARefusedCheckpointIsExplained(t *testing.T) {
	t.Parallel()
	type state struct {
		A int `json:"a"`
	}
	good, err := versioning.Seal(1, state{1})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := versioning.Seal(1, map[string]int{"b": 1})
	if err != nil {
		t.Fatal(err)
	}
	newer, altered := *good, *good
	newer.Schema, altered.State = 7, `{"a":2}`
	failing := func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no way") }
	for name, c := range map[string]struct {
		err           error
		cause, advice string
	}{
		"newer":   {versioning.Open(&newer, nil, new(state)), "is of schema 7, which the worker's build does not know", "a worker of a newer build has to take this run"},
		"altered": {versioning.Open(&altered, nil, new(state)), "was altered", "holdfast recover"},
		"unknown": {versioning.Open(unknown, nil, new(state)), `unknown field "b"`, "holdfast recover"},
		"failing": {versioning.Open(good, []versioning.Upgrade{failing}, new(state)), "upgrade to schema 2 failed: no way", "holdfast recover"},
	} {
		f, ok := ExplainText(c.err.Error())
		if !ok || !strings.Contains(f.Cause, c.cause) || !strings.Contains(f.Advice, c.advice) {
			t.Errorf("%s: %v became %v %+v", name, c.err, ok, f)
		}
	}
}

func TestATextAboutSomethingElseIsNotExplained(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "activity timed out", "[TMPRL1101] Potential deadlock detected", "runtime error: index out of range"} {
		if f, ok := ExplainText(text); ok {
			t.Errorf("%q is explained as %+v", text, f)
		}
	}
}

// A worker's text is foreign: it may be anything, as long as anything, and never makes a finding long.
func FuzzExplainText(f *testing.F) {
	for _, text := range []string{textRenamed, textSwapped, textExtra, textMissing, textChild} {
		f.Add(text)
		f.Add(strings.ReplaceAll(text, "(", "((("))
		f.Add(text[:len(text)/2])
	}
	f.Add(`checkpoint of schema 99999999999999999999 refused: ` + strings.Repeat("x", 1<<16))
	f.Add(`[TMPRL1100] Workflow code is too old to support version -0 for "" changeID. The maximum supported version is 999999999999`)
	f.Add(`a matching ` + strings.Repeat("x", 1<<12) + ` command was expected in history event position ` + strings.Repeat("y", 1<<12) + `. However`)
	f.Fuzz(func(t *testing.T, text string) {
		found, ok := ExplainText(text)
		if ok && (found.Cause == "" || found.Advice == "") {
			t.Errorf("%q: %+v", text, found)
		}
		if n := len(found.Wanted + found.Recorded + found.Cause + found.Advice); n > 4<<10 {
			t.Errorf("%d bytes of finding for %d of text", n, len(text))
		}
	})
}
