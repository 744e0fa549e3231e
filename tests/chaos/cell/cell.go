// Package cell lists what the chaos harness does, as data: which fault strikes at which boundary while which
// scenario runs against which destination, what was left out and why, and random schedules made of the same parts.
package cell

import "time"

// A Scenario is what a run does when nothing goes wrong. See package run for its script.
type Scenario string

// The scenarios.
const (
	// Pay is two turns: an order is looked up, a payment allowed and another approved by a person; then a second
	// message. Two effects.
	Pay Scenario = "pay"
	// Undo is two payments, a third that waits for an approval, and a person who cancels the turn, by whose policy
	// what was done is undone. Two effects and what takes them back.
	Undo Scenario = "undo"
)

// A Destination is where effects go, and what its tool declares.
type Destination string

// The destinations: over HTTP, and an MCP server over stdio.
const (
	HTTPKeyed Destination = "http-keyed" // honours keys; the tool is idempotent
	HTTPAsked Destination = "http-asked" // ignores keys, says what it made; the tool is reconcilable
	HTTPBlind Destination = "http-blind" // neither; the tool is once
	MCPKeyed  Destination = "mcp-keyed"
	MCPAsked  Destination = "mcp-asked"
	MCPBlind  Destination = "mcp-blind"
)

// A Kind is what a fault does.
type Kind string

// The kinds. Those that strike at a boundary have Fault.At; the others are there for the whole run, or where the
// scenario's people and destinations come into play.
const (
	Kill    Kind = "kill"    // the worker kills itself; another takes over
	Freeze  Kind = "freeze"  // the worker stands still beyond its time-outs, another takes over, the first one wakes
	Hang    Kind = "hang"    // one goroutine stands still for Arg (a duration), the worker lives
	Error   Kind = "error"   // the place fails; with Arg as the operating system's error (ENOSPC, EROFS) where it is the store
	Crash   Kind = "crash"   // the Temporal server is killed while the worker is held there, and started again
	Revoke  Kind = "revoke"  // while the worker is held there, policy comes to deny the payments
	Rebuild Kind = "rebuild" // while the worker is held there, it is killed; another build with other instructions takes over
	Damage  Kind = "damage"  // while the worker is held there, the newest object of a kind is damaged, and the worker killed: Arg is "kind how"

	Lost  Kind = "lost"  // what the first Nth requests for an effect meet; Arg is a fault of package payments
	Storm Kind = "storm" // Arg "model 429 seconds": who answers what, with a Retry-After in which form, the first Nth times
	// Link: Arg "destination deaf" is between the worker and whom, and how the connection is (slow, half-open, deaf, cut).
	// With a place it turns bad while the worker is held there, and comes back after a while; else it is so all the time.
	Link  Kind = "link"
	Slow  Kind = "slow"  // each passing of At takes Arg longer
	Word  Kind = "word"  // how a person's word arrives; Arg is duplicate, early, late, delayed, wrong, crowd
	Clock Kind = "clock" // the worker's wall clock is off by Arg
	Renew Kind = "renew" // each step continues as new
	Cold  Kind = "cold"  // workers keep no workflow in memory
	Late  Kind = "late"  // settle signals for effects, duplicated and for keys that are not theirs
)

// A Fault is one thing that goes wrong.
type Fault struct {
	Kind Kind
	At   string // a place of package failpoint; empty where the kind has none
	Nth  int    // at its nth passing, from 1; 0 is each passing. Without a place: how many times
	Last int    // of a range of passings, from Nth on; 0 is Nth alone
	Arg  string
}

// Expect says what may differ from the undisturbed run.
type Expect string

// What may be expected of a run.
const (
	// Same is the effects and the answer of the undisturbed run, each once. At a destination that can neither honour
	// keys nor be asked, an effect may be uncertain instead, and is then there once or not at all.
	Same Expect = "same"
	// Agree is for runs whose policy, agent or people changed, or whose outside stayed away: witnesses agree with each
	// other.
	Agree Expect = "agree"
	// Window is outside the promise: a freeze between the last check and the send.
	Window Expect = "window"
)

// A Cell is one run.
type Cell struct {
	Scenario    Scenario
	Destination Destination
	Faults      []Fault // in the order in which they strike: one worker after the other
	Expect      Expect
	Quick       bool // part of the representative tenth that CI runs
}

// TimeOuts of a run. All are short, so that recovery is.
const (
	Heartbeat    = 2 * time.Second // of activities
	Sticky       = time.Second
	WorkflowTask = 2 * time.Second
	RetryDelay   = time.Second     // the longest first pause before an activity is tried again
	Frozen       = 7 * time.Second // how long a frozen worker stands still
)
