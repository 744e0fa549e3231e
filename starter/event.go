package starter

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// An event is one thing that happened to a turn, as its history has it. Its JSON form is what -o json
// prints; see the help topic "json".
type event struct {
	Type     string    `json:"type"`
	Time     time.Time `json:"time,omitzero"`
	Session  string    `json:"session,omitempty"`
	Workflow string    `json:"workflow,omitempty"`
	Run      string    `json:"run,omitempty"`
	ID       int64     `json:"id,omitempty"` // of the event in the workflow's history
	Turn     int       `json:"turn,omitempty"`
	Step     int       `json:"step,omitempty"`
	Call     int       `json:"call,omitempty"`
	Text     string    `json:"text"` // for a person

	Tool    string        `json:"tool,omitempty"`
	Args    string        `json:"args,omitempty"`
	Key     string        `json:"key,omitempty"`
	State   agent.State   `json:"state,omitempty"`
	Note    string        `json:"note,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	Model   string        `json:"model,omitempty"`
	Usage   *agent.Usage  `json:"usage,omitempty"`
	Status  agent.Status  `json:"status,omitempty"`
	Reason  *agent.Reason `json:"reason,omitempty"`
	Cursor  cursor        `json:"cursor,omitempty"`

	Approval string           `json:"approval,omitempty"` // id of the request
	Digest   agent.Digest     `json:"digest,omitempty"`   // of the action that a decision must name
	Verdict  *agent.Verdict   `json:"verdict,omitempty"`
	Decision agent.Choice     `json:"decision,omitempty"`
	By       string           `json:"by,omitempty"`     // a person, with "(claimed)" when no signature proves it
	Undoes   string           `json:"undoes,omitempty"` // key of the effect that the action compensates
	Cancel   agent.CancelFact `json:"cancel,omitempty"`
	Expires  time.Time        `json:"expires,omitzero"`
	Command  string           `json:"command,omitempty"` // that answers it
	Boundary []boundary       `json:"boundary,omitempty"`
}

// Types of events.
const (
	evTurnStarted   = "turn.started"
	evTurnContinued = "turn.continued"
	evTurnWaiting   = "turn.waiting"
	evTurnResumed   = "turn.resumed"
	evTurnSignal    = "turn.signal"
	evTurnEnded     = "turn.ended"
	evModelAsked    = "model.asked"
	evModelAnswered = "model.answered"
	evModelFailed   = "model.failed"
	evToolStarted   = "tool.started"
	evToolEnded     = "tool.ended"
	evToolRefused   = "tool.refused"
	evToolFailed    = "tool.failed"
	evWorkerLost    = "worker.lost"
	evWorkerStuck   = "worker.stuck"
	evMessage       = "message.accepted"
	evSessionEnded  = "session.ended"
	evOther         = "other"
	evNotice        = "notice"

	evApprovalRequested = "approval.requested"
	evApprovalArrived   = "approval.arrived" // a decision, not looked into yet
	evApprovalDecided   = "approval.decided"
	evApprovalRefused   = "approval.refused" // a decision that does not count
	evApprovalExpired   = "approval.expired"
	evApprovalVoid      = "approval.void"

	evEffectUncertain = "effect.uncertain"
	evEffectSettled   = "effect.settled"
	evEffectRefused   = "effect.refused" // a settlement that does not count
	evEffectConflict  = "effect.conflict"

	evUndoPlanned = "compensation.planned"
	evUndoStarted = "compensation.started"
	evUndoEnded   = "compensation.ended"
	evUndoFailed  = "compensation.failed"

	evBudget = "budget.exhausted"

	evVersion = "version.crossed"
	evForked  = "session.forked"
)
