package naive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// patience is by when the conversation must be through. The slowest cell takes a third of it on a busy machine.
const patience = 75 * time.Second

// A Scene is what the loop is to do, and what comes of it when nothing goes wrong.
type Scene struct {
	Program  string         // that is a worker; empty is the one that runs
	Says     []string       // what the user says, a turn each
	Model    modeltest.Func // of the tools lookup_order and pay, without the storms of a cell
	Payments int            // that are made
	Answers  int            // of the model, that are charged for
}

// Run makes a cell happen to the loop, in a world of that name, and returns what became of it. [Has] must say that it
// can. The program that is a worker must be built with the tag "failpoint" and call [Main] where its first argument is
// [Command].
func Run(ctx context.Context, lab *world.Lab, name string, c cell.Cell, s Scene) (out report.Naive, err error) {
	faults, ok := counterpart(c)
	if !ok {
		return out, fmt.Errorf("the plain loop has nothing that corresponds to %s", c.Name())
	}
	if s.Program == "" {
		if !failpoint.Enabled {
			return out, errors.New("this program cannot be a worker with failpoints: build it with -tags failpoint")
		}
		if s.Program, err = os.Executable(); err != nil {
			return out, err
		}
	}
	d := &drive{scene: s}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(ctx, lab, name, faults); err != nil {
		return out, err
	}
	status, err := d.live(ctx)
	if err != nil {
		return out, fmt.Errorf("%w\nthe loop's workers said:\n%s", err, d.world.Said())
	}
	return d.tally(status)
}

// A drive is one run.
type drive struct {
	scene Scene
	world *world.World
	own   *world.Server // of a cell that kills it
	blows []blow

	mu    sync.Mutex
	awake time.Time // when the last one that was frozen has woken
}

// open makes the world. Its destination is the one that ignores keys and tells nobody what it made: the loop sends none,
// and does not ask.
func (d *drive) open(ctx context.Context, lab *world.Lab, name string, faults []cell.Fault) (err error) {
	c := world.Config{Name: name, Scenario: cell.Pay, Destination: cell.HTTPBlind}
	if c.Model, err = world.Stormy(faults, d.scene.Model); err != nil {
		return err
	}
	for _, f := range faults {
		if f.Kind == cell.Crash && d.own == nil {
			if d.own, err = lab.NewServer(ctx); err != nil {
				return err
			}
			c.Server = d.own
		}
	}
	if d.world, err = lab.New(ctx, c); err != nil {
		return err
	}
	for i, f := range faults {
		d.blows = append(d.blows, blow{f, filepath.Join(d.world.Dir, fmt.Sprintf("door-%d", i))})
	}
	return nil
}

func (d *drive) close() (err error) {
	if d.world != nil {
		err = d.world.Close()
	}
	if d.own != nil {
		err = errors.Join(err, d.own.Stop())
	}
	return err
}

// live runs the conversation to its end while things go wrong, and returns how it stands then.
func (d *drive) live(ctx context.Context) (status string, err error) {
	if err := d.disturb(); err != nil {
		return "", err
	}
	g, ctx := errgroup.WithContext(ctx)
	ctx, over := context.WithCancel(ctx)
	defer over()
	g.Go(func() error {
		err := d.supervise(ctx)
		if ctx.Err() != nil {
			return nil // it came of the end
		}
		return err
	})
	g.Go(func() error {
		defer over()
		status = d.talk(ctx)
		return pause(ctx, time.Until(d.woken())+time.Second) // whoever was frozen has its say
	})
	return status, g.Wait()
}

// sleeps notes that a worker stands still from now on.
func (d *drive) sleeps(span time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.awake = time.Now().Add(span)
}

func (d *drive) woken() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.awake
}

// fault returns the first fault of a kind, the zero value if there is none.
func (d *drive) fault(k cell.Kind) cell.Fault {
	for _, b := range d.blows {
		if b.Kind == k {
			return b.Fault
		}
	}
	return cell.Fault{}
}

// tally compares what was made with what was to be made.
func (d *drive) tally(status string) (report.Naive, error) {
	acted, err := d.world.Acted()
	if err != nil {
		return report.Naive{}, err
	}
	for _, b := range d.blows {
		if (b.At != "" && !b.struck(acted, nil)) || (status == done && !d.felt(b.Fault)) {
			return report.Naive{}, fmt.Errorf("%s at %q never struck the plain loop", b.Text(), b.At)
		}
	}
	made, err := d.world.Made()
	if err != nil {
		return report.Naive{}, err
	}
	distinct := map[[2]string]bool{}
	for _, e := range made {
		distinct[[2]string{e.Order, e.Amount}] = true
	}
	out := report.Naive{
		Applied: len(made), Duplicates: len(made) - len(distinct), Status: status,
		Extra: d.world.Model.Charges().Answers - d.scene.Answers,
	}
	if status == done {
		out.Lost = max(0, d.scene.Payments-len(distinct))
	}
	return out, nil
}
