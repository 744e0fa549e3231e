package run

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

// away is how long a connection is bad that comes back.
const away = 4 * time.Second

// disturb does what goes wrong beside the boundaries.
func (r *run) disturb(ctx context.Context) error {
	for _, f := range r.cell.Faults {
		var err error
		switch f.Kind {
		case cell.Lost:
			err = r.world.Inflict(f.Arg, max(1, f.Nth))
		case cell.Storm:
			err = r.storm(f)
		case cell.Link:
			if f.At == "" {
				err = r.spoil(f.Arg)
			}
		case cell.Late:
			err = r.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Arg, err)
		}
	}
	return nil
}

// storms wraps the model's script: the first requests get what the cell's storm says.
func (r *run) storms(script modeltest.Func) modeltest.Func {
	f, ok := r.fault(cell.Storm)
	who, status, form, err := stormOf(f)
	if !ok || err != nil || who != "model" {
		return script
	}
	var count atomic.Int64
	return func(q modeltest.Request) modeltest.Step {
		if count.Add(1) > int64(f.Nth) {
			return script(q)
		}
		if form == "date" { // which has no fractions: one to two seconds ahead
			return modeltest.TurnAway(status).RetryAt(time.Now().Add(2 * time.Second))
		}
		return modeltest.TurnAway(status).RetryIn(1)
	}
}

// storm makes the destination answer badly.
func (r *run) storm(f cell.Fault) error {
	who, status, form, err := stormOf(f)
	if err != nil || who == "model" {
		return err
	}
	return r.world.Inflict(fmt.Sprintf("%d %s", status, form), f.Nth)
}

// stormOf reads "model 429 seconds".
func stormOf(f cell.Fault) (who string, status int, form string, err error) {
	if f.Kind != cell.Storm {
		return "", 0, "", nil
	}
	_, err = fmt.Sscanf(f.Arg, "%s %d %s", &who, &status, &form)
	if err == nil && http.StatusText(status) == "" {
		err = fmt.Errorf("no status %d", status)
	}
	return who, status, form, err
}

// spoil makes a connection bad, now; all but a slow one come back.
func (r *run) spoil(arg string) error {
	where, how, _ := strings.Cut(arg, " ")
	l := r.links()[where]
	if l == nil {
		return fmt.Errorf("there is no connection to %q", where)
	}
	switch how {
	case "slow":
		l.Slow(50*time.Millisecond, 16<<10)
		return nil
	case "half-open":
		l.HalfOpen()
	case "deaf":
		l.Deaf()
	case "cut":
		l.Cut()
	default:
		return fmt.Errorf("no connection is %q", how)
	}
	time.AfterFunc(away, l.Pass)
	return nil
}

func (r *run) links() map[string]*link.Link {
	return map[string]*link.Link{"destination": r.world.DestinationLink, "model": r.world.ModelLink, "server": r.world.ServerLink}
}

// settle tells the turn and the session again and again that effects are settled that are not, or not theirs. A signal
// names only a key, so it forges nothing.
func (r *run) settle(ctx context.Context) error {
	for {
		made, err := r.world.Made()
		if err != nil {
			return err
		}
		keys := []string{"somebody-else~00000000:turn-1/1.1/0123456789abcdef"}
		for _, e := range made {
			keys = append(keys, e.Key)
		}
		for _, key := range keys {
			for _, turn := range []int{1, 0} {
				_ = r.world.Signal(ctx, turn, agent.SignalSettle, agent.Settlement{Key: key}) // refused by a turn that is not there
			}
		}
		if rest(ctx, 300*time.Millisecond) != nil {
			return nil
		}
	}
}
