package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// run is one cell while it happens.
type run struct {
	driver *Driver
	cell   cell.Cell
	world  *world.World
	own    *world.Server // of a cell that kills the server
	plan   []generation
	story  witness.Story

	mu       sync.Mutex
	workers  []*world.Worker // by generation
	frozen   []frozen
	shown    []witness.Turn
	crashed  []string // what workers did that nobody asked them for, and turns that do not end
	denied   time.Time
	looked   bool // somebody looked at attention
	unlisted []string
	changed  bool // policy or agent
}

// frozen is a worker that stands still.
type frozen struct {
	worker *world.Worker
	until  time.Time
}

// open makes the world of a cell.
func (r *run) open(ctx context.Context, n int) error {
	c := world.Config{
		Name: fmt.Sprintf("c%d", n), Scenario: r.cell.Scenario, Destination: r.cell.Destination,
		Renew: r.has(cell.Renew), Cold: r.has(cell.Cold),
	}
	var err error
	if c.Model, err = world.Stormy(r.cell.Faults, script(r.cell.Scenario, c.ToolName())); err != nil {
		return err
	}
	if f, ok := r.fault(cell.Clock); ok {
		if c.Clock, err = time.ParseDuration(f.Arg); err != nil {
			return err
		}
	}
	if f, ok := r.fault(cell.Word); ok && f.Arg == "late" {
		c.Expires = 3 * time.Second
	}
	if r.has(cell.Crash) {
		if r.own, err = r.driver.Lab.NewServer(ctx); err != nil {
			return err
		}
		c.Server = r.own
	}
	if r.world, err = r.driver.Lab.New(ctx, c); err != nil {
		return errors.Join(err, r.close(ctx))
	}
	r.plan = plan(r.cell, r.world.Dir)
	return nil
}

func (r *run) close(ctx context.Context) (err error) {
	if r.world != nil {
		r.forget(ctx)
		err = r.world.Close()
	}
	if r.own != nil {
		err = errors.Join(err, r.own.Stop())
	}
	return err
}

// forget ends the session, so that nobody finds it open without a worker: attention looks at every open run.
func (r *run) forget(ctx context.Context) {
	if r.own != nil {
		return // its server goes with it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = r.world.Server.Client().TerminateWorkflow(ctx, r.world.Session, "", "the run is over") // one that never began is not there
}

func (r *run) fault(k cell.Kind) (cell.Fault, bool) {
	i := slices.IndexFunc(r.cell.Faults, func(f cell.Fault) bool { return f.Kind == k })
	if i < 0 {
		return cell.Fault{}, false
	}
	return r.cell.Faults[i], true
}

func (r *run) has(k cell.Kind) bool {
	_, ok := r.fault(k)
	return ok
}

// live runs the scenario to its end while things go wrong.
func (r *run) live(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	ctx, over := context.WithCancel(ctx)
	defer over()
	var g errgroup.Group
	g.Go(func() error { return whileWanted(ctx, r.supervise(ctx)) })
	g.Go(func() error { return whileWanted(ctx, r.disturb(ctx)) })
	g.Go(func() error {
		defer over()
		if err := r.talk(ctx); err != nil {
			return err
		}
		return r.thaw(ctx)
	})
	return g.Wait()
}

// whileWanted drops an error that came because what it is about is not wanted any more.
func whileWanted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// talk is what users and people do.
func (r *run) talk(ctx context.Context) error {
	if err := insist(ctx, func(ctx context.Context) error { return r.world.Send(ctx, "m1", wish) }); err != nil {
		return fmt.Errorf("the first message: %w", err)
	}
	if r.cell.Scenario == cell.Pay {
		if err := insist(ctx, func(ctx context.Context) error { return r.world.Send(ctx, "m2", thanks) }); err != nil {
			return fmt.Errorf("the second message: %w", err)
		}
	}
	var g errgroup.Group
	people, leave := context.WithCancel(ctx)
	defer leave()
	g.Go(func() error { return whileWanted(people, r.person(people)) })
	g.Go(func() error {
		defer leave() // a turn that ends without asking has nobody to wait for
		return r.watch(ctx)
	})
	return g.Wait()
}

// blame notes what is wrong with the product and shows without any witness.
func (r *run) blame(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crashed = append(r.crashed, fmt.Sprintf(format, args...))
}

// turns is how many turns a scenario has.
func turns(s cell.Scenario) int {
	if s == cell.Pay {
		return 2
	}
	return 1
}

// watch waits for the end of each turn and notes how it was shown at that moment. Scenarios are such that each turn ends,
// also where policy or people change.
func (r *run) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := 1; n <= turns(r.cell.Scenario); n++ {
		if err := insist(ctx, func(ctx context.Context) error { return r.ended(ctx, n) }); err != nil {
			r.blame("turn %d has not ended within %s: %v", n, patience, err)
			return nil
		}
		all, err := witness.Turns(ctx, r.source())
		if err != nil {
			return fmt.Errorf("turn %d has ended and cannot be shown: %w", n, err)
		}
		r.shown = append(r.shown, all[n-1])
	}
	return nil
}

// ended says why a turn has not ended, nil when it has.
func (r *run) ended(ctx context.Context, n int) error {
	d, err := r.world.Server.Client().DescribeWorkflow(ctx, agent.TurnID(r.world.Session, n), "")
	if err != nil {
		return err
	}
	if d.WorkflowCloseTime == nil {
		return fmt.Errorf("it is %s", d.Status)
	}
	return nil
}

// thaw waits until whoever was frozen has woken and had its say: told to stop, it finishes what it has.
func (r *run) thaw(ctx context.Context) error {
	r.mu.Lock()
	all := slices.Clone(r.frozen)
	r.mu.Unlock()
	for _, f := range all {
		if err := rest(ctx, time.Until(f.until)+time.Second); err != nil {
			return err
		}
		if err := f.worker.Stop(5 * time.Second); err != nil {
			r.blame("a worker that woke does not stop: %v", err)
		}
	}
	return nil
}

// insist tries until it succeeds or ctx ends; then the error is the last that was no consequence of that.
func insist(ctx context.Context, f func(context.Context) error) error {
	var last error
	for {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := f(once)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if rest(ctx, 100*time.Millisecond) != nil {
			return last
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
