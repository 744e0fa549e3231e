package replay

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/workflows"
)

const (
	started   = `{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED","workflowExecutionStartedEventAttributes":{"workflowType":{"name":"Turn"}}}`
	scheduled = `{"eventId":"2","eventType":"EVENT_TYPE_WORKFLOW_TASK_SCHEDULED","workflowTaskScheduledEventAttributes":{}}`
)

func TestWhatIsNoHistoryIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing at all", ``, "not the JSON of a history"},
		{"no JSON", `a history`, "not the JSON of a history"},
		{"binary", "\x00\xff\xfe", "not the JSON of a history"},
		{"cut off", `{"events":[` + started + `,{"eventId":"2","ev`, "not the JSON of a history"},
		{"a list", `[` + started + `]`, "not the JSON of a history"},
		{"another object", `{"hello":1}`, "no events"},
		{"null", `null`, "not the JSON of a history"},
		{"no events", `{"events":[]}`, "no events"},
		{"events of another kind", `{"events":[1,2]}`, "not the JSON of a history"},
		{"an event without a type", `{"events":[{"eventId":"1"}]}`, "event 1 of the history is of no type"},
		{"an event without attributes", `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_TIMER_FIRED"}]}`, "event 1 of the history (TimerFired) has no attributes"},
		{
			"another event's attributes", `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_TIMER_FIRED","timerStartedEventAttributes":{}}]}`,
			"says TimerFired and carries timer_started_event_attributes",
		},
		{"events missing", `{"events":[` + started + `,` + strings.Replace(scheduled, `"2"`, `"5"`, 1) + `]}`, "event 2 of the history is missing: its place has event 5"},
		{"the beginning missing", `{"events":[` + scheduled + `]}`, "event 1 of the history is missing"},
		{"another beginning", `{"events":[` + strings.Replace(scheduled, `"2"`, `"1"`, 1) + `]}`, "begins with WorkflowTaskScheduled"},
		{"no workflow type", `{"events":[` + strings.Replace(started, "Turn", "", 1) + `]}`, "does not say of which workflow type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// The check of events leans on how the API names things.
func TestEveryTypeOfEventHasItsAttributes(t *testing.T) {
	t.Parallel()
	fields := (&historypb.HistoryEvent{}).ProtoReflect().Descriptor().Oneofs().ByName("attributes").Fields()
	names := map[string]bool{}
	for i := range fields.Len() {
		names[string(fields.Get(i).Name())] = true
	}
	for number, name := range enumspb.EventType_name {
		if number != 0 && !names[attributesOf(enumspb.EventType(number))] {
			t.Errorf("type %s: no field %q", name, attributesOf(enumspb.EventType(number)))
		}
	}
}

// FuzzRead holds that whatever a file has in it, the answer is a history or an error.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../../tests/histories/*/turn-done.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no recorded history to begin with; run: make histories")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(bytes.ReplaceAll(b, []byte(`"eventId": "9"`), []byte(`"eventId": "8"`)))
	}
	f.Add([]byte(`{"events":[` + started + `,` + scheduled + `]}`))
	r := Replayer{Register: func(r worker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) }}
	f.Fuzz(func(_ *testing.T, b []byte) {
		if h, err := Read(bytes.NewReader(b)); err == nil {
			_ = r.Replay(h)
		}
	})
}
