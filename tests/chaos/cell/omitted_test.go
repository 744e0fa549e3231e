package cell

import (
	"path"
	"slices"
	"strings"
	"testing"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// A triple is one element of the full product.
type triple struct {
	boundary, fault string
	destination     Destination
}

// full is every place, and none, with every fault at every destination.
func full() []triple {
	boundaries := []string{"none"}
	for _, p := range fp.Points() {
		boundaries = append(boundaries, p.Name)
	}
	var out []triple
	for _, b := range boundaries {
		for _, s := range sorts() {
			for _, a := range s.args {
				for _, d := range every {
					out = append(out, triple{b, Fault{Kind: s.kind, Arg: a}.Text(), d})
				}
			}
		}
	}
	return out
}

// matches says whether a list of alternatives has s.
func matches(t *testing.T, list, s string) bool {
	t.Helper()
	list, not := strings.CutPrefix(list, "not ")
	for _, pattern := range strings.Split(list, ", ") {
		ok, err := path.Match(pattern, s)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return !not
		}
	}
	return not || list == ""
}

func (o Omission) covers(t *testing.T, x triple) bool {
	return matches(t, o.Boundary, x.boundary) && matches(t, o.Fault, x.fault) && matches(t, o.Destination, string(x.destination))
}

// inTable returns the cells that have an element.
func inTable() map[triple]string {
	out := map[triple]string{}
	for _, c := range All() {
		for _, f := range c.Faults {
			x := triple{f.At, f.Text(), c.Destination}
			if x.boundary == "" {
				x.boundary = "none"
			}
			out[x] = c.Name()
		}
	}
	return out
}

// TestEveryPlaceWithEveryFaultAtEveryDestinationIsInTheTableOrLeftOutForAReason: nothing is silently missing, and nothing
// is called left out that is in.
func TestEveryPlaceWithEveryFaultAtEveryDestinationIsInTheTableOrLeftOutForAReason(t *testing.T) {
	t.Parallel()
	in, left := inTable(), LeftOut()
	all := full()
	for _, x := range all {
		i := slices.IndexFunc(left, func(o Omission) bool { return o.covers(t, x) })
		switch name, there := in[x]; {
		case there && i >= 0:
			t.Errorf("%v is in the table, as %s, and left out: %q", x, name, left[i].Why)
		case !there && i < 0:
			t.Errorf("%v is neither in the table nor left out", x)
		}
	}
	for x, name := range in {
		if !slices.Contains(all, x) {
			t.Errorf("%s has %v, which is in no product", name, x)
		}
	}
}

// TestEachOmissionSaysWhyAndIsNeeded: one that leaves nothing out which no other does is a reason for nothing.
func TestEachOmissionSaysWhyAndIsNeeded(t *testing.T) {
	t.Parallel()
	left := LeftOut()
	needed := make([]bool, len(left))
	for _, x := range full() {
		var by []int
		for i, o := range left {
			if o.covers(t, x) {
				by = append(by, i)
			}
		}
		if len(by) == 1 {
			needed[by[0]] = true
		}
	}
	for i, o := range left {
		if o.Why == "" || !needed[i] {
			t.Errorf("%+v: want a reason, and something that only this leaves out", o)
		}
	}
}
