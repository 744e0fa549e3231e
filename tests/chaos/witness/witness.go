// Package witness says whether a run kept the promise: it hears the destination's own record, the ledger, the
// terminal status and the transcript, and compares them with each other and with the undisturbed run.
package witness

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// An Entry is one thing that a destination says it has made.
type Entry struct {
	ID     string // the destination's own number for it, empty if it has none
	Key    string // as it was sent; a destination that ignores keys notes it all the same
	Order  string
	Amount string
	Voids  string // the ID of the entry that it takes back, else empty
}

// A Turn is how one turn ended, or stands.
type Turn struct {
	Number    int
	Undo      int            // it is the Undo-th late compensation of that turn; 0 is the turn itself
	Status    agent.Status   // agent.StatusDone and so on; of a turn that runs, what it does
	Waiting   string         // what a turn waits for that has not ended
	Mute      bool           // it was ended from outside, or by a defect, and did not say how
	Answer    agent.Digest   // of the answer's text, as the history has it
	Closed    bool           // its closing record is there
	Effects   []agent.Effect // the whole ledger, with what the session has heard since the turn ended
	Replayed  []agent.Effect // the ledger as the history alone has it
	Approvals []agent.Approval
	Said      []string // the transcript's entries of the turn: "role: text", in order
	Heard     []Heard  // the transcript's results of calls, in order
}

// A Heard is what the model was told of one call, or what stands in the transcript for the next turn to be told.
type Heard struct {
	Step, Call int
	Tool, Text string
}

// A Story is everything that the witnesses say of one run.
type Story struct {
	Made       []Entry          // the destination's record, in order
	Requests   map[string]int   // how many requests it had for each key; nil where it does not count
	Turns      []Turn           // at the very end, when whoever was frozen has had its say; late compensations come last
	Shown      []Turn           // as each turn was shown when it ended
	Unresolved []agent.Effect   // that the session lists at the very end
	Queued     int              // messages that were accepted and given to no turn
	Dispatches []store.Dispatch // the records that something may have been sent
	Unreadable []string         // keys whose dispatch record is there and cannot be read
	Damaged    bool             // the harness has damaged the store
	Gaps       int              // of the transcript, at the end or when the model was shown it
	Stuck      []string         // workflows that neither ended nor wait for a named thing, and why
	Replay     []string         // runs that do not replay, and why
	Unlisted   []string         // open waits that attention did not list
	Charges    int              // answers that the model server charged for
	Calm       bool             // neither policy nor agent changed
	Refused    string           // the amount of a payment that was approved too late, by the server's clock; empty is none
	Denied     time.Time        // from when on policy denied whatever is sent; zero is never
	Admitted   int              // how many actions may still be sent then: those that a worker held had let in before
}

// A Violation is one broken invariant.
type Violation struct {
	Invariant string // its name in the table of invariants
	Detail    string
}
