package replay

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// commandNames are the names that Temporal gives to commands, to the events that they leave and to the SDK's own
// notion of them, in our words.
var commandNames = map[string]string{
	"ScheduleActivityTask": string(kindActivity), "ActivityTaskScheduled": string(kindActivity), "Activity": string(kindActivity),
	"StartTimer": string(kindTimer), "TimerStarted": string(kindTimer), "Timer": string(kindTimer),
	"StartChildWorkflowExecution": string(kindChild), "StartChildWorkflowExecutionInitiated": string(kindChild), "ChildWorkflow": string(kindChild),
	"SignalExternalWorkflowExecution": string(kindSignal), "SignalExternalWorkflowExecutionInitiated": string(kindSignal), "Signal": string(kindSignal),
	"UpsertWorkflowSearchAttributes": string(kindAttributes), "UpsertSearchAttributes": string(kindAttributes),
	"RecordMarker": "marker", "MarkerRecorded": "marker", "Marker": "marker",
	"CancelTimer": "cancelling a timer", "TimerCanceled": "cancelling a timer",
	"RequestCancelActivityTask": "cancelling an activity", "ActivityTaskCancelRequested": "cancelling an activity",
	"CompleteWorkflowExecution": whatEnd + ": " + endCompleted, "WorkflowExecutionCompleted": whatEnd + ": " + endCompleted,
	"FailWorkflowExecution": whatEnd + ": " + endFailed, "WorkflowExecutionFailed": whatEnd + ": " + endFailed,
	"CancelWorkflowExecution": whatEnd + ": " + endCancelled, "WorkflowExecutionCanceled": whatEnd + ": " + endCancelled,
	"ContinueAsNewWorkflowExecution": whatEnd + ": " + endContinued, "WorkflowExecutionContinuedAsNew": whatEnd + ": " + endContinued,
	"ProtocolMessage": "answer to an update", "WorkflowExecutionUpdateAccepted": "answer to an update", "WorkflowExecutionUpdateCompleted": "answer to an update",
}

func commandName(theirs string) string { return cmp.Or(commandNames[theirs], clip(theirs, maxClipped)) }

// How the SDK prints what a command is called (sdk-go internal/common/util/stringer.go): some commands and events
// field by field, the others as protobuf's text.
var (
	printedName   = regexp.MustCompile(`(?:ActivityType|WorkflowType):\(Name:([^)]*)\)|workflow_type:\{name:"([^"]*)"|signal_name:"([^"]*)"`)
	printedLocal  = regexp.MustCompile(`ActivityType\\*":\\*"([^"\\]*)`)
	printedMarker = regexp.MustCompile(`MarkerName:(\w+)`)
	printedTimer  = regexp.MustCompile(`StartToFireTimeout:\(Seconds:(\d+)`)
	printedID     = regexp.MustCompile(`\((?:ActivityId|TimerId):([^,)]*)`)
	printedAsked  = regexp.MustCompile(`\bScheduledEventId:(\d+)`)
	printedEvent  = regexp.MustCompile(`\(EventId:(\d+)`)
	printedTask   = regexp.MustCompile(`WorkflowTaskCompletedEventId:(\d+)|workflow_task_completed_event_id:(\d+)`)
)

// named returns a printed command or event in our words: "activity tool", "timer 1h0m0s".
func named(printed string) string {
	theirs, rest, _ := strings.Cut(printed, ": ")
	name := commandName(theirs)
	switch name {
	case "marker":
		marker := first(printedMarker, rest)
		switch marker {
		case markerLocal:
			return strings.TrimSpace(string(kindLocal) + " " + clip(first(printedLocal, rest), maxClipped))
		case markerVersion:
			return "change number"
		}
		return strings.TrimSpace(name + " " + marker)
	case string(kindTimer):
		if s := first(printedTimer, rest); s != "" {
			return name + " " + s + "s"
		}
		return name
	}
	return strings.TrimSpace(name + " " + clip(first(printedName, rest), maxClipped))
}

// printed returns what is to be looked for in history of a printed event.
func printed(event string) clue {
	theirs, rest, _ := strings.Cut(event, ": ")
	switch theirs {
	case "ActivityTaskScheduled":
		return clue{kind: "Activity", id: first(printedID, rest)}
	case "ActivityTaskCompleted", "ActivityTaskFailed", "ActivityTaskTimedOut", "ActivityTaskCanceled":
		id, _ := strconv.ParseInt(first(printedAsked, rest), 10, 64)
		return clue{event: id, then: "ended"}
	case "TimerStarted":
		return clue{kind: "Timer", id: first(printedID, rest)}
	case "TimerCanceled":
		return clue{kind: "Timer", id: first(printedID, rest), then: "Canceled"}
	}
	id, _ := strconv.ParseInt(first(printedEvent, rest), 10, 64)
	return clue{event: id}
}

// eventIn returns the number of a printed event. Some are printed without it: these stand behind the task that is.
func eventIn(printed string) int64 {
	if id, err := strconv.ParseInt(first(printedEvent, printed), 10, 64); err == nil {
		return id
	}
	if id, err := strconv.ParseInt(first(printedTask, printed), 10, 64); err == nil {
		return id + 1
	}
	return 0
}

// first returns the first group of a pattern that matched, or "".
func first(pattern *regexp.Regexp, s string) string {
	for i, group := range pattern.FindStringSubmatch(s) {
		if i > 0 && group != "" {
			return group
		}
	}
	return ""
}
