package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// A report is all that a run of the bench found out.
type report struct {
	Took    string     `json:"took"`
	Memory  bool       `json:"memory"` // server and store; else both on disk
	CPUs    int        `json:"cpus"`
	Cells   []measured `json:"cells"`
	Session share      `json:"session"`
	Store   []traffic  `json:"store"`
	Long    *distance  `json:"long,omitempty"`
	Check   *checked   `json:"check,omitempty"`
	Targets []target   `json:"targets"`
}

type measured struct {
	cell
	Rows map[variant]row `json:"rows"`
}

// measure runs everything.
func (l *lab) measure(ctx context.Context, o options) (r report, err error) {
	r.CPUs, r.Memory = runtime.NumCPU(), o.memory
	// The first turn of a worker opens connections and grows pools.
	for _, v := range variants() {
		if _, err := l.turn(ctx, v, cell{job: job{3, kib}}); err != nil {
			return r, err
		}
	}
	for _, c := range matrix(o) {
		progress("%s ...", c)
		rows, err := l.cell(ctx, c)
		if err != nil {
			return r, err
		}
		r.Cells = append(r.Cells, measured{c, rows})
	}
	progress("the session's share ...")
	if r.Session, err = l.session(ctx); err != nil {
		return r, err
	}
	if err := l.stores(ctx, &r); err != nil {
		return r, err
	}
	if !o.quick && o.only == "" {
		progress("a thousand steps ...")
		d, err := l.long(ctx, 1000)
		if err != nil {
			return r, err
		}
		r.Long = &d
	}
	if strings.Contains(checkName, o.only) {
		c, err := l.check(ctx, o)
		if err != nil {
			return r, err
		}
		r.Check = &c
	}
	r.Targets = r.judge()
	return r, nil
}

func (l *lab) stores(ctx context.Context, r *report) error {
	for _, t := range []traffic{
		{job: job{20, kib}}, {job: job{20, kib}, Reads: true}, {job: job{20, 16 * kib}}, {job: job{20, 16 * kib}, Cold: true},
	} {
		progress("store: %s, cold %v ...", t.job, t.Cold)
		t, err := l.traffic(ctx, t.job, t.Reads, t.Cold)
		if err != nil {
			return err
		}
		r.Store = append(r.Store, t)
	}
	return nil
}

func (r report) markdown(w io.Writer) {
	where := "on disk"
	if r.Memory {
		where = "in memory"
	}
	fmt.Fprintf(w, "\nTook %s on %d CPUs, server and store %s. Milliseconds are medians; × is Holdfast's by the floor's or the naive loop's, the median of the repetitions.\n\n", r.Took, r.CPUs, where)
	fmt.Fprintln(w, "| job | | turn ms | step ms | × floor | turns/s | × floor | worker CPU ms | × naive | server CPU ms | × floor | events/step | bytes/step | RPCs |")
	fmt.Fprintln(w, "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
	for _, m := range r.Cells {
		for _, v := range variants() {
			if one, ok := m.Rows[v]; ok {
				m.line(w, v, one)
			}
		}
	}
	r.counts(w)
	fmt.Fprintln(w, "\n| target | measured | |\n| --- | --- | --- |")
	for _, t := range r.Targets {
		fmt.Fprintf(w, "| %s | %s | %s |\n", t.What, t.Measured, t.verdict())
	}
}

func (m measured) line(w io.Writer, v variant, one row) {
	var step, through, worker, server string
	if v == holdfast {
		floor, naive := m.Rows[byFloor], m.Rows[byNaive]
		step = times(ratio(one, floor, stepOf))
		through = times(ratio(one, floor, throughputOf))
		server = times(ratio(one, floor, serverOf))
		worker = times(ratio(one, naive, workerOf))
		if naive.Reached > 0 {
			worker = fmt.Sprintf("(ended at step %d)", naive.Reached)
		}
	}
	fmt.Fprintf(w, "| %s | %s | %s | %.1f | %s | %s | %s | %.0f | %s | %.0f | %s | %d | %d | %.0f |\n",
		m.cell, v, figure("%.0f", one.Latency), one.Step, step, figure("%.2f", one.Throughput), through, one.WorkerCPU, worker, one.ServerCPU, server,
		one.PerStep.Events, one.PerStep.Bytes, one.Requests)
}

func times(f float64) string { return figure("%.2f", f) }

// figure is empty for what there is none of: a turn that the server ended has no latency.
func figure(format string, f float64) string {
	if f == 0 {
		return ""
	}
	return fmt.Sprintf(format, f)
}

// counts prints what does not depend on the machine.
func (r report) counts(w io.Writer) {
	s := r.Session
	fmt.Fprintf(w, "\nThe session adds %d events, %d bytes and %d actions a turn; with starts and continue-as-new, over %d turns, %.1f events, %.0f bytes and %.2f actions.\n",
		s.PerTurn.Events, s.PerTurn.Bytes, s.PerTurn.Actions, s.Turns, s.Events, s.Bytes, s.Actions)
	fmt.Fprintln(w, "\n| history of one turn | | events | bytes | actions | heartbeats an activity |\n| --- | --- | --: | --: | --: | --: |")
	for _, m := range r.Cells {
		if m.At != 1 {
			continue
		}
		for _, v := range variants() {
			if one, ok := m.Rows[v]; ok {
				fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %.2f |\n", m.cell, v, one.Turn.Events, one.Turn.Bytes, one.Turn.Actions, one.Heartbeat)
			}
		}
	}
	fmt.Fprintln(w, "\n| store, a step | tool | cache | reads | bytes | writes | bytes | requests of a turn beside |\n| --- | --- | --- | --: | --: | --: | --: | --: |")
	for _, t := range r.Store {
		class, cache := "acts", "warm"
		if t.Reads {
			class = "reads"
		}
		if t.Cold {
			cache = "none"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %.2f | %.0f | %.2f | %.0f | %d |\n",
			t.job, class, cache, t.Read.Requests, t.Read.Bytes, t.Write.Requests, t.Write.Bytes, t.Opened)
	}
	if d := r.Long; d != nil {
		fmt.Fprintf(w, "\n%d steps of %s: Holdfast completes in %.1f minutes, %d runs, %d events, %.1f MiB of history; a late step's bytes are %.2f times an early one's. The server terminates the naive loop after %d steps.\n",
			d.Steps, bytesText(d.Size), d.Minutes, d.Runs, d.Holdfast.Turn.Events, float64(d.Holdfast.Turn.Bytes)/(1<<20), d.Holdfast.BytesEnd, d.Naive)
	}
	if r.Check != nil {
		r.Check.markdown(w)
	}
}

func stepOf(r rep) float64       { return r.Step }
func throughputOf(r rep) float64 { return r.Throughput }
func serverOf(r rep) float64     { return r.ServerCPU }
func workerOf(r rep) float64     { return r.WorkerCPU }
