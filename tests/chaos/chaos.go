package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/run"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

func chaos(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	switch {
	case o.list:
		return list(os.Stdout)
	case o.render != "":
		return o.again()
	}
	// A folder of its own for each run: names of sessions are used again.
	if o.dir, err = os.MkdirTemp(o.dir, "holdfast-chaos-"); err != nil {
		return err
	}
	if o.keep {
		defer fmt.Fprintln(os.Stderr, "what the workers said, and all else, is kept in", o.dir)
	} else {
		defer os.RemoveAll(o.dir)
	}
	s := &session{options: o, began: time.Now(), log: os.Stderr}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.lab.Close()) }()
	if o.random() {
		err = s.soak(ctx)
	} else {
		err = s.table(ctx)
	}
	return errors.Join(err, s.result(context.WithoutCancel(ctx)))
}

// session is one run of the command.
type session struct {
	options
	began  time.Time
	log    io.Writer
	lab    *world.Lab
	driver *run.Driver

	mu       sync.Mutex
	rows     []report.Row
	soaked   report.Soak // of random schedules, instead of rows
	asked    int
	failures []string // of the harness
	violated int
	done     int
}

func (s *session) open(ctx context.Context) error {
	fmt.Fprintln(s.log, "building the worker with failpoints and starting the Temporal server")
	lab, err := world.Open(ctx, world.Options{Dir: s.dir, Log: s.log})
	if err != nil {
		return err
	}
	s.lab = lab
	s.driver = &run.Driver{Lab: lab, Random: s.random(), Plain: s.plain}
	return nil
}

// table runs the cells that are asked for, and after Ctrl-C none that has not begun.
func (s *session) table(ctx context.Context) error {
	all, err := s.cells()
	if err != nil {
		return err
	}
	s.asked = len(all)
	// Those that take long come first, so that the last ones do not run alone; but a clock that is off needs a program
	// of its own, which is built meanwhile.
	slices.SortStableFunc(all, func(a, b cell.Cell) int { return weight(b) - weight(a) })
	if len(all) > 0 && weight(all[len(all)-1]) < 0 {
		go func() { _ = s.lab.BuildClock() }() //nolint:contextcheck // it has none. Its error is that of the first cell which needs it
	}
	var g errgroup.Group
	g.SetLimit(s.jobs)
	for _, c := range all {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { s.one(ctx, job{c, c.Name(), "-only " + c.Name(), len(all)}); return nil })
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// weight orders cells by how long they take.
func weight(c cell.Cell) (n int) {
	for _, f := range c.Faults {
		switch f.Kind {
		case cell.Clock:
			return -1
		case cell.Crash, cell.Freeze:
			n += 2
		}
	}
	return n
}

// soak runs random schedules.
func (s *session) soak(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(s.jobs)
	for i := s.first; s.schedules == 0 || i < s.first+s.schedules; i++ {
		if ctx.Err() != nil || (s.lasting > 0 && time.Since(s.began) > s.lasting) {
			break
		}
		c := cell.Random(s.seed, i)
		j := job{c, fmt.Sprintf("seed %d schedule %d: %s", s.seed, i, c.Name()), fmt.Sprintf("-seed %d -first %d -soak 1", s.seed, i), s.schedules}
		g.Go(func() error { s.one(ctx, j); return nil })
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// job is one cell to be run.
type job struct {
	cell  cell.Cell
	name  string
	again string // the flags that run it again
	of    int    // how many there are in all; 0 if nobody knows
}

// one runs one cell and says what came of it.
func (s *session) one(ctx context.Context, j job) {
	row, err := s.driver.Cell(ctx, j.cell)
	if err != nil && ctx.Err() == nil { // what is wrong with the product is in the row: this was the harness, or its server
		fmt.Fprintf(s.log, "%s: once more, since the harness failed: %v\n", j.name, err)
		row, err = s.driver.Cell(ctx, j.cell)
	}
	if ctx.Err() != nil {
		return // somebody pressed Ctrl-C: what is half done says nothing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	count := fmt.Sprintf("[%d/%d]", s.done, j.of)
	if j.of == 0 {
		count = fmt.Sprintf("[%d]", s.done)
	}
	if err != nil {
		s.failures = append(s.failures, j.name)
		fmt.Fprintf(s.log, "%s %s: the harness failed: %v\n", count, j.name, err)
		return
	}
	if s.random() {
		s.soaked.Add(j.again, row)
	} else {
		s.rows = append(s.rows, row)
	}
	if len(row.Violations) == 0 {
		fmt.Fprintf(s.log, "%s %s: kept, %.1f s\n", count, j.name, row.Wall.Seconds())
		return
	}
	s.violated++
	fmt.Fprintf(s.log, "%s %s: VIOLATED, %.1f s\n", count, j.name, row.Wall.Seconds())
	for _, v := range row.Violations {
		fmt.Fprintf(s.log, "    %s\n", v)
	}
	fmt.Fprintf(s.log, "    to run it again: bin/chaos -keep %s\n", j.again)
}
