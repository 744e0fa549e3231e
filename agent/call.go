package agent

import "time"

// A Decision is what policy says about an action.
type Decision string

// The decisions, from the least strict to the strictest.
const (
	DecisionAllow Decision = "allow"
	DecisionAsk   Decision = "ask"
	DecisionDeny  Decision = "deny"
)

// A Verdict is the recorded decision on one action. A replay never decides again.
type Verdict struct {
	Decision Decision `json:"decision"`
	Rule     string   `json:"rule"`
	Policy   string   `json:"policy"` // first 16 hex digits of the policy version's digest
}

// A Call is one action that the model asked for, canonicalised and decided on. A call with Trouble never
// reaches its tool: the trouble goes back to the model as the call's result.
type Call struct {
	// ID is the provider's id for the call, made up where the model gave none or gave it twice.
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Args is the canonical text of the arguments: the exact bytes that policy, digest, approver,
	// ledger and tool get. Empty when Trouble is set.
	Args   string `json:"args,omitempty"`
	Class  Class  `json:"class,omitempty"`
	Action Digest `json:"action,omitempty"`
	Intent string `json:"intent,omitempty"` // first 16 hex digits of the intent digest
	// Summary is a line for the Web UI, bounded and without secrets: "refund order 42".
	Summary string  `json:"summary,omitempty"`
	Verdict Verdict `json:"verdict,omitzero"`
	// Terms are set when the verdict is to ask.
	Terms *Terms `json:"terms,omitempty"`
	// Timeout bounds one attempt of the tool.
	Timeout Duration `json:"timeout,omitempty"`
	// Trouble says, in words for the model, why the call cannot run: unknown tool, arguments that
	// do not parse or do not match the schema, a denial.
	Trouble string `json:"trouble,omitempty"`
}

