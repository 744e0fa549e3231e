package cell

import (
	"math/rand/v2"
	"slices"
	"strings"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// Random returns the i-th random schedule of a seed, always the same: one to three faults after each other at places that
// the scenario passes, and what else is wrong meanwhile. The later ones may come to a worker that has too little left to
// do to meet them.
func Random(seed uint64, i int) Cell {
	d := draw{rand.New(rand.NewPCG(seed, uint64(i)))}
	c := Cell{Scenario: oneOf(d, Pay, Pay, Undo), Destination: oneOf(d, overHTTP...)}
	if c.Scenario == Pay {
		c.Destination = oneOf(d, every...)
	}
	around := d.around(c)
	c.Faults = around // who continues as new passes other places
	var strikes []Fault
	for n := range 1 + d.IntN(3) {
		strikes = append(strikes, d.strike(c, n == 0))
	}
	c.Faults = slices.Concat(strikes, around)
	c.Expect = expected(c)
	return c
}

// A draw makes random choices.
type draw struct{ *rand.Rand }

func oneOf[T any](d draw, of ...T) T { return of[d.IntN(len(of))] }

// strike draws a fault at a place, and a passing after the start: the first worker has all of them before it, those that
// take over have some.
func (d draw) strike(c Cell, first bool) Fault {
	kind := oneOf(d, Kill, Kill, Kill, Freeze, Freeze, Crash)
	var places []string
	for _, p := range fp.Points() {
		if kind == Crash && p.Name == fp.WorkerReady { // the next worker may be starting, and would find no server
			continue
		}
		if c.passings(p.Name) > 0 && c.suits(Fault{At: p.Name}) == nil {
			places = append(places, p.Name)
		}
	}
	f := Fault{Kind: kind, At: oneOf(d, places...)}
	before := started(f.At)
	n := c.passings(f.At) - before
	if !first {
		n = min(n, 2)
	}
	f.Nth = before + 1 + d.IntN(n)
	return f
}

// around draws what is wrong beside the strikes: each kind in one schedule of six.
func (d draw) around(c Cell) []Fault {
	var out []Fault
	for _, k := range []Kind{Link, Storm, Lost, Slow, Renew, Cold, Word} {
		if d.IntN(6) > 0 {
			continue
		}
		s, _ := sortOf(k)
		f := Fault{Kind: k, Arg: oneOf(d, s.args...)}
		switch k {
		case Link:
			f.At, f.Nth = turnsBad(f.Arg)
		case Storm, Lost:
			f.Nth = 1 + d.IntN(2)
		case Slow:
			f.At = oneOf(d, fp.StoreBeforeWrite, fp.StoreBeforeRead)
		}
		if c.suits(f) == nil {
			out = append(out, f)
		}
	}
	return out
}

// turnsBad returns where a connection turns bad: where most hangs on it. A slow one is slow all the time.
func turnsBad(arg string) (place string, n int) {
	whom, how, _ := strings.Cut(arg, " ")
	switch {
	case how == "slow":
		return "", 0
	case whom == "model":
		return fp.ModelBeforeRequest, 2
	case whom == "destination":
		return fp.ToolBeforeDispatch, 1
	}
	return fp.ActivityBeforeCompletion, 4
}
