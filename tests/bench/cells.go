package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// A cell is one line of the matrix.
type cell struct {
	job
	At    int  `json:"at"`    // turns at a time
	Turns int  `json:"turns"` // in one repetition
	Reps  int  `json:"reps"`
	Reads bool `json:"reads,omitempty"` // the tool declares that it only reads
}

func (c cell) String() string {
	s := fmt.Sprintf("%s, %d at a time", c.job, c.At)
	if c.Reads {
		s += ", reads"
	}
	return s
}

const kib = 1 << 10

func matrix(o options) []cell {
	var all []cell
	add := func(steps, at, turns, reps int, sizes ...int) {
		for _, s := range sizes {
			all = append(all, cell{job: job{steps, s}, At: at, Turns: turns, Reps: reps})
		}
	}
	switch {
	case o.quick:
		add(1, 1, 4, 1, kib)
		add(5, 1, 4, 1, kib, 16*kib)
		add(20, 1, 2, 1, kib, 16*kib)
		add(5, 50, 50, 1, kib)
	case o.full:
		add(1, 1, 10, 5, kib, 16*kib)
		add(5, 1, 6, 5, kib, 16*kib)
		add(20, 1, 3, 5, kib, 16*kib)
		add(100, 1, 1, 5, kib, 16*kib)
		add(1, 50, 200, 3, kib, 16*kib)
		add(5, 50, 100, 3, kib, 16*kib)
		add(20, 50, 50, 3, kib, 16*kib)
		add(100, 50, 50, 1, kib, 16*kib)
	default:
		add(1, 1, 8, 3, kib, 16*kib)
		add(5, 1, 5, 3, kib, 16*kib)
		add(20, 1, 2, 3, kib, 16*kib)
		add(100, 1, 1, 2, kib, 16*kib)
		add(1, 50, 100, 2, kib)
		add(5, 50, 50, 2, kib, 16*kib)
		add(20, 50, 50, 2, kib)
	}
	all = append(all, cell{job: job{20, kib}, At: 1, Turns: 2, Reps: max(1, all[0].Reps), Reads: true})
	var some []cell
	for _, c := range all {
		if strings.Contains(c.String(), o.only) {
			some = append(some, c)
		}
	}
	return some
}

// A sample is one repetition of one cell by one variant.
type sample struct {
	latencies  []time.Duration
	wall       time.Duration
	worker     time.Duration // CPU
	server     time.Duration // CPU
	heartbeats int64
	requests   int64
	ids        []string // of workflows
	died       int      // terminated by the server
}

// sample runs one repetition.
func (l *lab) sample(ctx context.Context, v variant, c cell) (s sample, err error) {
	w := l.workers[v]
	worker, server, before, err := l.meters(w)
	if err != nil {
		return s, err
	}
	began := time.Now()
	err = l.turns(ctx, v, c, &s)
	s.wall = time.Since(began)
	if err != nil {
		return s, err
	}
	worker2, server2, after, err := l.meters(w)
	s.worker, s.server = worker2-worker, server2-server
	for op, n := range after {
		s.requests += n - before[op]
	}
	s.heartbeats = after[heartbeat] - before[heartbeat]
	return s, err
}

func (l *lab) meters(w *process) (worker, server time.Duration, requests map[string]int64, err error) {
	if requests, err = w.requests(); err != nil {
		return
	}
	if worker, err = cpu(w.cmd.Process.Pid); err != nil {
		return
	}
	server, err = cpu(l.server.PID())
	return
}

// turns runs the cell's turns, so many at a time.
func (l *lab) turns(ctx context.Context, v variant, c cell, s *sample) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	left := make(chan struct{}, c.Turns)
	for range c.Turns {
		left <- struct{}{}
	}
	close(left)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range min(c.At, c.Turns) {
		wg.Go(func() {
			for range left {
				began := time.Now()
				id, err := l.turn(ctx, v, c)
				took := time.Since(began)
				mu.Lock()
				switch {
				case err == nil:
					s.latencies = append(s.latencies, took)
				case v == byNaive && terminated(err):
					s.died++
				default:
					cancel(fmt.Errorf("%s, %s: %w", v, c, err))
				}
				s.ids = append(s.ids, id)
				mu.Unlock()
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// variants are in the order of the first repetition; each further one begins with another.
func variants() []variant { return []variant{byFloor, byNaive, holdfast} }

// cell measures all repetitions of a cell and returns a row for each variant.
func (l *lab) cell(ctx context.Context, c cell) (map[variant]row, error) {
	samples := map[variant][]sample{}
	for rep := range c.Reps {
		for i := range variants() {
			v := variants()[(i+rep)%len(variants())]
			if c.Reads && v == byNaive {
				continue
			}
			s, err := l.sample(ctx, v, c)
			if err != nil {
				return nil, err
			}
			samples[v] = append(samples[v], s)
		}
	}
	rows := map[variant]row{}
	for v, ss := range samples {
		r, err := l.row(ctx, c, ss)
		if err != nil {
			return nil, err
		}
		rows[v] = r
	}
	return rows, nil
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
