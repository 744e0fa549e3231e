package witness

import (
	"fmt"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// An Invariant is one thing that holds in every run.
type Invariant struct {
	Name     string
	Sentence string
}

// A check is an invariant with what finds out how it is broken.
type check struct {
	Invariant
	look func(*trial)
}

func checks() []check {
	return []check{
		{Invariant{"exact", "A destination that honours keys or can be asked has made exactly the effects of the undisturbed run, and none is " +
			"uncertain; one that can do neither lacks at most what is said to be uncertain. Where policy or people changed, none is missing without a word."}, exact},
		{Invariant{"never-twice", "No destination has made two things for one key, nor one thing twice under two keys, nor was an effect that may be " +
			"sent once sent again."}, neverTwice},
		{Invariant{"ledger-agrees", "What a ledger calls committed the destination has made, what it calls compensated was taken back, and nothing " +
			"that the destination has made is missing in the ledgers."}, ledgerAgrees},
		{Invariant{"uncertain-is-said", "What the destination has made and a ledger does not call committed is called uncertain or contradicted, and " +
			"the session lists it until somebody has settled it."}, uncertainIsSaid},
		{Invariant{"authority", "Nothing was sent without a recorded verdict, nor, where that was to ask, without the approval of exactly this action " +
			"by somebody entitled; nothing that was refused was made."}, authority},
		{Invariant{"recorded", "Whatever the destination has made was written down as dispatched before."}, recorded},
		{Invariant{"not-taken-back", "What was shown as final when a turn ended is still so at the end: its status, its answer, its transcript and " +
			"every effect that was not uncertain."}, notTakenBack},
		{Invariant{"same-answer", "Where no effect is uncertain, nothing is missing in the transcript and neither policy nor agent changed, the turns " +
			"end and answer as in the undisturbed run; and always the model was told of each call what the ledger says of it."}, sameAnswer},
		{Invariant{"ended", "Each message has its turn, and each turn has ended with nothing left open, or waits for something that has a name."}, ended},
		{Invariant{"attention", "Every open wait is listed by attention."}, given(func(s Story) []string { return s.Unlisted })},
		{Invariant{"stuck", "Every workflow has ended or waits for something that has a name."}, given(func(s Story) []string { return s.Stuck })},
		{Invariant{"replay", "Every run replays."}, given(func(s Story) []string { return s.Replay })},
	}
}

// Invariants returns what is judged, in the order in which it is.
func Invariants() []Invariant {
	all := checks()
	out := make([]Invariant, len(all))
	for i, c := range all {
		out[i] = c.Invariant
	}
	return out
}

// Judge compares the witnesses of a run with each other and with the undisturbed run of the same scenario at the same
// destination. It returns what is wrong, nothing if the promise was kept.
func Judge(calm, got Story, d cell.Destination, e cell.Expect) []Violation {
	t := &trial{calm: calm, got: got, destination: d, expect: e, ledger: ledgerOf(got)}
	for _, c := range checks() {
		t.now = c.Name
		c.look(t)
	}
	return t.found
}

// A trial is a story before the judge.
type trial struct {
	calm, got   Story
	destination cell.Destination
	expect      cell.Expect
	ledger      ledger // of the story

	now   string // the invariant that is looked at
	found []Violation
}

// blame notes how the invariant is broken.
func (t *trial) blame(format string, args ...any) {
	t.found = append(t.found, Violation{t.now, fmt.Sprintf(format, args...)})
}

// given is for what another witness has judged already.
func given(of func(Story) []string) func(*trial) {
	return func(t *trial) {
		for _, s := range of(t.got) {
			t.blame("%s", s)
		}
	}
}

// ignoresKeys says whether a destination makes another entry for a key that it has seen.
func ignoresKeys(d cell.Destination) bool { return d != cell.HTTPKeyed && d != cell.MCPKeyed }

// blind says whether a destination can neither honour keys nor be asked.
func blind(d cell.Destination) bool { return d == cell.HTTPBlind || d == cell.MCPBlind }
