package main

import (
	"fmt"
	"strings"
)

// A target is one of the figures that the project has set itself.
type target struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
	Unknown  bool   `json:"unknown,omitempty"` // not measured in this run
}

func (t target) verdict() string {
	switch {
	case t.Unknown:
		return "not measured"
	case t.Met:
		return "pass"
	}
	return "**FAIL**"
}

// finding collects what each cell says about a target; the target is met if all of them say so.
type finding struct {
	said []string
	bad  bool
}

func (f *finding) add(ok bool, format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
	f.bad = f.bad || !ok
}

func (f *finding) target(what string) target {
	return target{What: what, Measured: strings.Join(f.said, "; "), Met: !f.bad, Unknown: len(f.said) == 0}
}

// judge holds the numbers against the targets.
func (r report) judge() []target {
	return []target{
		r.stepCounts("at most 12 events a step", func(one row, f *finding, name string) {
			f.add(one.PerStep.Events <= 12, "%s: %d", name, one.PerStep.Events)
		}),
		r.stepCounts("at most 2 actions a step, heartbeats counted", func(one row, f *finding, name string) {
			n := float64(one.PerStep.Actions) + 2*one.Heartbeat
			f.add(n <= 2.005, "%s: %d and %.2f heartbeats", name, one.PerStep.Actions, 2*one.Heartbeat)
		}),
		r.sessionTarget(),
		r.bytesTarget(),
		r.ratios("a step takes at most 1.3 times the floor's", 1, byFloor, stepOf, func(f float64) bool { return f <= 1.3 }),
		r.ratios("throughput is at least 0.85 of the floor's", 50, byFloor, throughputOf, func(f float64) bool { return f >= 0.85 }),
		r.cpuTarget(),
		r.cpuLongTarget(),
		r.longTarget(),
		r.checkTarget(),
	}
}

// each calls f for Holdfast's row of every cell with so many at a time, 0 for all.
func (r report) each(at int, f func(m measured, one row)) {
	for _, m := range r.Cells {
		if one, ok := m.Rows[holdfast]; ok && (at == 0 || m.At == at) {
			f(m, one)
		}
	}
}

// stepCounts looks at the cells with one at a time and more than one step.
func (r report) stepCounts(what string, judge func(one row, f *finding, name string)) target {
	var f finding
	r.each(1, func(m measured, one row) {
		if m.Steps > 1 {
			judge(one, &f, m.short())
		}
	})
	return f.target(what)
}

func (m measured) short() string {
	s := m.job.String()
	if m.Reads {
		s += " reads"
	}
	return s
}

// sessionTarget compares a turn and what it adds to its session's history with a bare turn of 12K + 11
// events and 2K + 2 actions.
func (r report) sessionTarget() target {
	var f finding
	r.each(1, func(m measured, one row) {
		if m.Steps > 20 || m.Size != kib {
			return
		}
		events := one.Turn.Events + r.Session.PerTurn.Events - 12*m.Steps - 11
		actions := one.Turn.Actions + r.Session.PerTurn.Actions - 2*m.Steps - 2
		f.add(events <= 30 && actions <= 5, "%s: %d and %d", m.short(), events, actions)
	})
	return f.target("at most 30 events and 5 actions more a turn than a bare one's 12K + 11 and 2K + 2")
}

func (r report) bytesTarget() target {
	var f finding
	least, most := 0, 0
	r.each(1, func(m measured, one row) {
		if m.Steps < 2 {
			return
		}
		n := one.PerStep.Bytes
		f.add(n < 2560, "%s: %d", m.short(), n)
		if !m.Reads {
			if least == 0 || n < least {
				least = n
			}
			most = max(most, n)
		}
	})
	if least > 0 {
		f.add(float64(most) <= 1.05*float64(least), "largest by smallest %.2f", float64(most)/float64(least))
	}
	return f.target("bytes of history a step below 2.5 KiB, and constant in K")
}

func (r report) ratios(what string, at int, other variant, of func(rep) float64, ok func(float64) bool) target {
	var f finding
	r.each(at, func(m measured, one row) {
		if q := ratio(one, m.Rows[other], of); q > 0 {
			f.add(ok(q), "%s: %.2f", m.short(), q)
		}
	})
	return f.target(what)
}

func (r report) cpuTarget() target {
	var f finding
	r.each(0, func(m measured, one row) {
		if q := ratio(one, m.Rows[byNaive], workerOf); q > 0 && m.Steps == 5 {
			f.add(q <= 1.5, "%s, %d at a time: %.2f", m.job, m.At, q)
		}
	})
	return f.target("a worker uses at most 1.5 times the naive loop's CPU a turn at K=5")
}

// cpuLongTarget compares steps, because the naive loop does not live to the end of such a turn.
func (r report) cpuLongTarget() target {
	var f finding
	r.each(1, func(m measured, one row) {
		naive := m.Rows[byNaive]
		if m.Steps != 100 || m.Size != 16*kib || naive.WorkerCPU == 0 {
			return
		}
		reached := naive.Reached
		if reached == 0 {
			reached = m.Steps
		}
		f.add(one.WorkerCPU/float64(m.Steps) < naive.WorkerCPU/float64(reached),
			"%.0f ms for %d steps against %.0f ms for the %d steps that the naive loop reaches: %.2f a step",
			one.WorkerCPU, m.Steps, naive.WorkerCPU, reached, one.WorkerCPU/float64(m.Steps)/(naive.WorkerCPU/float64(reached)))
	})
	return f.target("a worker uses less CPU than the naive loop's at K=100 with 16 KiB")
}

func (r report) longTarget() target {
	var f finding
	if d := r.Long; d != nil {
		f.add(d.Holdfast.Turn.Events > 0, "completed in %d runs; the naive loop is terminated after %d steps", d.Runs, d.Naive)
	}
	return f.target("1,000 steps with results of 16 KiB complete")
}
