package world

import (
	"slices"
	"time"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// Widths are how long the window stood open that cannot be closed, in all worlds that are closed by now: from an
// attempt's last look at the clock until its request had left.
func (l *Lab) Widths() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.widths)
}

// measure adds the widths of a world whose workers are gone.
func (w *World) measure() error {
	trace, err := w.Trace()
	if err != nil {
		return err
	}
	acted, err := w.Acted()
	if err != nil {
		return err
	}
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	w.lab.widths = append(w.lab.widths, widths(trace, acted)...)
	return nil
}

// widths leaves out where a failpoint acted in the process between the look and the send.
func widths(trace, acted []Passing) (out []time.Duration) {
	looked := map[int]Passing{} // by process, and not sent yet
	for _, p := range trace {
		switch p.Name {
		case failpoint.ToolLastCheck:
			looked[p.PID] = p
		case failpoint.ToolAfterSend:
			look, ok := looked[p.PID]
			delete(looked, p.PID)
			held := slices.ContainsFunc(acted, func(a Passing) bool {
				return a.PID == p.PID && !a.At.Before(look.At) && a.At.Before(p.At)
			})
			if ok && !held {
				out = append(out, p.At.Sub(look.At))
			}
		}
	}
	return out
}
