package witness

import (
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// An Invariant is one thing that holds in every run.
type Invariant struct {
	Name     string
	Sentence string
}

// An invariant is one with what looks whether it holds, which returns how it does not.
type invariant struct {
	Invariant
	broken func(*trial) []string
}

// A trial is a story before the judge.
type trial struct {
	calm, got   Story
	destination cell.Destination
	expect      cell.Expect
}

func invariants() []invariant {
	return nil
}

// Invariants returns what is judged, in the order in which it is.
func Invariants() []Invariant {
	all := invariants()
	out := make([]Invariant, len(all))
	for i, v := range all {
		out[i] = v.Invariant
	}
	return out
}

// Judge compares the witnesses of a run with each other and with the undisturbed run of the same scenario at the same
// destination. It returns what is wrong, nothing if the promise was kept.
func Judge(calm, got Story, d cell.Destination, e cell.Expect) []Violation {
	t := &trial{calm, got, d, e}
	var out []Violation
	for _, v := range invariants() {
		for _, detail := range v.broken(t) {
			out = append(out, Violation{v.Name, detail})
		}
	}
	return out
}

