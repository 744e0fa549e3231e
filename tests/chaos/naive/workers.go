package naive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// glance is how often the harness looks whether a failpoint has acted.
const glance = 30 * time.Millisecond

// A blow is a fault that strikes the loop.
type blow struct {
	cell.Fault
	door string // the file that lets a worker go on that is held at the fault's place
}

// rule is what the failpoint does at the blow's place, "" if it has none.
func (b blow) rule() string {
	switch {
	case b.Kind == cell.Kill:
		return b.Place() + "=kill"
	case b.Kind == cell.Freeze:
		return fmt.Sprintf("%s=freeze:%s", b.Place(), cell.Frozen)
	case b.Kind == cell.Hang, b.Kind == cell.Slow:
		return b.Place() + "=hang:" + b.Arg
	case b.Kind == cell.Error:
		return strings.TrimSuffix(b.Place()+"=error:"+b.Arg, ":")
	case b.At != "":
		return b.Place() + "=file:" + b.door
	}
	return ""
}

// ends says whether a worker's time is over with the blow, so that another one takes over.
func (b blow) ends() bool { return b.Kind == cell.Kill || b.Kind == cell.Freeze }

// struck says whether the blow has come to a worker, or to any one for nil.
func (b blow) struck(acted []world.Passing, w *world.Worker) bool {
	for _, p := range acted {
		if p.Name == b.At && (w == nil || p.PID == w.PID()) && (b.Nth == 0 || p.N >= b.Nth && p.N <= max(b.Nth, b.Last)) {
			return true
		}
	}
	return false
}

// supervise runs one worker after the other. Each meets the blows up to the one that ends its time.
func (d *drive) supervise(ctx context.Context) error {
	for rest := d.blows; ; {
		n := 0
		for n < len(rest) && !rest[n].ends() {
			n++
		}
		n = min(n+1, len(rest))
		w, err := d.start(ctx, rest[:n])
		if err != nil {
			return err
		}
		if over, err := d.attend(ctx, w, rest[:n]); over || err != nil {
			return err
		}
		rest = rest[n:]
	}
}

// start starts a worker that meets the blows.
func (d *drive) start(ctx context.Context, blows []blow) (*world.Worker, error) {
	var rules []string
	for _, b := range blows {
		if r := b.rule(); r != "" {
			rules = append(rules, r)
		}
	}
	c := config{
		address: d.world.ServerLink.Addr(), queue: d.world.Queue, cold: d.fault(cell.Cold).Kind != "",
		model: d.world.ModelLink.URL() + "/v1", payments: d.world.DestinationLink.URL(),
	}
	return d.world.Run(ctx, append([]string{d.scene.Program, Command}, c.args()...), strings.Join(rules, ","))
}

// attend watches a worker until its time is over, or that of the whole run.
func (d *drive) attend(ctx context.Context, w *world.Worker, blows []blow) (over bool, err error) {
	seen := make([]bool, len(blows))
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case <-w.Done():
			if n := len(blows); n > 0 && blows[n-1].Kind == cell.Kill && w.Killed() {
				return false, nil
			}
			return true, errors.New("a worker ended by itself")
		case <-time.After(glance):
		}
		acted, err := d.world.Acted()
		if err != nil {
			return true, err
		}
		for i, b := range blows {
			if seen[i] || !b.struck(acted, w) {
				continue
			}
			seen[i] = true
			if b.Kind == cell.Freeze {
				d.sleeps(cell.Frozen)
				return false, nil
			}
			if err := d.strike(ctx, b); err != nil {
				return true, fmt.Errorf("%s: %w", b.Kind, err)
			}
		}
	}
}

// strike does what happens while a worker is held at a place, and lets it go on.
func (d *drive) strike(ctx context.Context, b blow) error {
	switch b.Kind {
	case cell.Link:
		if err := d.world.Disturb(b.Fault); err != nil {
			return err
		}
		return os.WriteFile(b.door, nil, 0o600)
	case cell.Crash:
		d.world.Server.Crash()
		if err := os.WriteFile(b.door, nil, 0o600); err != nil {
			return err
		}
		// The worker goes on for a moment without a server.
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		return d.world.Server.Restart(ctx)
	}
	return nil
}
