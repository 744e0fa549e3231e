// Package report makes the table of a run of the chaos harness: as Markdown for people, as JSON for programs.
package report

import "time"

// A Row is what became of one cell.
type Row struct {
	Cell        string `json:"cell"` // its name, which reproduces it
	Scenario    string `json:"scenario"`
	Destination string `json:"destination"`
	Boundary    string `json:"boundary,omitempty"` // where the (first) fault struck, with its passing: "tool.after_commit:1"
	Fault       string `json:"fault"`              // what struck, "storm model 429 seconds"; several are joined by " + "
	Expect      string `json:"expect"`

	Expected   int            `json:"expected"` // effects of the undisturbed run
	Applied    int            `json:"applied"`  // that the destination says it made
	Duplicates int            `json:"duplicates"`
	Lost       int            `json:"lost"`   // expected, not made, and nobody was told
	Ledger     map[string]int `json:"ledger"` // effects by state
	Status     []string       `json:"status"` // of each turn
	Struck     bool           `json:"struck"` // the fault happened
	Recovery   time.Duration  `json:"recovery_ns,omitempty"`
	Extra      int            `json:"extra_model_calls"`    // charged for beyond the undisturbed run
	Violations []string       `json:"violations,omitempty"` // each begins with the invariant's name and a colon
	Wall       time.Duration  `json:"wall_ns"`

	Naive *Naive `json:"naive,omitempty"` // nil where the plain loop has no such boundary
}

// A Naive is what became of the same cell under the plain loop.
type Naive struct {
	Applied    int    `json:"applied"`
	Duplicates int    `json:"duplicates"`
	Lost       int    `json:"lost"`   // expected, not made, and the loop says that it is done
	Status     string `json:"status"` // "done", "failed", "stuck"
	Extra      int    `json:"extra_model_calls"`
}
