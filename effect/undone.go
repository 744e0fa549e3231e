package effect

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// Undone enters how a compensation ended into the effect that it was to undo, which is left alone where its state does
// not allow that: it has been settled otherwise. At and by are as in [Ledger.Settle].
func (l *Ledger) Undone(key string, r agent.ToolResult, at time.Time, by string) {
	e, ok := l.Get(key)
	if !ok {
		return
	}
	if e.State == agent.StateCompensationFailed { // it was uncertain, and now somebody knows
		_ = l.Move(key, agent.StateCompensating, agent.Stamp{At: at, By: by}, nil)
	}
	to, note := agent.StateCompensated, ""
	if r.State != agent.StateCommitted {
		to, note = agent.StateCompensationFailed, "its compensation is "+string(r.State)
		if r.Note != "" {
			note += ": " + r.Note
		}
	}
	_ = l.Move(key, to, agent.Stamp{At: at, By: by, Note: note}, func(e *agent.Effect) { e.Note = note })
}
