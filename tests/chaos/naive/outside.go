package naive

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

// away is how long a connection is bad that comes back.
const away = 4 * time.Second

// disturb does what goes wrong beside the places, but for the model's storms, which are part of its script.
func (d *drive) disturb() error {
	for _, f := range d.blows {
		var err error
		switch {
		case f.Kind == cell.Lost:
			err = d.world.Inflict(f.Arg, max(1, f.Nth))
		case f.Kind == cell.Storm && strings.HasPrefix(f.Arg, "destination "):
			err = d.world.Inflict(strings.TrimPrefix(f.Arg, "destination "), f.Nth)
		case f.Kind == cell.Link && f.At == "":
			err = d.spoil(f.Arg)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Arg, err)
		}
	}
	return nil
}

// stormy is the model's script with its storm, if it has one: the first requests are turned away.
func stormy(faults []cell.Fault, script modeltest.Func) (modeltest.Func, error) {
	for _, f := range faults {
		if f.Kind != cell.Storm || strings.HasPrefix(f.Arg, "destination ") {
			continue
		}
		var status int
		var form string
		if _, err := fmt.Sscanf(f.Arg, "model %d %s", &status, &form); err != nil {
			return nil, fmt.Errorf("storm %q: %w", f.Arg, err)
		}
		calm, count := script, new(atomic.Int64)
		script = func(q modeltest.Request) modeltest.Step {
			switch {
			case count.Add(1) > int64(f.Nth):
				return calm(q)
			case form == "date": // which has no fractions: one to two seconds ahead
				return modeltest.TurnAway(status).RetryAt(time.Now().Add(2 * time.Second))
			}
			return modeltest.TurnAway(status).RetryIn(1)
		}
	}
	return script, nil
}

// felt says whether somebody met a fault beside the places. The loop sends again whatever it had no answer to.
func (d *drive) felt(f cell.Fault) bool {
	requests := 0
	for _, n := range d.world.Pay.Books().Requests {
		requests += n
	}
	switch where, _, _ := strings.Cut(f.Arg, " "); {
	case f.Kind == cell.Link:
		return d.links()[where].Hits() > 0
	case f.Kind == cell.Storm && where == "model":
		return d.world.Model.Count() >= d.scene.Answers+f.Nth
	case f.Kind == cell.Storm, f.Kind == cell.Lost:
		return requests >= d.scene.Payments+f.Nth
	}
	return true
}

func (d *drive) links() map[string]*link.Link {
	return map[string]*link.Link{"destination": d.world.DestinationLink, "model": d.world.ModelLink, "server": d.world.ServerLink}
}

// spoil makes a connection bad, now; all but a slow one come back.
func (d *drive) spoil(arg string) error {
	where, how, _ := strings.Cut(arg, " ")
	l := d.links()[where]
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
