package agent

// Bounds of a session. They are part of the workflow's behaviour: a change goes through package
// versioning.
const (
	MaxQueue   = 100       // messages that wait for their turn
	MaxMessage = 128 << 10 // bytes of a message's text
	MaxSeen    = 1000      // message ids remembered for deduplication
	MaxID      = 128       // bytes of a message id
	// MaxUnresolved is how many effects a session keeps whose outcome nobody knows; with more it takes
	// no message until some are settled.
	MaxUnresolved = 1000
	MaxCommands   = 10 // orders to compensate that wait
)

// SessionInput is the argument of the Session workflow.
type SessionInput struct {
	Agent  string `json:"agent"`
	Tenant string `json:"tenant,omitempty"`
	// Fork makes the session begin where a turn of another one ended. Such a session starts with an empty
	// checkpoint of schema 3, which a build that knows nothing of forks refuses.
	Fork *Fork `json:"fork,omitempty"`
	// Checkpoint carries a continued session's state; nil at its start.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// SendResult is the answer of the update "send".
type SendResult struct {
	// Turn is the turn that takes the message; 0 while it waits for one.
	Turn int `json:"turn,omitempty"`
	// Ahead is how many messages wait before it.
	Ahead int `json:"ahead,omitempty"`
	// Duplicate says that the same message had been accepted before.
	Duplicate bool `json:"duplicate,omitempty"`
	// Steered says that it goes to the running turn.
	Steered bool `json:"steered,omitempty"`
}

// Close is the payload of the signal "close".
type Close struct {
	// AcceptUncertain closes over effects whose outcome nobody knows; without it the session stays
	// open and says so.
	AcceptUncertain bool   `json:"acceptUncertain,omitempty"`
	From            string `json:"from,omitempty"`
}

// SessionView is the answer of the query "session".
type SessionView struct {
	Scope
	Agent   string `json:"agent"`
	Tenant  string `json:"tenant,omitempty"`
	Turns   int    `json:"turns"`             // started so far
	Running int    `json:"running,omitempty"` // the turn that runs now
	Queued  int    `json:"queued,omitempty"`
	Closing bool   `json:"closing,omitempty"`
	// Refused says why a close was not carried out.
	Refused    string      `json:"refused,omitempty"`
	Head       Head        `json:"head"`
	Unresolved []Effect    `json:"unresolved,omitempty"`
	Undoing    string      `json:"undoing,omitempty"` // workflow id of the late compensation that runs
	Spent      Budget      `json:"spent,omitzero"`
	Granted    Budget      `json:"granted,omitzero"`
	Usage      Usage       `json:"usage"`
	Last       *TurnResult `json:"last,omitempty"`
	Store      string      `json:"store,omitempty"`
	// By is what the last turn worked with, Origin where the session was forked from.
	By     Identity `json:"by,omitzero"`
	Origin *Origin  `json:"origin,omitempty"`
	Change int      `json:"change,omitempty"` // its change number: see package versioning
}

// SessionResult is how a session ends.
type SessionResult struct {
	Turns      int      `json:"turns"`
	Head       Head     `json:"head"`
	Unresolved []Effect `json:"unresolved,omitempty"`
	// Dropped are the ids of messages that were accepted and never given to a turn.
	Dropped []string `json:"dropped,omitempty"`
	Usage   Usage    `json:"usage"`
	Origin  *Origin  `json:"origin,omitempty"`
	Closing Digest   `json:"closing,omitempty"` // of the last turn's closing record
}
