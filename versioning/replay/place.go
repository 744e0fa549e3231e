package replay

import (
	"slices"
	"strconv"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A clue is what the SDK says of a command that history goes on with, in its own words (sdk-go
// internal_command_state_machine.go).
type clue struct {
	event    int64  // that the command left, or 0 and
	kind, id string // what the SDK calls it
	// then is what becomes of it, as one of [whatBecomes]; "" is that it was asked for.
	then string
}

// A place is an event of a history and what it says; the zero one is none.
type place struct {
	event int64
	what  string
}

// find asks history what a clue is about.
func (c clue) find(h *historypb.History) place {
	for _, e := range h.GetEvents() {
		if !c.asked(e) {
			continue
		}
		for _, later := range h.GetEvents() {
			if c.became(later) && of(later, e) {
				return place{later.GetEventId(), later.GetEventType().String() + " of " + inWords(e)}
			}
		}
		return place{e.GetEventId(), inWords(e)}
	}
	return place{}
}

// asked says whether an event is there because the command was asked for.
func (c clue) asked(e *historypb.HistoryEvent) bool {
	if c.event != 0 {
		return e.GetEventId() == c.event
	}
	id := ""
	switch c.kind {
	case "Activity":
		id = e.GetActivityTaskScheduledEventAttributes().GetActivityId()
	case "RequestCancelActivityTask":
		id = strconv.FormatInt(e.GetEventId(), 10)
	case "Timer", "CancelTimer":
		id = e.GetTimerStartedEventAttributes().GetTimerId()
	case "ChildWorkflow":
		id = e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowId()
	case "Signal":
		id = e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetControl() //nolint:staticcheck // the SDK keeps it there
	case "Cancellation":
		id = e.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes().GetControl() //nolint:staticcheck // the SDK keeps it there
	}
	return id != "" && id == c.id
}

// whatBecomes of a command is said by events whose types end like this.
var whatBecomes = map[string][]string{
	"Started":          {"Started"},
	"InitiationFailed": {"Failed"},
	"Completion":       {"Completed", "Failed", "TimedOut", "Terminated", "Fired", "Signaled", "CancelRequested"},
	"Canceled":         {"Canceled"},
	"CancelInitiated":  {"CancelRequested", "RequestCancelExternalWorkflowExecutionInitiated"},
	"CancelFailed":     {"RequestCancelExternalWorkflowExecutionFailed"},
	"ended":            {"Completed", "Failed", "TimedOut", "Canceled"},
}

func (c clue) became(e *historypb.HistoryEvent) bool {
	return slices.ContainsFunc(whatBecomes[c.then], func(end string) bool { return strings.HasSuffix(e.GetEventType().String(), end) })
}

// of says whether an event is about what was asked for with another one.
func of(e, asked *historypb.HistoryEvent) bool {
	if a := e.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes(); a != nil {
		child := asked.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		return child != nil && child.GetWorkflowId() == a.GetWorkflowExecution().GetWorkflowId()
	}
	m := e.ProtoReflect()
	a := m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))).Message()
	return slices.ContainsFunc([]protoreflect.Name{"scheduled_event_id", "initiated_event_id", "started_event_id"}, func(name protoreflect.Name) bool {
		f := a.Descriptor().Fields().ByName(name)
		return f != nil && a.Get(f).Int() == asked.GetEventId()
	})
}

// inWords says what was asked for: of a timer, also what for.
func inWords(e *historypb.HistoryEvent) string {
	c, ok := fromEvent(e)
	if !ok {
		return commandName(e.GetEventType().String())
	}
	if s := e.GetUserMetadata().GetSummary(); c.kind == kindTimer && s != nil {
		c.fields = append(c.fields, field{name: "summary", value: clip(payload(s), maxClipped)})
	}
	return c.String()
}
