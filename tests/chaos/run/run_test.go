package run

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
)

func TestFaultsAreDealtOutToOneWorkerAfterTheOther(t *testing.T) {
	t.Parallel()
	c := cell.Cell{Scenario: cell.Pay, Faults: []cell.Fault{
		{Kind: cell.Crash, At: "tool.after_send", Nth: 1},
		{Kind: cell.Freeze, At: "tool.after_commit", Nth: 2},
		{Kind: cell.Error, At: "store.before_write", Nth: 3, Last: 5, Arg: "EIO"},
		{Kind: cell.Rebuild, At: "model.before_request", Nth: 1},
		{Kind: cell.Lost, Nth: 1, Arg: "drop"},
	}}
	var rules [][]string
	var over []cell.Kind
	for _, g := range plan(c, "/d") {
		rules = append(rules, g.rules)
		if g.ends != nil {
			over = append(over, g.ends.Kind)
		}
	}
	want := [][]string{
		{"tool.after_send:1=file:/d/door-0", "tool.after_commit:2=freeze:7s"},
		{"store.before_write:3-5=error:EIO", "model.before_request:1=file:/d/door-3"},
		nil,
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if !slices.Equal(over, []cell.Kind{cell.Freeze, cell.Rebuild}) {
		t.Errorf("a worker's time is over with %v", over)
	}
}

// pays is a story in which the payments are made that are named, and the effects of the model's two calls have states.
func pays(amounts []string, states ...agent.State) (s witness.Story) {
	for _, a := range amounts {
		s.Made = append(s.Made, witness.Entry{Order: "of " + a, Amount: a})
	}
	turn := witness.Turn{Heard: []witness.Heard{{Tool: "lookup_order"}, {Tool: "pay"}, {Tool: "pay"}}}
	for _, st := range states {
		turn.Effects = append(turn.Effects, agent.Effect{State: st})
	}
	s.Turns = []witness.Turn{turn}
	return s
}

func TestWhatIsThereTwiceAndWhatIsMissingWithoutAWordIsCounted(t *testing.T) {
	t.Parallel()
	const done, doubt, no = agent.StateCommitted, agent.StateUncertain, agent.StateFailed
	calm := pays([]string{"1", "2"}, done, done)
	gap := pays([]string{"1", "2"}, done, done)
	gap.Turns[0].Heard = nil
	for name, c := range map[string]struct {
		got              witness.Story
		duplicates, lost int
	}{
		"as it should be":        {calm, 0, 0},
		"nothing behind a gap":   {gap, 0, 0},
		"one twice":              {pays([]string{"1", "2", "2"}, done, done), 1, 0},
		"one lost":               {pays([]string{"1"}, done, done), 0, 1},
		"one in doubt":           {pays([]string{"1"}, done, doubt), 0, 0},
		"one refused":            {pays([]string{"2"}, no, done), 0, 0},
		"one that became none":   {pays([]string{"1"}, done), 0, 0},
		"both, and one in doubt": {pays([]string{"1", "2"}, done, doubt), 0, 0},
	} {
		if duplicates, lost := compared(calm, c.got); duplicates != c.duplicates || lost != c.lost {
			t.Errorf("%s: %d twice, %d lost", name, duplicates, lost)
		}
	}
}

func TestAnUndisturbedRunThatDoesNotFollowItsScriptIsNoMeasure(t *testing.T) {
	t.Parallel()
	good := witness.Story{Charges: 5, Made: []witness.Entry{{Order: "42", Amount: "19.90"}, {Order: "43", Amount: "29.90"}}}
	if err := scripted(cell.Pay, good); err != nil {
		t.Error(err)
	}
	twice, dear, open := good, good, good
	twice.Made = append(slices.Clone(good.Made), good.Made[0])
	dear.Charges = 6
	open.Unresolved = []agent.Effect{{}}
	for _, s := range []witness.Story{twice, dear, open, {}} {
		if scripted(cell.Pay, s) == nil {
			t.Errorf("it is taken: %+v", s)
		}
	}
}

// TestTheModelGoesByWhatItHeard: its answer must differ when a result does, or the digest of it would say nothing.
func TestTheModelGoesByWhatItHeard(t *testing.T) {
	t.Parallel()
	say := func(results ...string) string {
		q := modeltest.Request{Messages: []modeltest.Message{{Role: "user", Content: wish}}}
		for _, r := range results {
			q.Messages = append(q.Messages, modeltest.Message{Role: "tool", Content: r})
		}
		return string(script(cell.Pay, "pay")(q).Message)
	}
	paid, not := `{"refund":"re_1"}`, "failed: nothing was sent"
	if say("{}", paid, paid) == say("{}", paid, not) || say("{}", paid, not) == say("{}", not, paid) {
		t.Error("it says the same of another result")
	}
	if say() == say("{}") || say("{}") == say("{}", paid) {
		t.Error("it does not go on")
	}
}

func TestAValueIsMadeOnceAndAnErrorIsNotKept(t *testing.T) {
	t.Parallel()
	var m memo[int]
	made := 0
	if _, err := m.of("a", func() (int, error) { made++; return 0, errors.New("not now") }); err == nil {
		t.Error("the error is lost")
	}
	for range 2 {
		if v, err := m.of("a", func() (int, error) { made++; return 7, nil }); v != 7 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	}
	if made != 2 {
		t.Errorf("made %d times", made)
	}
}
