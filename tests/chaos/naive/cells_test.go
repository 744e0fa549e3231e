package naive

import (
	"testing"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

func TestACellHasACounterpartWhereEachOfItsFaultsHasOne(t *testing.T) {
	t.Parallel()
	kill := func(place string) cell.Fault { return cell.Fault{Kind: cell.Kill, At: place, Nth: 1} }
	for _, test := range []struct {
		name   string
		cell   cell.Cell
		wanted bool
	}{
		{"nothing goes wrong", payUnder(), true},
		{"a place that it has", payUnder(kill(failpoint.ActivityBeforeCompletion)), true},
		{"a place that it has not", payUnder(kill(failpoint.ToolAfterAdoption)), false},
		{"one that it has and one that it has not", payUnder(kill(failpoint.ToolAfterCommit), kill(failpoint.StoreAfterWrite)), false},
		{"a kind that it has", payUnder(cell.Fault{Kind: cell.Storm, Arg: "model 429 date", Nth: 1}), true},
		{"a kind that it has not", payUnder(cell.Fault{Kind: cell.Renew}), false},
		{"a word that it hears", payUnder(cell.Fault{Kind: cell.Word, Arg: "crowd"}), true},
		{"a word after an end that it has not", payUnder(cell.Fault{Kind: cell.Word, Arg: "late"}), false},
		{"a scenario that it has not", cell.Cell{Scenario: cell.Undo, Destination: cell.HTTPKeyed}, false},
	} {
		if got := Has(test.cell); got != test.wanted {
			t.Errorf("%s: %v, want %v", test.name, got, test.wanted)
		}
	}
}

func TestAKeySaysWhatStrikesTheLoopAndNothingElse(t *testing.T) {
	t.Parallel()
	at := func(d cell.Destination, place string, n int) string {
		return Key(cell.Cell{Scenario: cell.Pay, Destination: d, Faults: []cell.Fault{{Kind: cell.Kill, At: place, Nth: n}}})
	}
	one := at(cell.HTTPKeyed, failpoint.ToolBeforeDispatch, 1)
	if got := at(cell.MCPBlind, failpoint.ToolAfterDispatch, 1); got != one {
		t.Errorf("the same moment at another destination is %q, want %q", got, one)
	}
	for _, other := range []string{at(cell.HTTPKeyed, failpoint.ToolBeforeDispatch, 2), at(cell.HTTPKeyed, failpoint.ToolAfterCommit, 1)} {
		if other == one {
			t.Errorf("another moment is %q too", one)
		}
	}
}

// A blow without a rule would be a run in which nothing happens.
func TestEachFaultOfTheTableThatHasAPlaceHasARule(t *testing.T) {
	t.Parallel()
	for _, c := range cell.All() {
		faults, ok := counterpart(c)
		if !ok {
			continue
		}
		for _, f := range faults {
			if rule := (blow{f, "door"}).rule(); (rule != "") != (f.At != "") {
				t.Errorf("%s: the rule of %s is %q", c.Name(), f.Kind, rule)
			}
		}
	}
}
