package cell

import (
	"regexp"
	"slices"
	"testing"
)

func TestTheTableIsAsLargeAsItIsMeantToBe(t *testing.T) {
	t.Parallel()
	if n := len(All()); n < 280 || n > 370 {
		t.Errorf("%d cells, want about 300: more of them do not fit into half an hour", n)
	}
	if !slices.EqualFunc(All(), All(), func(a, b Cell) bool { return a.Name() == b.Name() && a.Expect == b.Expect }) {
		t.Error("the order differs between two calls")
	}
}

func TestEachCellCanHappenAndSaysWhatIsExpectedOfIt(t *testing.T) {
	t.Parallel()
	for _, c := range All() {
		if err := c.valid(); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if len(c.Faults) == 0 || !slices.Contains([]Expect{Same, Agree, Window}, c.Expect) {
			t.Errorf("%s: %+v", c.Name(), c)
		}
	}
}

// TestANameSaysEverythingAndNeedsNoQuotes: it is how a cell is run again.
func TestANameSaysEverythingAndNeedsNoQuotes(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`^[a-z0-9A-Z/@:=+._-]+$`)
	seen := map[string]bool{}
	for _, c := range All() {
		name := c.Name()
		found, ok := Find(name)
		if seen[name] || !plain.MatchString(name) || !ok || !slices.Equal(found.Faults, c.Faults) {
			t.Errorf("%s: a second time %v, found %v %+v", name, seen[name], ok, found)
		}
		seen[name] = true
	}
	if c, ok := Find("pay/http-keyed/calm"); ok {
		t.Errorf("%+v is in no table", c)
	}
}

func TestWordsOfACell(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cell                  Cell
		name, boundary, fault string
	}{
		{Cell{}, "pay/http-blind/calm", "", ""},
		{
			Cell{Faults: []Fault{{Kind: Kill, At: "tool.after_commit", Nth: 1}}},
			"pay/http-blind/kill@tool.after_commit:1", "tool.after_commit:1", "kill",
		},
		{
			Cell{Faults: []Fault{{Kind: Error, Arg: "EIO", At: "store.before_read", Nth: 5, Last: 9}, {Kind: Cold}}},
			"pay/http-blind/error=EIO@store.before_read:5-9+cold", "store.before_read:5-9", "error EIO + cold",
		},
		{
			Cell{Faults: []Fault{{Kind: Storm, Arg: "model 429 seconds", Nth: 3}, {Kind: Freeze, At: "tool.approved", Nth: 1}, {Kind: Slow, Arg: "200ms", At: "store.before_read"}}},
			"pay/http-blind/storm=model_429_seconds:3+freeze@tool.approved:1+slow=200ms@store.before_read", "tool.approved:1",
			"storm model 429 seconds, 3 times + freeze + slow 200ms at store.before_read",
		},
	} {
		test.cell.Scenario, test.cell.Destination = Pay, HTTPBlind
		if n, b, f := test.cell.Name(), test.cell.Boundary(), test.cell.FaultText(); n != test.name || b != test.boundary || f != test.fault {
			t.Errorf("%q, %q, %q; want %+v", n, b, f, test)
		}
	}
}

// TestTheQuickTenthIsOfEveryGroupAndCheap: a shifted clock needs a build of its own, and a crash a server of its own.
func TestTheQuickTenthIsOfEveryGroupAndCheap(t *testing.T) {
	t.Parallel()
	var n, crashes int
	for _, c := range All() {
		if !c.Quick {
			continue
		}
		n++
		for _, f := range c.Faults {
			switch f.Kind {
			case Crash:
				crashes++
			case Clock:
				t.Errorf("%s is not cheap", c.Name())
			}
		}
	}
	if all := len(All()); n != len(quick()) || n < all*8/100 || n > all*12/100 || crashes > 2 {
		t.Errorf("%d quick cells of %d, %d of which crash the server; %d are named", n, all, crashes, len(quick()))
	}
	for _, g := range groups() {
		if g.name != "clock" && !slices.ContainsFunc(g.cells, func(c Cell) bool { return slices.Contains(quick(), c.Name()) }) {
			t.Errorf("no quick cell is of %q", g.name)
		}
	}
}

func TestEveryKindIsInTheTable(t *testing.T) {
	t.Parallel()
	for _, s := range sorts() {
		if !slices.ContainsFunc(All(), func(c Cell) bool {
			return slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Kind == s.kind })
		}) {
			t.Errorf("no cell has %q", s.kind)
		}
	}
}
