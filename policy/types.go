package policy

import (
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
)

// A Posture is the first layer of a policy.
type Posture string

// The postures.
const (
	PosturePlan Posture = "plan" // reads only
	PostureAsk  Posture = "ask"  // every effect asks
	PostureAuto Posture = "auto" // the rules decide
)

// A Repeat says what becomes of an action that is identical to an effect which committed before in the session.
type Repeat string

// The repeats.
const (
	RepeatAsk   Repeat = "ask"
	RepeatAllow Repeat = "allow"
	RepeatDeny  Repeat = "deny"
)

// A Doubt says what becomes of a turn while the outcome of an effect is uncertain.
type Doubt string

// The doubts.
const (
	DoubtWait Doubt = "wait" // for a person who settles it
	DoubtTell Doubt = "tell" // the model that it is unknown and must not be repeated
)

// A Config is the policy part of the operator's configuration. Zero values mean the defaults.
type Config struct {
	Posture  Posture // default auto
	Rules    []Rule  // the operator's
	Agents   map[string]Layer
	Approval Asking // what an ask takes unless its rule says otherwise
	// Approvers are people by name.
	Approvers map[string]Approver
	// SelfApproval lets whoever sent the turn's messages decide. Default true.
	SelfApproval *bool
	// AcceptUnsigned lets decisions without a signature count where only a signature means anything: for
	// one person on one machine.
	AcceptUnsigned bool
	Duplicates     Repeat          // default ask
	Uncertain      Doubt           // default wait
	OnFailure      agent.Unwinding // default keep
	Rights         Rights
}

// A Layer is an agent's own part of the policy: it can only narrow.
type Layer struct {
	Posture Posture // "" adds nothing
	Rules   []Rule
}

// A Rule decides on the actions that its condition holds for.
type Rule struct {
	Name string
	When string // CEL; empty always holds
	Then agent.Decision
	// Approval is what this rule's ask takes, where it differs.
	Approval Asking
}

// Asking is what an ask takes. Zero values inherit.
type Asking struct {
	By       []string // names of approvers or groups; empty is anybody
	Quorum   int      // default 1
	Expires  time.Duration
	Escalate *Escalation
}

// DefaultExpires is how long a request waits.
const DefaultExpires = 24 * time.Hour

// An Escalation widens who may decide after a time.
type Escalation struct {
	After time.Duration
	To    []string
}

// An Approver is a person with the keys that prove them.
type Approver struct {
	Groups []string
	Keys   []Key
}

// A Key is an SSH public key.
type Key struct {
	Key     ssh.PublicKey
	Comment string
	Expires time.Time // zero is never
	Revoked bool
}

// Rights name who may do what else; empty is anybody, as with Asking.By.
type Rights struct {
	Settle     []string
	Compensate []string
	// Fork is part of the policy's version only where it names somebody, so that the version of a policy that does not
	// is what it was before there were forks.
	Fork []string `json:",omitempty"`
}

// A Request is an action to decide on.
type Request struct {
	Agent    agent.Definition // as the turn started with it
	Tool     string
	Class    agent.Class
	Risk     agent.Risk
	Args     string // canonical
	Resource string
	Scope    agent.Scope
	Senders  []agent.Actor
}
