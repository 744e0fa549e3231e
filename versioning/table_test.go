package versioning

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestEveryWorkflowTypeHasRisingNumbers(t *testing.T) {
	t.Parallel()
	last := map[string]int{}
	for _, c := range Changes() {
		if c.Number != last[c.Workflow]+1 {
			t.Errorf("%s: number %d follows %d: a number is never left out, and a retired one keeps its row", c.Workflow, c.Number, last[c.Workflow])
		}
		if c.What == "" || c.Understood == "" || c.Removable == "" {
			t.Errorf("%s %d: a row says what changed, since when and when it can go", c.Workflow, c.Number)
		}
		last[c.Workflow] = c.Number
	}
	for _, w := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
		if r := Bounds(w); r.Oldest == 0 || r.Preferred < r.Oldest || r.Newest < r.Preferred {
			t.Errorf("%s: numbers %+v", w, r)
		}
	}
}

// TestTheLifeOfANumber follows number 2 through its releases.
func TestTheLifeOfANumber(t *testing.T) {
	t.Parallel()
	first := Change{Workflow: "W", Number: 1, Understood: "1.0", Preferred: "1.0"}
	second := Change{Workflow: "W", Number: 2, Understood: "1.1"}
	preferred, retired := second, first
	preferred.Preferred, retired.Retired = "1.2", "1.3"
	for name, test := range map[string]struct {
		table []Change
		want  Range
	}{
		"before":     {[]Change{first}, Range{1, 1, 1}},
		"understood": {[]Change{first, second}, Range{1, 2, 1}},
		"preferred":  {[]Change{first, preferred}, Range{1, 2, 2}},
		"retired":    {[]Change{retired, preferred}, Range{2, 2, 2}},
		"another's":  {[]Change{{Workflow: "X", Number: 1, Preferred: "1.0"}}, Range{}},
	} {
		if diff := cmp.Diff(test.want, bounds(test.table, "W")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOnlyChangesOfOursArePreferred(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{ChangeID(agent.WorkflowTurn): true, agent.WorkflowTurn: false, "holdfast-Other": false, "": false} {
		if n, ok := Prefer(id); ok != want || ok && n != Bounds(agent.WorkflowTurn).Preferred {
			t.Errorf("%q: %d, %v", id, n, ok)
		}
	}
}
