package agent

import "time"

// A Settlement is the payload of the signal "settle": a word on an effect whose outcome is not known. With a
// key alone it is a worker's: the receiver reads the record or asks the destination, so that a signal forges
// nothing.
type Settlement struct {
	Key string `json:"key"`
	// Outcome is "committed" or "failed", from a person who has looked.
	Outcome  State  `json:"outcome,omitempty"`
	Evidence string `json:"evidence,omitempty"` // what the person saw, at most MaxEvidence bytes
	Approver string `json:"approver,omitempty"`
	// Time and Signature are as in an ApprovalDecision.
	Time      time.Time `json:"time,omitzero"`
	Signature string    `json:"signature,omitempty"`
	Ref       string    `json:"ref,omitempty"`
}

// MaxEvidence bounds a settlement's evidence in bytes.
const MaxEvidence = 2 << 10

// SettleInput is the argument of [ActivitySettle].
type SettleInput struct {
	Scope
	Effect     Effect     `json:"effect"`
	Settlement Settlement `json:"settlement"`
	Senders    []Actor    `json:"senders,omitempty"`
	Run        string     `json:"run"`
	Store      string     `json:"store,omitempty"`
	Serial     int64      `json:"serial,omitempty"`
}

// SettleResult is the result of [ActivitySettle].
type SettleResult struct {
	// Key is the effect's: the marker of a local activity does not show its argument.
	Key string `json:"key,omitempty"`
	// Why says why the settlement does not count; empty when it does.
	Why    string     `json:"why,omitempty"`
	Result ToolResult `json:"result"`
	// Looked says that the word changes no state: the outcome was final, and a person has looked at what
	// contradicted it or could not be undone.
	Looked bool `json:"looked,omitempty"`
	// Effect is what the records say of an effect whose end is contradicted and that the receiver did not know
	// any more.
	Effect *Effect `json:"effect,omitempty"`
	// By is who settled it, with "(claimed)" when unsigned; empty for a record or the destination.
	By     string `json:"by,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// EffectsView is the answer of the query "effects".
type EffectsView struct {
	Scope
	Turn    int      `json:"turn,omitempty"` // 0: of the session, what its turns left unresolved
	Effects []Effect `json:"effects"`
	Folded  []Count  `json:"folded,omitempty"`
	// Refused are settlements that did not count.
	Refused []Refusal `json:"refused,omitempty"`
	More    int       `json:"more,omitempty"`
}

// A Compensate is the payload of the session's signal "compensate": run, or try again, the compensations of a
// turn that has ended.
type Compensate struct {
	Turn int `json:"turn"`
	// Keys are the effects meant; none means every one that can be compensated.
	Keys      []string  `json:"keys,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Approver  string    `json:"approver"`
	Time      time.Time `json:"time,omitzero"`
	Signature string    `json:"signature,omitempty"`
	Ref       string    `json:"ref,omitempty"`
}

// An Unwinding says what becomes of a turn's committed effects when it fails or is cancelled.
type Unwinding string

// The unwindings.
const (
	UnwindKeep       Unwinding = "keep"
	UnwindCompensate Unwinding = "compensate"
	UnwindAsk        Unwinding = "ask" // each compensation waits for an approval
)

// An UndoInput makes a turn one that compensates an earlier turn and asks no model.
type UndoInput struct {
	Turn    int        `json:"turn"` // whose effects are compensated
	M       int        `json:"m"`    // the m-th time
	Command Compensate `json:"command"`
}

// PlanInput is the argument of [ActivityPlan].
type PlanInput struct {
	Scope
	Definition string   `json:"definition"`
	Effects    []Effect `json:"effects"` // committed or compensation_failed, in the order they were dispatched
	Senders    []Actor  `json:"senders,omitempty"`
	// Command is the order to compensate a turn that had ended; nil at a turn's end.
	Command *Compensate `json:"command,omitempty"`
	// Folded says that the turn had more effects than Effects lists: its dispatch records have them.
	Folded bool `json:"folded,omitempty"`
	// Of is the turn whose closing record has the effects, when Effects is empty.
	Of     int    `json:"of,omitempty"`
	Run    string `json:"run,omitempty"`
	Store  string `json:"store,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// PlanResult is the result of [ActivityPlan].
type PlanResult struct {
	Then  Unwinding `json:"then"`
	Undos []Undo    `json:"undos,omitempty"` // in the order in which they are to run: the last effect first
	// Why says why the command does not count; empty when it does.
	Why    string `json:"why,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// An Undo is one compensation: which effect, and the call that undoes it.
type Undo struct {
	Effect Effect `json:"effect"`
	// Call has the verdict and the terms of the compensating action. Its Trouble says why there is none.
	Call         Call `json:"call"`
	Irreversible bool `json:"irreversible,omitempty"` // declared so: nothing undoes it
}
