package report

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Recovery is how long it took from kills at one boundary to the next progress.
type Recovery struct {
	Boundary string        `json:"boundary"`
	Kills    int           `json:"kills"`
	Median   time.Duration `json:"median_ns"`
	Worst    time.Duration `json:"worst_ns"`
	Bound    time.Duration `json:"bound_ns"`
	Over     int           `json:"over"` // kills after which it took longer than the bound
}

// Recoveries tells what followed the kills at each boundary, whatever their passing, in alphabetical order. Only cells
// count in which one worker is killed: what else goes wrong has a time of its own.
func Recoveries(rows []Row, bound time.Duration) []Recovery {
	took := map[string][]time.Duration{}
	for _, r := range rows {
		if killed(r) && r.Recovery > 0 {
			took[place(r)] = append(took[place(r)], r.Recovery)
		}
	}
	var out []Recovery
	for boundary, all := range took {
		one := Recovery{Boundary: boundary, Kills: len(all), Median: median(all), Worst: slices.Max(all), Bound: bound}
		for _, d := range all {
			if d > bound {
				one.Over++
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Recovery) int { return cmp.Compare(a.Boundary, b.Boundary) })
	return out
}

// killed says whether one kill is all that goes wrong. That turns are renewed, or nothing is cached, is no trouble.
func killed(r Row) bool {
	faults := slices.DeleteFunc(strings.Split(r.Fault, " + "), func(f string) bool { return f == "renew" || f == "cold" })
	return slices.Equal(faults, []string{"kill"})
}

// place is a row's boundary without its passing.
func place(r Row) string {
	name, _, _ := strings.Cut(r.Boundary, ":")
	return name
}

// A Width is how long the window stood open that cannot be closed: from the last look at the clock until the first
// byte left.
type Width struct {
	Sends  int           `json:"sends"`
	Median time.Duration `json:"median_ns"`
	Worst  time.Duration `json:"worst_ns"`
}

// WidthOf makes a width of what was measured, nil of nothing.
func WidthOf(measured []time.Duration) *Width {
	if len(measured) == 0 {
		return nil
	}
	return &Width{Sends: len(measured), Median: median(measured), Worst: slices.Max(measured)}
}

// median is the middle one, of two middle ones the mean.
func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
