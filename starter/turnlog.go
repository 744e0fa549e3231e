package starter

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// turnLog reads the histories of one turn's runs, event by event, and keeps what a reader wants to know at
// the end. It is given every event from the first of a run on, also those that were shown before.
type turnLog struct {
	decoder
	turn int
	// scheduled are the activities by the id of the event that scheduled them, in this run.
	scheduled map[int64]*activity
	order     []*activity // of all runs

	input   *agent.TurnInput
	opened  *agent.OpenResult
	waiting bool // for a person, as the last search attribute said
	ended   bool
	status  agent.Status
	reason  *agent.Reason
	result  *agent.TurnResult
	answer  *agent.ModelResult // the last one
	next    string             // the run that goes on after this one
	head    agent.Head         // the latest that is known
	from    agent.Head         // where the turn began
	began   *historypb.HistoryEvent
	last    *historypb.HistoryEvent
	now     time.Time // of the event that is being read

	undo      *agent.UndoInput // of a late compensation
	attention string           // what the run asks a person for
	approvals []*agent.Approval
	askers    map[string]string // the builds that asked for them, by the request's id
	effects   []*agent.Effect
	undos     []agent.Undo       // planned and not begun
	voids     map[string]int     // how often the authority of a key was void
	letters   []agent.Settlement // that came and were not answered yet
	timers    map[int64]string   // summaries by the id of the event that started them, in this run

	seen       versions   // that made what was read last
	crossed    []boundary // of the workflow code, until a step says where
	boundaries []boundary // of no step: at the turn's opening and at its end
	change     int        // the run's change number
	code       string     // the build whose workflow code goes on with the run
	deployment string     // with its name, "agents:v2"
	behavior   string     // pinned or auto_upgrade
	held       string     // the build that an operator holds the run on
}

// An activity is one that the turn scheduled and what became of it.
type activity struct {
	kind    string
	summary string
	model   *agent.ModelInput
	tool    *agent.ToolInput
	settle  *agent.SettleInput
	ask     *agent.ReconcileInput
	attempt int
	result  *agent.ModelResult
	outcome *agent.ToolResult
	trouble string // why there is no result
	open    bool
	// code is the build whose workflow code scheduled it, crossed the boundaries of versions at it.
	code    string
	crossed []boundary
}

func newTurnLog(d decoder, turn int) *turnLog {
	return &turnLog{
		decoder: d, turn: turn, scheduled: map[int64]*activity{}, timers: map[int64]string{}, voids: map[string]int{}, askers: map[string]string{},
		status: agent.StatusRunning, seen: versions{},
	}
}

// add takes the next event and returns what it says, usually one thing or nothing.
func (t *turnLog) add(ev *historypb.HistoryEvent) []event {
	t.now = time.Time{}
	if ts := ev.GetEventTime(); ts != nil && ts.IsValid() {
		t.now = ts.AsTime()
	}
	out := t.read(ev)
	for i := range out {
		out[i].ID, out[i].Turn, out[i].Time = ev.GetEventId(), t.turn, t.now
	}
	t.last = ev
	return out
}

func (t *turnLog) read(ev *historypb.HistoryEvent) []event {
	switch ev.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return t.started(ev)
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		return t.taskCompleted(ev)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return t.activityScheduled(ev)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := ev.GetActivityTaskStartedEventAttributes()
		return t.activityStarted(a.GetScheduledEventId(), int(a.GetAttempt()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return t.activityCompleted(ev)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := ev.GetActivityTaskFailedEventAttributes()
		return t.activityFailed(a.GetScheduledEventId(), t.failure(a.GetFailure()).String())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := ev.GetActivityTaskTimedOutEventAttributes()
		return t.activityFailed(a.GetScheduledEventId(), t.failure(a.GetFailure()).String())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		return t.activityFailed(ev.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), "stopped")
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		return t.marker(ev)
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return t.attributes(ev)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		t.timers[ev.GetEventId()] = t.text(ev.GetUserMetadata().GetSummary())
		return nil
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		return t.timerFired(ev)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		return t.signalled(ev)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return []event{{Type: evTurnSignal, Text: "asked to cancel"}}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
		return t.optionsUpdated(ev)
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		return t.taskFailed(ev)
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		return []event{{Type: evWorkerLost, Text: "the worker does not answer; any worker may go on"}}
	}
	if out, ok := t.closed(ev); ok {
		return out
	}
	return t.unknown(ev)
}

// quiet are events that say nothing to a person.
func quiet(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
		enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED, enumspb.EVENT_TYPE_TIMER_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
		return true
	}
	return false
}

// unknown shows an event that this version cannot say more of.
func (t *turnLog) unknown(ev *historypb.HistoryEvent) []event {
	if quiet(ev.GetEventType()) {
		return nil
	}
	name := ev.GetEventType().String()
	return []event{{Type: evOther, Text: fmt.Sprintf("event %d: %s", ev.GetEventId(), line(name, 60))}}
}

func (t *turnLog) started(ev *historypb.HistoryEvent) []event {
	a := ev.GetWorkflowExecutionStartedEventAttributes()
	clear(t.scheduled)
	clear(t.timers)
	t.ended, t.next = false, ""
	carried := a.GetSearchAttributes().GetIndexedFields() // of the run before
	t.attention = t.text(carried[agent.AttributeAttention])
	t.waiting = agent.Status(t.text(carried[agent.AttributeStatus])) == agent.StatusWaiting
	var in agent.TurnInput
	err := t.first(a.GetInput(), &in)
	if err == nil {
		t.input, t.undo = &in, in.Undo
		if t.head.Seq < in.Head.Seq {
			t.head = in.Head
		}
	}
	if t.began == nil {
		t.began, t.from = ev, in.Head
	}
	if a.GetContinuedExecutionRunId() != "" {
		return []event{{Type: evTurnContinued, Text: "goes on in a new run"}}
	}
	text := t.name() + " started"
	switch {
	case err != nil:
		text += " " + shown(err)
	case in.Agent != "":
		text += ": agent " + line(in.Agent, 64)
	}
	return []event{{Type: evTurnStarted, Text: text}}
}

// name is the turn for a line.
func (t *turnLog) name() string {
	if t.undo != nil {
		return fmt.Sprintf("compensation %d of turn %d", t.undo.M, t.undo.Turn)
	}
	return fmt.Sprintf("turn %d", t.turn)
}

func (t *turnLog) taskFailed(ev *historypb.HistoryEvent) []event {
	a := ev.GetWorkflowTaskFailedEventAttributes()
	switch a.GetCause() {
	case enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
		enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE, enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND:
		return nil // something new arrived meanwhile; the task is done again
	}
	why := a.GetFailure().GetMessage()
	if why == "" {
		why = a.GetCause().String()
	}
	return []event{{Type: evWorkerStuck, Text: "the worker cannot go on: " + line(why, 200), Note: why}}
}
