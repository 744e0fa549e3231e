package agent

import (
	"errors"
	"slices"
	"time"
)

// A Status is where a turn stands. Some are final: see [FinalStatuses].
type Status string

// The statuses of a turn.
const (
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting" // for a person: see TurnView.Waiting
	StatusDone      Status = "done"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	// StatusBudget is the end of a turn that used up its budget and was not given more.
	StatusBudget Status = "budget_exhausted"
)

// FinalStatuses returns those that a turn ends with, in the order in which they are shown.
func FinalStatuses() []Status {
	return []Status{StatusDone, StatusFailed, StatusCancelled, StatusBudget}
}

// Final says whether a turn of this status has ended.
func (s Status) Final() bool {
	return slices.Contains(FinalStatuses(), s)
}

// Limits bound one turn. They come from the configuration of the worker that opened the turn and are
// recorded then: whether a run goes on never depends on the build.
type Limits struct {
	Steps  int   `json:"steps,omitempty"`  // model calls
	Calls  int   `json:"calls,omitempty"`  // tool calls in one step; further ones are refused
	Tokens int64 `json:"tokens,omitempty"` // input and output, summed over the turn; 0 is no limit
	Micros int64 `json:"micros,omitempty"` // cost in millionths; 0 is no limit
	// Effects bounds how many effects are sent; 0 is no limit.
	Effects int `json:"effects,omitempty"`
	// Time bounds how long the turn works, not counting what it waits for people; 0 is no limit.
	Time Duration `json:"time,omitempty"`
	// Session bounds what all turns of the session use together; nil is no limit.
	Session *Budget `json:"session,omitempty"`
	// Faults bounds how many steps in a row may go by in which nothing that the model asked for
	// could be run; then the turn fails instead of paying for more of the same.
	Faults int `json:"faults,omitempty"`
	// Wait bounds how long a turn that has used up its limits waits for more.
	Wait Duration `json:"wait,omitempty"`
	// ContinueAfter is how many steps one run takes before it continues as new; 0 leaves it to
	// Temporal's own suggestion.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// A Budget bounds, or counts, what is used. As a bound, 0 is no limit.
type Budget struct {
	Steps   int      `json:"steps,omitempty"` // model calls
	Tokens  int64    `json:"tokens,omitempty"`
	Micros  int64    `json:"micros,omitempty"`
	Effects int      `json:"effects,omitempty"`
	Time    Duration `json:"time,omitempty"` // at work, not waiting for people
}

// Add returns the sum of both.
func (b Budget) Add(o Budget) Budget {
	return Budget{
		Steps: b.Steps + o.Steps, Tokens: b.Tokens + o.Tokens, Micros: b.Micros + o.Micros,
		Effects: b.Effects + o.Effects, Time: b.Time + o.Time,
	}
}

// OpenInput is the argument of [ActivityOpen].
type OpenInput struct {
	Scope
	Turn    int     `json:"turn"`
	Agent   string  `json:"agent"`
	Message Message `json:"message"`
	// Definition is of the session's turn before this one, empty in its first: policy decides whether this turn
	// goes on with it.
	Definition Digest `json:"definition,omitempty"`
	// Take is the definition of an offer that people approved, with their Grant; the turn is opened anew with it.
	Take  Digest `json:"take,omitempty"`
	Grant *Grant `json:"grant,omitempty"`
	// Senders are of the turn's messages, when it is opened anew: policy may want others than them to have approved.
	Senders []Actor `json:"senders,omitempty"`
	Serial  int64   `json:"serial,omitempty"`
	Store   string  `json:"store,omitempty"`
}

// OpenResult is the result of [ActivityOpen]: all that a turn takes over from the configuration.
type OpenResult struct {
	Definition Digest   `json:"definition"`
	Model      string   `json:"model"` // the name in the configuration
	Limits     Limits   `json:"limits"`
	Attempt    Duration `json:"attempt"`   // longest attempt of a model call
	Heartbeat  Duration `json:"heartbeat"` // after which a silent attempt of the model is given up
	// ToolHeartbeat is the same for a tool.
	ToolHeartbeat Duration `json:"toolHeartbeat"`
	Store         string   `json:"store"` // identity of the store
	Serial        int64    `json:"serial,omitempty"`
	Entry         Entry    `json:"entry"` // the message, its text in the store when it is long
	// Sender is who sent the message, as far as its signature proves it.
	Sender Actor  `json:"sender,omitzero"`
	Build  string `json:"build,omitempty"`
	Policy string `json:"policy,omitempty"` // first 16 hex digits of the policy version
	// Offer is set when people are to say whether the turn takes another definition than this one.
	Offer *Offer `json:"offer,omitempty"`
}

// Identity returns what the turn works with.
func (r OpenResult) Identity() Identity {
	return Identity{Definition: r.Definition, Policy: r.Policy, Build: r.Build}
}

// TurnInput is the argument of the Turn workflow.
type TurnInput struct {
	Scope
	Turn    int     `json:"turn"`
	Agent   string  `json:"agent"`
	Tenant  string  `json:"tenant,omitempty"`
	Message Message `json:"message"`
	Head    Head    `json:"head"`
	// Unresolved are effects of earlier turns whose outcome is uncertain: the same intent is not
	// dispatched while one stands.
	Unresolved []Effect `json:"unresolved,omitempty"`
	// Spent is what the session's turns before this one used, Granted what it was given beyond its
	// limits.
	Spent   Budget `json:"spent,omitzero"`
	Granted Budget `json:"granted,omitzero"`
	// Undo makes the turn one that compensates; it has no message then.
	Undo *UndoInput `json:"undo,omitempty"`
	// Definition is of the session's last turn, empty in its first.
	Definition Digest `json:"definition,omitempty"`
	// Origin is where the session was forked from, nil if it was not.
	Origin *Origin `json:"origin,omitempty"`
	Store  string  `json:"store,omitempty"`
	Serial int64   `json:"serial,omitempty"`
	// Checkpoint carries a continued turn's state; nil at its start.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// A Checkpoint is state carried by continue-as-new: a schema number, the state as JSON and the digest of
// both. Package versioning makes and opens them.
type Checkpoint struct {
	Schema int    `json:"schema"`
	State  string `json:"state"`
	Digest Digest `json:"digest"`
}

// A Reason says why a turn did not end as done.
type Reason struct {
	Type    string `json:"type"`    // an error type of this package
	Message string `json:"message"` // for a person; masked, bounded
}

// TurnResult is how a turn ends. A failed or cancelled turn carries it in its failure's details.
type TurnResult struct {
	Status Status `json:"status"`
	Head   Head   `json:"head"`
	// Effects are the turn's effects that are still open when it ends; the session takes them over.
	Effects []Effect `json:"effects,omitempty"`
	// Closing is the digest of the closing record.
	Closing Digest  `json:"closing,omitempty"`
	Reason  *Reason `json:"reason,omitempty"`
	Usage   Usage   `json:"usage"`
	Steps   int     `json:"steps"`
	// Spent is what the turn used, Granted what it was given beyond its limits.
	Spent   Budget `json:"spent,omitzero"`
	Granted Budget `json:"granted,omitzero"`
	// Undelivered are steering messages that came too late for the model to see.
	Undelivered []Message `json:"undelivered,omitempty"`
	Store       string    `json:"store,omitempty"`
	Serial      int64     `json:"serial,omitempty"`
	// By is what the turn worked with; only turns of number 3 and later say it.
	By *Identity `json:"by,omitempty"`
}

// ResultIn returns the result that a failed or cancelled turn carries in its failure's details, as an
// ApplicationError or a CanceledError of Temporal's; false when err is another end, such as a termination.
func ResultIn(err error) (res TurnResult, ok bool) {
	var failure interface {
		HasDetails() bool
		Details(d ...any) error
	}
	if !errors.As(err, &failure) || !failure.HasDetails() {
		return res, false
	}
	err = failure.Details(&res)
	return res, err == nil && res.Status.Final()
}

// CloseInput is the argument of [ActivityClose]: what the closing record keeps beyond the server's
// retention. Entries that no model call took up are appended to the transcript.
type CloseInput struct {
	Scope
	Turn       int        `json:"turn"`
	Agent      string     `json:"agent"`
	Definition Digest     `json:"definition,omitempty"`
	Result     TurnResult `json:"result"`
	Ledger     []Effect   `json:"ledger,omitempty"`
	Folded     []Count    `json:"folded,omitempty"` // settled effects that the ledger only counts
	Approvals  []Approval `json:"approvals,omitempty"`
	Refused    []Refusal  `json:"refused,omitempty"`
	Entries    []Entry    `json:"entries,omitempty"`
	// Undo is the number of a late compensation, whose record is beside the turn's; 0 is the turn's own.
	Undo int `json:"undo,omitempty"`
	// Origin is where the session was forked from, nil if it was not.
	Origin *Origin `json:"origin,omitempty"`
	Store  string  `json:"store,omitempty"`
}

// CloseResult is the result of [ActivityClose].
type CloseResult struct {
	Closing Digest `json:"closing"`
	Head    Head   `json:"head"`
	Store   string `json:"store"`
}

// ReconcileInput is the argument of [ActivityReconcile].
type ReconcileInput struct {
	Scope
	Store   string   `json:"store,omitempty"`
	Effects []Effect `json:"effects"`
}

// ReconcileResult has one result for each effect asked about, in order.
type ReconcileResult struct {
	Results []ToolResult `json:"results"`
}

// RecoverInput is the argument of [ActivityRecover].
type RecoverInput struct {
	Scope
	Turn  int    `json:"turn"`
	Head  Head   `json:"head"` // the head before the turn, if nothing better can be found
	Store string `json:"store,omitempty"`
}

// TurnView is the answer of the query "turn": what a turn is doing now.
type TurnView struct {
	Session string  `json:"session"`
	Turn    int     `json:"turn"`
	Agent   string  `json:"agent"`
	Status  Status  `json:"status"`
	Step    int     `json:"step"`
	Waiting string  `json:"waiting,omitempty"` // what it waits for, for a person
	Head    Head    `json:"head"`
	Usage   Usage   `json:"usage"`
	Reason  *Reason `json:"reason,omitempty"`
	// Ledger holds every effect of the turn that is open and the latest settled ones.
	Ledger []Effect `json:"ledger,omitempty"`
	Folded []Count  `json:"folded,omitempty"` // the settled ones before those
	// Approvals are those that wait.
	Approvals []Approval `json:"approvals,omitempty"`
	Spent     Budget     `json:"spent,omitzero"`
	// Entries were said or answered but are not in the transcript yet.
	Entries    []Entry   `json:"entries,omitempty"`
	Steering   []Message `json:"steering,omitempty"`
	Definition Digest    `json:"definition,omitempty"`
	Store      string    `json:"store,omitempty"`
	Serial     int64     `json:"serial,omitempty"`
	Policy     string    `json:"policy,omitempty"` // that opened it
	Build      string    `json:"build,omitempty"`  // that opened it
	Change     int       `json:"change,omitempty"` // its change number: see package versioning
	// Deadline is when it stops waiting.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Steering is the payload of the signal "steer" from the session to its turn.
type Steering struct {
	Message Message `json:"message"`
}

// Cancel is the payload of the signal "cancel".
type Cancel struct {
	// Turn is the turn meant; 0 is whichever runs. A turn that is over is not cancelled by a late
	// signal.
	Turn   int    `json:"turn,omitempty"`
	Reason string `json:"reason,omitempty"`
	From   string `json:"from,omitempty"`
}

// Extend is the payload of the signal "extend": more of what a turn, and its session, have used up.
type Extend struct {
	Steps   int      `json:"steps,omitempty"`
	Tokens  int64    `json:"tokens,omitempty"`
	Micros  int64    `json:"micros,omitempty"`
	Effects int      `json:"effects,omitempty"`
	Time    Duration `json:"time,omitempty"`
	From    string   `json:"from,omitempty"`
}

// Budget returns what is granted.
func (x Extend) Budget() Budget {
	return Budget{Steps: x.Steps, Tokens: x.Tokens, Micros: x.Micros, Effects: x.Effects, Time: x.Time}
}

// IdentifyInput is the argument of [ActivityIdentify], whose result is an [Actor].
type IdentifyInput struct {
	Scope
	Message Message `json:"message"`
	Store   string  `json:"store,omitempty"`
	Serial  int64   `json:"serial,omitempty"`
}
