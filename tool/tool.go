package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// A Spec is a tool's declaration. [Declare] fills in what is left out and sets Version.
type Spec struct {
	// Name is what the model calls: 1 to 64 letters, digits, underscores and hyphens, the rule of
	// OpenAI's API, which other servers follow.
	Name string
	// Description tells the model what the tool is for.
	Description string
	// Parameters is a JSON schema of type "object". Empty means a tool without parameters.
	Parameters json.RawMessage
	// Class says what may happen when the tool is sent twice; empty is [agent.ClassOnce].
	Class agent.Class
	// Window is how long the destination honours an idempotency key, counted from dispatch; only for
	// [agent.ClassIdempotent], where 0 is [DefaultWindow].
	Window time.Duration
	// Timeout bounds one attempt; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Source says where the tool comes from: "go", "http", "mcp:<server>".
	Source string
	// Identity names the arguments that make two calls the same intent; none means all of them.
	Identity []string
	// Resource names what a call touches, with {argument} placeholders, or is empty.
	Resource string
	// Risk is what policies decide by; empty is low for a read, high for what is Irreversible, else medium.
	Risk agent.Risk
	// Irreversible says that nothing undoes the effect.
	Irreversible bool
	// Compensate names what undoes the effect, nil if nothing does.
	Compensate *Compensation
	// AbsentAfter is how long after the last moment of sending the destination must be asked before its
	// "no such thing" proves that nothing happened.
	AbsentAfter time.Duration
	// Version is the digest of the whole declaration.
	Version agent.Digest
}

// Defaults of a [Spec].
const (
	DefaultWindow  = 24 * time.Hour
	DefaultTimeout = time.Minute
)

// A Call is one attempt to run a tool.
type Call struct {
	// Key is the idempotency key: equal in every attempt of the same action.
	Key string
	// Args is the canonical text of the arguments, a JSON object: the exact bytes that were decided
	// on. A tool may encode them anew but not change a value.
	Args    string
	Attempt int // counts from 1
	Scope   agent.Scope
	Place   agent.Place
}

// A Result is what a tool gives back to the model.
type Result struct {
	Data []byte
	Type string // media type; empty is text/plain in UTF-8
}

// A Tool can be called by many turns at once. Do returns when ctx ends; its error says by [Meaning]
// whether something may have happened.
type Tool interface {
	Spec() Spec
	Do(ctx context.Context, c Call) (Result, error)
}

// A Compensation is the call that undoes an effect.
type Compensation struct {
	Tool string
	// Args are CEL expressions over "args" and "result", the original's arguments and JSON result, by the
	// name of the compensating tool's argument.
	Args map[string]string
}

// A Finding is what a destination says when it is asked what became of an attempt.
type Finding string

// The findings.
const (
	Found   Finding = "found"  // it happened
	Absent  Finding = "absent" // the destination has nothing of it
	Unknown Finding = "unknown"
)

// A Reconciler can ask the destination what became of an earlier attempt of a call. With [Found] the result is
// what the call would have given back. It sends nothing that changes anything and may be asked any number of
// times. An error is like [Unknown]. See [AsReconciler].
type Reconciler interface {
	Reconcile(ctx context.Context, c Call) (Finding, Result, error)
}

// An Observer can say what state the target of a call is in before the call is made, in bytes that are equal as
// long as the state is. It changes nothing. See [AsObserver].
type Observer interface {
	Observe(ctx context.Context, c Call) (Result, error)
}

// A Canceller can stop a call of its that is under way: nil says that it will, an error that it cannot. What the
// call then comes to is still what Do returns. See [AsCanceller].
type Canceller interface {
	Cancel(ctx context.Context, c Call) error
}
