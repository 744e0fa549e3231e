package effect

import (
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// Settle enters how a tool activity, or a reconciliation, ended. The activity reports only its end, so
// Settle walks the states between:
//
//   - committed, failed and uncertain pass through dispatched. That includes a failure of which nothing
//     was sent (no such host): a dispatch record was made before the attempt, and the record is what
//     "dispatched" means.
//   - void, cancelled and denied mean that nothing was sent, and are refused with an attempt in the
//     result. Of an effect that the ledger has as dispatched or uncertain they prove absence, and that
//     is failed.
//   - denied, when policy said no at admission to what had been authorized, is void: the authority is
//     what was lost. The note says why.
//
// What a late outcome says about an effect that has ended changes no state. If it contradicts the end,
// it is kept as the effect's conflict. The same outcome twice is nothing. An error means that the result
// makes no sense for this effect; the ledger is then unchanged.
//
// By names the person whose word it is, "" for the tool's or a record's; at is when the word came, and without it
// the effect gets no trail.
func (l *Ledger) Settle(key string, r agent.ToolResult, at time.Time, by string) error {
	e, ok := l.Get(key)
	if !ok {
		return fmt.Errorf("effect %q: is not in the ledger", key)
	}
	path, err := route(e, r)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		return l.late(e, r)
	}
	if !r.At.IsZero() && !at.IsZero() {
		at = r.At
	}
	for i, to := range path {
		stamp := agent.Stamp{At: at}
		var with func(*agent.Effect)
		if i == len(path)-1 {
			stamp.By, stamp.Note = by, r.Note
			with = func(e *agent.Effect) { tell(e, r) }
		}
		if err := l.Move(key, to, stamp, with); err != nil {
			return err
		}
	}
	return nil
}

// SettleLate is Settle for a word that came after the turn had ended. What somebody had wished to stop, and nobody knew
// whether it was, ended late then.
func (l *Ledger) SettleLate(key string, r agent.ToolResult, at time.Time, by string) error {
	if err := l.Settle(key, r, at, by); err != nil {
		return err
	}
	return l.Amend(key, func(e *agent.Effect) {
		if e.Cancel == agent.CancelAsked {
			e.Cancel = agent.CancelLate
		}
	})
}

// route returns the states to walk; none when the effect stays as it is.
func route(e agent.Effect, r agent.ToolResult) ([]agent.State, error) {
	sent := r.State == agent.StateCommitted || r.State == agent.StateFailed || r.State == agent.StateUncertain
	unsent := Unsent(r.State)
	switch {
	case !sent && !unsent:
		return nil, fmt.Errorf("effect %q: %q is not how an activity ends", e.Key, r.State)
	case unsent && r.Attempt > 0:
		return nil, fmt.Errorf("effect %q: %s, but attempt %d dispatched it", e.Key, r.State, r.Attempt)
	case !Open(e.State) || e.State == r.State || compensation(e.State):
		return nil, nil
	case sent && e.State == agent.StateAuthorized:
		return []agent.State{agent.StateDispatched, r.State}, nil
	case r.State == agent.StateDenied && e.State == agent.StateAuthorized:
		return []agent.State{agent.StateVoid}, nil
	case unsent && Can(e.State, agent.StateFailed):
		return []agent.State{agent.StateFailed}, nil
	case !Can(e.State, r.State):
		return nil, fmt.Errorf("effect %q: cannot go from %s to %s", e.Key, e.State, r.State)
	}
	return []agent.State{r.State}, nil
}

// Unsent says whether an outcome means that nothing was sent.
func Unsent(s agent.State) bool {
	return s == agent.StateVoid || s == agent.StateCancelled || s == agent.StateDenied
}

// late enters an outcome that changes no state.
func (l *Ledger) late(e agent.Effect, r agent.ToolResult) error {
	i := l.index(e.Key)
	switch {
	case r.Conflict != "":
		l.effects[i].Conflict = cut(r.Conflict)
	case contradicts(e.State, r.State):
		l.effects[i].Conflict = cut(fmt.Sprintf("%s, then reported as %s: %s", e.State, r.State, r.Note))
	}
	return nil
}

// contradicts says whether a late outcome and an end cannot both be true. Not to know contradicts
// nothing, and neither does an attempt that sent nothing.
func contradicts(end, late agent.State) bool {
	switch late {
	case agent.StateCommitted:
		return end != agent.StateCommitted && end != agent.StateIrreversible && !compensation(end)
	case agent.StateFailed:
		return end == agent.StateCommitted || end == agent.StateIrreversible || compensation(end)
	default:
		return false
	}
}

func compensation(s agent.State) bool {
	return s == agent.StateCompensating || s == agent.StateCompensated || s == agent.StateCompensationFailed
}

func tell(e *agent.Effect, r agent.ToolResult) {
	if r.Attempt > 0 {
		e.Attempt = r.Attempt
	}
	if !r.At.IsZero() {
		e.At = r.At
	}
	e.Note, e.Evidence = r.Note, r.Evidence
	if r.Cancel != "" {
		e.Cancel = r.Cancel
	}
	if r.Conflict != "" {
		e.Conflict = r.Conflict
	}
}
