package replay

import (
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// check refuses what cannot be the history of a run. Temporal's replay takes much of it for granted.
func check(h *historypb.History) error {
	events := h.GetEvents()
	if len(events) == 0 {
		return errors.New("history has no events; was it cut off?")
	}
	for i, e := range events {
		if err := checkEvent(e, int64(i)+1); err != nil {
			return err
		}
	}
	started := events[0].GetWorkflowExecutionStartedEventAttributes()
	switch {
	case started == nil:
		return fmt.Errorf("the history begins with %s; want all of it, from WorkflowExecutionStarted on", events[0].GetEventType())
	case started.GetWorkflowType().GetName() == "":
		return errors.New("the history does not say of which workflow type it is")
	}
	return nil
}

// checkEvent wants an event in its place and with what its type says.
func checkEvent(e *historypb.HistoryEvent, place int64) error {
	switch {
	case e == nil:
		return fmt.Errorf("event %d of the history is null", place)
	case e.GetEventId() != place:
		return fmt.Errorf("event %d of the history is missing: its place has event %d", place, e.GetEventId())
	case e.GetEventType() == enumspb.EVENT_TYPE_UNSPECIFIED:
		return fmt.Errorf("event %d of the history is of no type that this build knows", place)
	}
	return checkAttributes(e)
}

// ErrNotRun reports a run whose code has not run yet: there is nothing that a build could do otherwise.
var ErrNotRun = errors.New("no workflow task of the history is completed: nothing of the workflow's code has run yet")

// settled returns history up to the end of its last completed workflow task. What came later woke nobody yet,
// or only a task that did not end; Temporal's replay would run the code for it and call what it asks for too
// much. It is nil when no task was completed.
func settled(h *historypb.History) *historypb.History {
	events := h.GetEvents()
	last := -1
	for i, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	end := last + 1
	for end < len(events) && Asked(events[end]) {
		end++
	}
	return &historypb.History{Events: events[:end]}
}

// Asked says whether an event is there because workflow code asked for it: such events follow the completed
// workflow task in which it did, all at once.
func Asked(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return true
	}
	m := e.ProtoReflect()
	a := m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))).Message()
	f := a.Descriptor().Fields().ByName("workflow_task_completed_event_id")
	return f != nil && a.Has(f)
}

// checkAttributes wants an event to carry what its type says.
func checkAttributes(e *historypb.HistoryEvent) error {
	m := e.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))
	if field == nil {
		return fmt.Errorf("event %d of the history (%s) has no attributes", e.GetEventId(), e.GetEventType())
	}
	if string(field.Name()) != attributesOf(e.GetEventType()) {
		return fmt.Errorf("event %d of the history says %s and carries %s", e.GetEventId(), e.GetEventType(), field.Name())
	}
	return nil
}

// attributesOf returns the name of the field that carries the attributes of a type: they are named alike,
// EVENT_TYPE_TIMER_STARTED and timer_started_event_attributes.
func attributesOf(t enumspb.EventType) string {
	v := t.Descriptor().Values().ByNumber(t.Number())
	if v == nil {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), "EVENT_TYPE_")) + "_event_attributes"
}
