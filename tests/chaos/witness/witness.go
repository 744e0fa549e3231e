// Package witness says whether a run kept the promise: it hears the destination's own record, the ledger, the
// terminal status and the transcript, and compares them with each other and with the undisturbed run.
package witness

import (
	"github.com/holdfast-run/holdfast/agent"
)

// An Entry is one thing that a destination says it has made.
type Entry struct {
	Key    string // as it was sent; a destination that ignores keys notes it all the same
	Order  string
	Amount string
	Voids  string // the entry that it takes back, else empty
}

// A Turn is how one turn ended, or stands.
type Turn struct {
	Number    int
	Status    agent.Status   // agent.StatusDone and so on; of a turn that runs, what it does
	Answer    agent.Digest   // of the answer's text
	Effects   []agent.Effect // the whole ledger
	Approvals []agent.Approval
	Said      []string // the transcript's entries of the turn: role, text or tool result, in order
}

// A Story is everything that the witnesses say of one run.
type Story struct {
	Made       []Entry        // the destination's record, in order
	Requests   map[string]int // how many requests it had for each key
	Turns      []Turn         // at the very end, when whoever was frozen has had its say
	Shown      []Turn         // as each turn was shown when it ended
	Unresolved []agent.Effect // that the session lists at the very end
	Gaps       int            // of the transcript
	Stuck      []string       // workflows that neither ended nor wait for a named thing, and why
	Replay     []string       // runs that do not replay, and why
	Unlisted   []string       // open waits that attention did not list
	Charges    int            // answers that the model server charged for
	Calm       bool           // neither policy nor agent changed
}

// A Violation is one broken invariant.
type Violation struct {
	Invariant string // its name in the table of invariants
	Detail    string
}