// Usage counts what model calls consumed. Money is in millionths of the currency that the prices in the
// configuration are in.
type Usage struct {
	Input     int64 `json:"in,omitempty"`
	Cached    int64 `json:"cached,omitempty"` // part of Input
	Output    int64 `json:"out,omitempty"`
	Reasoning int64 `json:"reasoning,omitempty"` // part of Output
	Micros    int64 `json:"micros,omitempty"`
	Calls     int64 `json:"calls,omitempty"` // model requests that were answered
	// Dropped counts model requests that were given up while they ran: possibly charged, not in the
	// other numbers.
	Dropped int64 `json:"dropped,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		Micros: u.Micros + v.Micros, Calls: u.Calls + v.Calls, Dropped: u.Dropped + v.Dropped,
	}
}

// Tokens returns input and output together.
func (u Usage) Tokens() int64 { return u.Input + u.Output }

// Producer records who produced an accepted result, as far as the events around it do not say it already: the
// prompt is the definition's, and so are the tools unless Tools is set. The store's result record has the
// digests of all of them.
type Producer struct {
	Model       string `json:"model,omitempty"`       // as the provider reported it
	Fingerprint string `json:"fingerprint,omitempty"` // as the provider reported it
	// Tools is the shortened digest of the tool schemas that the model saw, if they are not those of
	// the definition that the turn started with.
	Tools string `json:"tools,omitempty"`
	Build string `json:"build,omitempty"`
}

// ModelInput is the argument of [ActivityModel]. Its size does not depend on the conversation's.
type ModelInput struct {
	Scope
	Place
	Definition string  `json:"definition"` // first 16 hex digits of the agent definition's digest
	Head       Head    `json:"head"`
	Entries    []Entry `json:"entries,omitempty"`
	Senders    []Actor `json:"senders,omitempty"` // of the turn's messages so far
	// Root is the session that this one's forks began with, nil if it is no fork: see Origin.
	Root   *Scope `json:"root,omitempty"`
	Store  string `json:"store,omitempty"`
	Serial int64  `json:"serial,omitempty"` // highest configuration serial that the turn has seen
}

// Finish says why a model stopped.
type Finish string

// The reasons that a turn acts on. Calls count whatever the reason says.
const (
	FinishStop    Finish = "stop"
	FinishCalls   Finish = "calls"
	FinishLength  Finish = "length" // cut off by the output limit: nothing of it is run
	FinishRefusal Finish = "refusal"
	FinishFilter  Finish = "content_filter"
)

// ModelResult is the result of [ActivityModel].
type ModelResult struct {
	Head   Head   `json:"head"`
	Finish Finish `json:"finish"`
	// Text is what the model said, whole up to MaxAnswer bytes; then Body names all of it and Text
	// is its beginning.
	Text     string   `json:"text,omitempty"`
	Body     *Body    `json:"body,omitempty"`
	Calls    []Call   `json:"calls,omitempty"`
	Usage    Usage    `json:"usage"`
	Producer Producer `json:"by"`
	Serial   int64    `json:"serial,omitempty"` // of the worker's configuration, if the turn had not seen it
	// Adopted says that an earlier attempt had the answer already and nothing was asked for twice.
	Adopted bool `json:"adopted,omitempty"`
	// Gaps counts the transcript segments that could not be read and were shown to the model as such.
	Gaps int `json:"gaps,omitempty"`
}

// MaxAnswer is the longest answer in bytes that stands whole in the event that accepted it.
const MaxAnswer = 64 << 10

// ToolInput is the argument of [ActivityTool]. What the model activity's result says of the call, such as its
// verdict, is not said again; it stands a few events above.
type ToolInput struct {
	Scope
	Place
	Definition string `json:"definition"` // first 16 hex digits of the agent definition's digest
	Tool       string `json:"tool"`
	Args       string `json:"args,omitempty"`
	Class      Class  `json:"class"`
	Action     Digest `json:"action"`
	// Grant is a person's approval, nil when policy allowed the action by itself.
	Grant *Grant `json:"grant,omitempty"`
	// Undoes is the key of the effect that this action compensates, the Undo-th time it is tried.
	Undoes  string  `json:"undoes,omitempty"`
	Undo    int     `json:"undo,omitempty"`
	Senders []Actor `json:"senders,omitempty"`
	// Reset says that the turn was reset in Temporal: an earlier run of it may have sent.
	Reset bool `json:"reset,omitempty"`
	// Root is the session that this one's forks began with, nil if it is no fork: see Origin.
	Root   *Scope `json:"root,omitempty"`
	Store  string `json:"store,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// Key returns the action's idempotency key.
func (in ToolInput) Key() string {
	if in.Undoes != "" {
		return UndoKey(in.Undoes, in.Undo)
	}
	return ActionKey(in.Scope, in.Place, in.Action)
}

// ToolResult is the result of [ActivityTool] and, for each key, of [ActivityReconcile].
type ToolResult struct {
	// State is StateCommitted (a read's too), StateFailed, StateUncertain, StateDenied,
	// StateVoid or StateCancelled.
	State State `json:"state"`
	// Text is the whole result for the model when Body is nil, else its beginning.
	Text string `json:"text,omitempty"`
	Body *Body  `json:"body,omitempty"`
	// Note says, in words for a person, why the state is what it is.
	Note    string `json:"note,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // the attempt that dispatched
	Version string `json:"version,omitempty"` // first 16 hex digits of the tool version
	Build   string `json:"build,omitempty"`
	Adopted bool   `json:"adopted,omitempty"`
	// Conflict says that an attempt's own outcome contradicts the adopted one.
	Conflict string    `json:"conflict,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Evidence says how the outcome is known, when it is not that the destination answered.
	Evidence string `json:"evidence,omitempty"`
	// Verdict and Terms are policy's fresh word when the state is StateVoid: what the next ask takes.
	Verdict *Verdict `json:"verdict,omitempty"`
	Terms   *Terms   `json:"terms,omitempty"`
	// Hold says that policy wants the turn to wait for a person while the outcome is uncertain.
	Hold bool `json:"hold,omitempty"`
	// Cancel is the tool's word on a wish to stop it.
	Cancel CancelFact `json:"cancel,omitempty"`
	Serial int64      `json:"serial,omitempty"` // of the worker's configuration, if the turn had not seen it
}
