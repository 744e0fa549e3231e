package agent

import "time"

// An Upgrade says what becomes of a session when its agent is defined otherwise than in its last turn: other
// instructions, another model, tools that were added, taken away or declared anew. The operator's configuration
// that is in force says which; a turn that is running always goes on with the definition that it was opened with.
type Upgrade string

// The upgrades.
const (
	// UpgradeFollow takes the new definition at the next turn.
	UpgradeFollow Upgrade = "follow"
	// UpgradePin goes on with the old one, which the store keeps by its digest, and lets its tools run in the
	// versions that it names only.
	UpgradePin Upgrade = "pin"
	// UpgradeAsk asks people at the next turn: approved takes the new one, anything else goes on with the old.
	UpgradeAsk Upgrade = "ask"
)

// ToolUpgrade stands as the tool of a request for approval that asks for an upgrade. No tool can have the name.
const ToolUpgrade = "@upgrade"

// UpgradeArgs are the arguments of such a request, as people are shown them.
type UpgradeArgs struct {
	Agent string `json:"agent"`
	From  Digest `json:"from"` // of the definition that the session goes on with
	To    Digest `json:"to"`
	// Changes say in words what differs: "instructions", "model main -> large", "tool refund: another version".
	Changes []string `json:"changes"`
	// Instructions are the beginning of the new ones, if they differ.
	Instructions string `json:"instructions,omitempty"`
}

// An Offer is an upgrade that people are to decide on before a turn begins.
type Offer struct {
	To Digest `json:"to"` // the definition that an approval takes
	// Call is the request's action: ToolUpgrade, of class read, for nothing in the world changes.
	Call Call `json:"call"`
}

// Identity is what an opened turn works with, as far as others compare it: see "holdfast deploy check".
type Identity struct {
	Definition Digest `json:"definition,omitempty"`
	Policy     string `json:"policy,omitempty"` // first 16 hex digits of the policy version
	Build      string `json:"build,omitempty"`
}

// Fork says that a session begins where a turn of another one ended. It is part of [SessionInput] and is looked into
// by [ActivityFork] before the first turn.
type Fork struct {
	From Scope `json:"from"`
	Turn int   `json:"turn"` // the last turn that the new session knows of
	// Approver is who forks; policy has a right for it.
	Approver  string    `json:"approver"`
	Reason    string    `json:"reason,omitempty"`
	Time      time.Time `json:"time,omitzero"`
	Signature string    `json:"signature,omitempty"` // armored SSHSIG of the canonical statement
}

// An Origin is where a forked session came from.
type Origin struct {
	From Scope `json:"from"`
	Turn int   `json:"turn"`
	Head Head  `json:"head"` // of that turn's end
	// Root is the session that the first of all those forks was made of. The intents of the whole family are
	// claimed in its part of the store, so that no fork repeats what another one did.
	Root Scope     `json:"root"`
	By   string    `json:"by"` // who forked: "alice", or "alice (claimed)"
	At   time.Time `json:"at,omitzero"`
}

// ForkInput is the argument of [ActivityFork].
type ForkInput struct {
	Scope
	Agent  string `json:"agent"`
	Fork   Fork   `json:"fork"`
	Store  string `json:"store,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// ForkResult is the result of [ActivityFork].
type ForkResult struct {
	Origin Origin `json:"origin"`
	Store  string `json:"store"`
	Serial int64  `json:"serial,omitempty"`
}
