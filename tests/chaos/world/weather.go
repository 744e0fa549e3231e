package world

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

// away is how long a connection is bad that comes back.
const away = 4 * time.Second

// Disturb does a fault that is beside the places: lost answers, a storm at the destination, a bad connection. Of any other
// it does nothing.
func (w *World) Disturb(f cell.Fault) error {
	switch f.Kind {
	case cell.Lost:
		return w.Inflict(f.Arg, max(1, f.Nth))
	case cell.Storm:
		if what, ok := strings.CutPrefix(f.Arg, "destination "); ok {
			return w.Inflict(what, f.Nth)
		}
	case cell.Link:
		return w.spoil(f.Arg)
	}
	return nil
}

// Link returns a connection by its name in a fault, nil if there is none.
func (w *World) Link(name string) *link.Link {
	return map[string]*link.Link{"destination": w.DestinationLink, "model": w.ModelLink, "server": w.ServerLink}[name]
}

// spoil makes a connection bad, now; all but a slow one come back.
func (w *World) spoil(arg string) error {
	where, how, _ := strings.Cut(arg, " ")
	l := w.Link(where)
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

// Stormy is a model's script with the storms that are among the faults: the first requests are turned away.
func Stormy(faults []cell.Fault, script modeltest.Func) (modeltest.Func, error) {
	for _, f := range faults {
		what, ok := strings.CutPrefix(f.Arg, "model ")
		if f.Kind != cell.Storm || !ok {
			continue
		}
		var status int
		var form string
		if _, err := fmt.Sscanf(what, "%d %s", &status, &form); err != nil || http.StatusText(status) == "" {
			return nil, fmt.Errorf("%q is no storm", f.Arg)
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
