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
)
