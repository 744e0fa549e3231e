package agent

import "time"

// A Class is what a tool declares about being sent twice.
type Class string

// The effect classes. The zero value means ClassOnce: an undeclared tool is the most dangerous kind.
const (
	// ClassRead changes nothing and is retried freely.
	ClassRead Class = "read"
	// ClassIdempotent honours the idempotency key inside its window: the same key is sent again.
	ClassIdempotent Class = "idempotent"
	// ClassReconcilable can be asked, by key or business reference, what became of an attempt.
	ClassReconcilable Class = "reconcilable"
	// ClassOnce is never sent again after an attempt that may have sent.
	ClassOnce Class = "once"
)

// A State is where an effect stands in the ledger. Package effect decides which transitions there are.
type State string

// The states of an effect.
const (
	StateRequested          State = "requested"
	StateDenied             State = "denied"
	StateAwaitingApproval   State = "awaiting_approval"
	StateAuthorized         State = "authorized"
	StateDeclined           State = "declined"
	StateExpired            State = "expired"
	StateCancelled          State = "cancelled"
	StateSuperseded         State = "superseded"
	StateVoid               State = "void"
	StateDispatched         State = "dispatched"
	StateAcknowledged       State = "acknowledged"
	StateCommitted          State = "committed"
	StateFailed             State = "failed"
	StateUncertain          State = "uncertain"
	StateCompensating       State = "compensating"
	StateCompensated        State = "compensated"
	StateCompensationFailed State = "compensation_failed"
	StateIrreversible       State = "irreversible"
)

// An Effect is one action that may have changed the world, as the ledger holds it.
type Effect struct {
	Key    string `json:"key"`
	Tool   string `json:"tool"`
	Place  Place  `json:"place"`
	Class  Class  `json:"class"`
	State  State  `json:"state"`
	Action Digest `json:"action"`
	// Intent finds the same action asked for again: the first 16 hex digits of the intent digest.
	Intent string `json:"intent"`
	// Attempt is the attempt that dispatched, 0 when none did.
	Attempt int       `json:"attempt,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Note    string    `json:"note,omitempty"` // why it is in this state, for a person; masked, short
	// Conflict says that a late outcome contradicts the state, which it does not change.
	Conflict string `json:"conflict,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Summary is a line for a person: "refund order 42".
	Summary string  `json:"summary,omitempty"`
	Verdict Verdict `json:"verdict,omitzero"` // the latest
	// Approval is the id of the latest request for it, "" if none was made.
	Approval string `json:"approval,omitempty"`
	// Undoes is the key of the effect that this one compensates.
	Undoes string `json:"undoes,omitempty"`
	// Undone counts the compensations of this effect that were tried.
	Undone int `json:"undone,omitempty"`
	// Cancel is what became of a wish to stop it.
	Cancel CancelFact `json:"cancel,omitempty"`
	// Evidence says how its outcome is known: "the destination answered", "found by asking the
	// destination", who settled it and by what.
	Evidence string `json:"evidence,omitempty"`
	// Looked says who looked at what contradicts itself or could not be undone, and what they saw; then
	// nobody needs to look again. The state stays as it was.
	Looked string `json:"looked,omitempty"`
	// Trail has the states that it went through, oldest first; of a long one the first and the latest.
	Trail []Stamp `json:"trail,omitempty"`
}

// A Stamp is one transition of an effect.
type Stamp struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
	By    string    `json:"by,omitempty"` // a person, with "(claimed)" when unsigned; empty is the turn itself
	Note  string    `json:"note,omitempty"`
}

// A CancelFact is what became of a wish to stop an action that was under way.
type CancelFact string

// The facts about a cancellation.
const (
	CancelAsked     CancelFact = "asked"     // and no answer yet
	CancelAccepted  CancelFact = "accepted"  // the tool stopped it
	CancelRefused   CancelFact = "refused"   // the tool cannot or would not stop it
	CancelCompleted CancelFact = "completed" // it had committed before it could be stopped
	CancelLate      CancelFact = "late"      // its outcome came after the turn had ended
)

// A Count says how many settled effects of a turn ended in a state and are kept as a number only. Each still
// has its result record in the store.
type Count struct {
	State State `json:"state"`
	N     int   `json:"n"`
}
