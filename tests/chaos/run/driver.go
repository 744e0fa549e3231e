package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// patience bounds how long a run's turns may take to end. It is long because machines are slow; nothing waits for it when
// all goes well.
const patience = 2 * time.Minute

// A Driver runs cells in one laboratory. It is safe for concurrent use.
type Driver struct {
	Lab *world.Lab
	// Random says that the cells are random schedules: one whose fault never struck is not the harness's error.
	Random bool
	// Plain has the plain loop run beside it.
	Plain bool

	calm  memo[witness.Story]
	naive memo[*report.Naive]
	count atomic.Int64 // runs, for names
	looks atomic.Int64 // runs in which somebody looked at attention
}

// Looked is in how many runs an open wait was looked for with holdfast attention.
func (d *Driver) Looked() int { return int(d.looks.Load()) }

// Cell runs one cell and returns its row. The error is the harness's own trouble; what is wrong with the product is in
// the row.
func (d *Driver) Cell(ctx context.Context, c cell.Cell) (report.Row, error) {
	began := time.Now()
	calm, err := d.undisturbed(ctx, c)
	if err != nil {
		return report.Row{}, fmt.Errorf("the undisturbed run: %w", err)
	}
	r, err := d.run(ctx, c)
	if err != nil {
		return report.Row{}, err
	}
	row := r.row(calm)
	row.Wall = time.Since(began)
	if row.Naive, err = d.plain(ctx, c); err != nil {
		return row, fmt.Errorf("the plain loop: %w", err)
	}
	return row, nil
}

// undisturbed returns the story of the cell's scenario at its destination when nothing goes wrong.
func (d *Driver) undisturbed(ctx context.Context, c cell.Cell) (witness.Story, error) {
	key := cell.Cell{Scenario: c.Scenario, Destination: c.Destination}
	return d.calm.of(key.Name(), func() (witness.Story, error) {
		r, err := d.run(ctx, key)
		if err != nil {
			return witness.Story{}, err
		}
		for _, v := range witness.Judge(r.story, r.story, key.Destination, cell.Same) {
			err = errors.Join(err, fmt.Errorf("%s: %s", v.Invariant, v.Detail))
		}
		return r.story, errors.Join(err, scripted(c.Scenario, r.story))
	})
}

// run makes a cell happen and returns what is known about it.
func (d *Driver) run(ctx context.Context, c cell.Cell) (_ *run, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	r := &run{driver: d, cell: c}
	if err := r.open(ctx, int(d.count.Add(1))); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nits workers said:\n%s", err, r.world.Said())
		}
		err = errors.Join(err, r.close(ctx))
	}()
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	return r, r.hear(ctx)
}

// memo computes a value for a key once; those who want it meanwhile wait. An error is not kept.
type memo[V any] struct {
	mu  sync.Mutex
	all map[string]*memoized[V]
}

type memoized[V any] struct {
	mu   sync.Mutex
	done bool
	v    V
}

func (m *memo[V]) of(key string, f func() (V, error)) (V, error) {
	m.mu.Lock()
	if m.all == nil {
		m.all = map[string]*memoized[V]{}
	}
	e, ok := m.all[key]
	if !ok {
		e = &memoized[V]{}
		m.all[key] = e
	}
	m.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return e.v, nil
	}
	v, err := f()
	if err == nil {
		e.v, e.done = v, true
	}
	return v, err
}
