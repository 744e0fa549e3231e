package deploy

import (
	"github.com/holdfast-run/holdfast/agent"
)

// made is what an open run was made with, as its own state says it: a session's last turn, or a turn.
type made struct {
	workflow string
	run      string
	typ      string // agent.WorkflowSession or agent.WorkflowTurn
	scope    agent.Scope
	agent    string
	change   int // the change number of the run, 0 if it has none
	by       agent.Identity
	holds    bool      // a session that holds its definition and hands it to its next turn
	turns    int       // of a session: that have ended
	store    string    // identity of the store that it uses, empty before its first turn
	serial   int64     // the highest serial of a configuration that it has seen
	requests []request // that wait for people
	open     []string  // the tools of its effects whose outcome nobody knows, each once
	over     bool      // it ended while it was looked at
	home     string    // the build that Temporal keeps the run on, empty if any worker may take it
}

// A request asks people for an action of a tool.
type request struct {
	tool    string
	version agent.Digest // of the tool's declaration when it was asked for, empty if it is not known
}

// A Crossing is what becomes of one open run when this build takes over.
type Crossing struct {
	Workflow string         `json:"workflow"`
	Run      string         `json:"run"`
	Type     string         `json:"type"`
	Agent    string         `json:"agent"`
	Change   int            `json:"change,omitempty"`
	By       agent.Identity `json:"by,omitzero"` // what it was made with, as far as anything says it
	// Upgrade is what the policy in force says about its agent's definition; empty for an agent that is gone.
	Upgrade agent.Upgrade `json:"upgrade,omitempty"`
	Drifts  []Drift       `json:"drift,omitempty"`
	Errors  []Trouble     `json:"errors,omitempty"`
	Notes   []Trouble     `json:"notes,omitempty"`
}

// Kinds of drift.
const (
	DriftDefinition = "definition" // of the agent: instructions, model, tools, limits
	DriftPolicy     = "policy"
	DriftBuild      = "build"
)

// A Drift is one thing that this build would do with something else than the run was made with.
type Drift struct {
	Kind string `json:"kind"`
	From string `json:"from"` // a digest or a build; empty if nothing says it
	To   string `json:"to"`
	// Changes say in words what differs between two definitions.
	Changes []string `json:"changes,omitempty"`
	Then    Fate     `json:"then"`
}

// A Fate is what becomes of a run that drifts.
type Fate string

// The fates. The first three are a session's, by the upgrade policy in force.
const (
	FateTakes Fate = "takes" // the new definition, at its next turn
	FateKeeps Fate = "keeps" // the old definition
	FateAsks  Fate = "asks"  // people at its next turn, and keeps the old definition until they approve
	FateEnds  Fate = "ends"  // a turn ends with the definition that it was opened with
	FateMoves Fate = "moves" // what is new counts from now on
	FateStays Fate = "stays" // Temporal keeps the run on its build until it ends
)

// Kinds of trouble.
const (
	TroubleAgent      = "agent"      // the configuration does not have it
	TroubleDefinition = "definition" // the store does not have it
	TroubleTool       = "tool"       // this build does not have that version of it
	TroubleModel      = "model"      // likewise
	TroubleRequest    = "request"    // waits for a tool in a version that this build does not have
	TroubleEffect     = "effect"     // nobody can ask what became of it
	TroubleStore      = "store"      // the run uses another one
	TroubleSerial     = "serial"     // the configuration's is below one that the run has seen
	TroubleState      = "state"      // what the run was made with could not be read from it
)

// A Trouble is something that a run would run into. As an error it would stop the run's work or take from it
// what it was promised; as a note the run goes on, otherwise than before.
type Trouble struct {
	Kind string `json:"kind"`
	What string `json:"what"`
	Do   string `json:"do,omitempty"`
}
