package replay

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
)

// A kind groups commands that are compared with each other, in the order in which they were issued.
type kind string

const (
	kindActivity   kind = "activity"
	kindLocal      kind = "local activity"
	kindTimer      kind = "timer"
	kindChild      kind = "child workflow"
	kindSignal     kind = "signal"
	kindAttributes kind = "search attributes"
)

// A command is one thing that a run asked Temporal for, reduced to what is compared. It is made from an event
// or from what the code asks for now, and looks the same either way.
type command struct {
	event int64 // 0 when the code asks for it now
	// task is the started event of the workflow task in which it was asked for. The marker of a local activity
	// says when that ended, which may be a task later.
	task   int64
	kind   kind
	fields []field
	// dropped says whether the code has cancelled it, perhaps before Temporal heard of it: then it left
	// no event.
	dropped func() bool
}

// fieldInput names the arguments.
const fieldInput = "input"

// A field is one compared part of a command: text, or JSON as it was written.
type field struct {
	name, value string
	json        bool // two of equal values are the same
}

func (f field) same(g field) bool {
	return f == g || f.json && g.json && f.name == g.name && sameValue(f.value, g.value)
}

func (c command) same(d command) bool {
	for i, f := range c.fields {
		if !d.fields[i].same(f) {
			return false
		}
	}
	return true
}

// title names the command for a person: "activity tool". The first field is its name, where it has one.
func (c command) title() string {
	switch f := c.fields[0]; f.name {
	case "type", "id", "name":
		return string(c.kind) + " " + f.value
	}
	return string(c.kind)
}

// String returns all of a command in a line.
func (c command) String() string {
	parts := make([]string, 0, len(c.fields))
	for _, f := range c.fields {
		parts = append(parts, f.name+" "+f.value)
	}
	return string(c.kind) + " (" + strings.Join(parts, ", ") + ")"
}

// recorded returns the commands that history holds, by kind. Markers of change numbers are apart.
func recorded(h *historypb.History) map[kind][]command {
	out := map[kind][]command{}
	var task int64
	past := resetOf(h)
	for _, e := range h.GetEvents() {
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			task = a.GetStartedEventId() // what the code asked for in it follows at once
		}
		if c, ok := fromEvent(e); ok {
			c.event, c.task = e.GetEventId(), task
			out[c.kind] = append(out[c.kind], past.forget(c))
		}
	}
	return out
}

func fromEvent(e *historypb.HistoryEvent) (command, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		return activity(a.GetActivityType().GetName(), payloads(a.GetInput())), true
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		return timer(e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration()), true
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		return child(a.GetWorkflowId(), a.GetWorkflowType().GetName(), payloads(a.GetInput()), indexed(a.GetSearchAttributes().GetIndexedFields())), true
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		return signal(a.GetWorkflowExecution().GetWorkflowId(), a.GetSignalName(), payloads(a.GetInput())), true
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
		if _, ours := fields[changeAttribute]; ours {
			return command{}, false // GetVersion wrote it
		}
		return attributes(indexed(fields)), true
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		a := e.GetMarkerRecordedEventAttributes()
		if a.GetMarkerName() != markerLocal {
			return command{}, false
		}
		var data struct{ ActivityType string }
		decode(a.GetDetails()["data"], &data)
		return local(data.ActivityType), true
	}
	return command{}, false
}

// What the SDK calls its markers, their details and the search attribute that lists change numbers.
const (
	markerLocal     = "LocalActivity"
	markerVersion   = "Version"
	changeAttribute = "TemporalChangeVersion"
)

// versions returns the change ids that history holds a number for, by event.
func versions(h *historypb.History) map[int64]string {
	out := map[int64]string{}
	for _, e := range h.GetEvents() {
		a := e.GetMarkerRecordedEventAttributes()
		if a.GetMarkerName() == markerVersion {
			var id string
			decode(a.GetDetails()["change-id"], &id)
			out[e.GetEventId()] = id
		}
	}
	return out
}

func activity(typ, input string) command {
	return command{kind: kindActivity, fields: []field{{name: "type", value: typ}, argument(input)}}
}

func argument(input string) field { return field{name: fieldInput, value: input, json: true} }

func local(typ string) command {
	return command{kind: kindLocal, fields: []field{{name: "type", value: typ}}}
}

func timer(d time.Duration) command {
	return command{kind: kindTimer, fields: []field{{name: "duration", value: d.String()}}}
}

func child(id, typ, input, attributes string) command {
	return command{kind: kindChild, fields: []field{
		{name: "id", value: id}, {name: "type", value: typ}, argument(input), {name: "search attributes", value: attributes, json: true},
	}}
}

func signal(workflow, name, input string) command {
	return command{kind: kindSignal, fields: []field{{name: "name", value: name}, {name: "workflow", value: workflow}, argument(input)}}
}

func attributes(values string) command {
	return command{kind: kindAttributes, fields: []field{{name: "values", value: values, json: true}}}
}

// decode reads a marker's detail. A damaged one leaves v as it is: Temporal's replay says what is wrong.
func decode(p *commonpb.Payloads, v any) {
	_ = converter.GetDefaultDataConverter().FromPayloads(p, v)
}

// payloads returns arguments as they stand in history: the JSON itself, or its list if there are several.
func payloads(p *commonpb.Payloads) string {
	texts := make([]string, 0, len(p.GetPayloads()))
	for _, one := range p.GetPayloads() {
		texts = append(texts, payload(one))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ",") + "]"
}

func payload(p *commonpb.Payload) string {
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case converter.MetadataEncodingJSON:
		return string(p.GetData())
	case converter.MetadataEncodingNil:
		return "null"
	default:
		return strconv.Quote(encoding + ":" + base64.StdEncoding.EncodeToString(p.GetData()))
	}
}

// indexed returns search attributes as one JSON object in the order of their names.
func indexed(fields map[string]*commonpb.Payload) string {
	values := make(map[string]json.RawMessage, len(fields))
	for name, p := range fields {
		values[name] = json.RawMessage(payload(p))
	}
	b, err := json.Marshal(values)
	if err != nil {
		return strconv.Quote(err.Error()) // a payload that says it is JSON and is none
	}
	return string(b)
}

// said returns a failure's message, which a worker may have encoded with its payloads.
func said(f *failurepb.Failure) string {
	var encoded struct{ Message string }
	if p := f.GetEncodedAttributes(); p != nil && json.Unmarshal(p.GetData(), &encoded) == nil {
		return encoded.Message
	}
	return f.GetMessage()
}

// failure returns how a run failed as JSON, its payloads readable. Where it was thrown is no part of it.
func failure(f *failurepb.Failure) string {
	if f == nil {
		return "null"
	}
	fields := map[string]any{"message": said(f)}
	switch info := f.GetFailureInfo().(type) {
	case *failurepb.Failure_ApplicationFailureInfo:
		a := info.ApplicationFailureInfo
		fields["type"], fields["nonRetryable"] = a.GetType(), a.GetNonRetryable()
		fields["details"] = json.RawMessage(payloads(a.GetDetails()))
	case *failurepb.Failure_CanceledFailureInfo:
		fields["details"] = json.RawMessage(payloads(info.CanceledFailureInfo.GetDetails()))
	default:
		fields["other"] = protojson.Format(f)
	}
	if f.GetCause() != nil {
		fields["cause"] = json.RawMessage(failure(f.GetCause()))
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return string(b)
}
