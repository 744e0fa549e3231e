package main

import (
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/internal/modeltest"
)

func TestActionsAreCountedAsTheListSays(t *testing.T) {
	t.Parallel()
	marker := func(task int64) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_MARKER_RECORDED, Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
			MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{WorkflowTaskCompletedEventId: task},
		}}
	}
	upsert := func(names ...string) *historypb.HistoryEvent {
		fields := map[string]*commonpb.Payload{}
		for _, n := range names {
			fields[n] = &commonpb.Payload{}
		}
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
			Attributes: &historypb.HistoryEvent_UpsertWorkflowSearchAttributesEventAttributes{
				UpsertWorkflowSearchAttributesEventAttributes: &historypb.UpsertWorkflowSearchAttributesEventAttributes{
					SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
				},
			},
		}
	}
	started := func(attempt int32) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
			ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{Attempt: attempt},
		}}
	}
	plain := func(e enumspb.EventType) *historypb.HistoryEvent { return &historypb.HistoryEvent{EventType: e} }
	for name, c := range map[string]struct {
		r    run
		want int
	}{
		"markers of one task are one":      {run{marker(3), marker(3), marker(9)}, 2},
		"an activity and its retries":      {run{plain(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), started(3), plain(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)}, 3},
		"the SDK's own attribute is free":  {run{upsert("TemporalChangeVersion")}, 0},
		"an upsert is one":                 {run{upsert("HoldfastStatus", "HoldfastAgent")}, 1},
		"a child is asked for and started": {run{plain(enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED), plain(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)}, 2},
		"workflow tasks are free":          {run{plain(enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED), plain(enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)}, 0},
	} {
		if got := c.r.tally().Actions; got != c.want {
			t.Errorf("%s: %d actions, want %d", name, got, c.want)
		}
	}
}

func TestCPUTimeIsReadWhateverTheProcessIsCalled(t *testing.T) {
	t.Parallel()
	got, err := parseStat([]byte("42 (a) b) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 1\n"))
	if err != nil || got != 3*time.Second {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "42 (a) R 1", "42 (a) R 1 2 3 4 5 6 7 8 9 10 x y 0"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestTheScriptAsksForEachStepOnceAndThenAnswers(t *testing.T) {
	t.Parallel()
	q := modeltest.Request{Tools: []string{toolActs}, Messages: []modeltest.Message{{Role: "user", Content: job{2, 8}.text()}}}
	for n := range 2 {
		if got := script(q); got.Finish != "tool_calls" {
			t.Fatalf("after %d results: %s", n, got.Message)
		}
		q.Messages = append(q.Messages, modeltest.Message{Role: "assistant"}, modeltest.Message{Role: "tool", Content: work(toolArgs{n, 8})})
	}
	if got := script(q); got.Finish != "stop" {
		t.Errorf("after both: %s", got.Message)
	}
}

func TestResultsHaveTheirSizeAndDiffer(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 8, kib, 16 * kib} {
		if got := len(work(toolArgs{1, size})); got != size {
			t.Errorf("%d bytes, want %d", got, size)
		}
	}
	if work(toolArgs{1, kib}) == work(toolArgs{2, kib}) {
		t.Error("two results are equal: the store would keep one")
	}
}

func TestPartsRunFromOneBeginningToTheNext(t *testing.T) {
	t.Parallel()
	begin := func(e *historypb.HistoryEvent) bool { return e.EventId%3 == 1 }
	var r run
	for id := range int64(8) {
		r = append(r, &historypb.HistoryEvent{EventId: id})
	}
	got := r.parts(begin) // 1 to 3, 4 to 6; 7 begins one that has no end
	if len(got) != 2 || got[0].Events != 3 || got[1].Events != 3 {
		t.Errorf("%+v", got)
	}
}
