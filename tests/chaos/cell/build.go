package cell

import (
	"slices"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// A schedule is the faults of one cell.
type schedule []Fault

// The destinations, in groups.
var (
	overHTTP = []Destination{HTTPKeyed, HTTPAsked, HTTPBlind}
	overMCP  = []Destination{MCPKeyed, MCPAsked, MCPBlind}
	every    = slices.Concat(overHTTP, overMCP)
	// strict is where the destination makes no difference to what happens. Of all it hides least: it ignores keys, so a
	// second send is a second entry, and it can be asked, so nothing may be left uncertain.
	strict = []Destination{HTTPAsked}
)

// cells returns the cell of each schedule at each destination, where there can be one.
func cells(s Scenario, at []Destination, schedules ...schedule) []Cell {
	var out []Cell
	for _, faults := range schedules {
		for _, d := range at {
			c := Cell{Scenario: s, Destination: d, Faults: faults}
			if c.suitable() != nil {
				continue
			}
			c.Expect = expected(c)
			out = append(out, c)
		}
	}
	return out
}

// at returns a schedule for each place: the kind strikes at its nth passing.
func at(k Kind, n int, places ...string) []schedule {
	out := make([]schedule, len(places))
	for i, p := range places {
		out[i] = schedule{{Kind: k, At: p, Nth: n}}
	}
	return out
}

// onPayment is at, for the nth payment: the order that is looked up before it passes admission too.
func onPayment(k Kind, n int, places ...string) []schedule {
	out := at(k, n, places...)
	for _, s := range out {
		if s[0].At == fp.ToolBeforeAdmission {
			s[0].Nth++
		}
	}
	return out
}

// arg returns the schedules with an argument for their first faults.
func arg(text string, all []schedule) []schedule {
	for _, s := range all {
		s[0].Arg = text
	}
	return all
}

// and returns the schedules with further faults.
func and(all []schedule, further ...Fault) []schedule {
	out := make([]schedule, len(all))
	for i, s := range all {
		out[i] = slices.Concat(s, further)
	}
	return out
}

// beside returns a schedule for each argument of a kind that has no place, n times.
func beside(k Kind, n int, args ...string) []schedule {
	out := make([]schedule, len(args))
	for i, a := range args {
		out[i] = schedule{{Kind: k, Arg: a, Nth: n}}
	}
	return out
}

// expecting returns the cells with another expectation than the one that follows from their faults.
func expecting(e Expect, all []Cell) []Cell {
	for i := range all {
		all[i].Expect = e
	}
	return all
}
