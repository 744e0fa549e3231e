package effect

import (
	"slices"

	"github.com/holdfast-run/holdfast/agent"
)

// next returns the states that may follow s. It is the table of the design's chapter on the effect
// ledger and the only place where transitions are decided.
func next(s agent.State) []agent.State {
	switch s {
	case agent.StateRequested:
		return []agent.State{agent.StateDenied, agent.StateAwaitingApproval, agent.StateAuthorized}
	case agent.StateAwaitingApproval:
		return []agent.State{
			agent.StateDeclined, agent.StateExpired, agent.StateCancelled,
			agent.StateSuperseded, agent.StateAuthorized,
		}
	case agent.StateAuthorized:
		return []agent.State{agent.StateVoid, agent.StateCancelled, agent.StateDispatched}
	case agent.StateVoid:
		// It opens the next ask, or none.
		return []agent.State{agent.StateAwaitingApproval, agent.StateDenied}
	case agent.StateDispatched:
		return []agent.State{
			agent.StateAcknowledged, agent.StateCommitted, agent.StateFailed, agent.StateUncertain,
		}
	case agent.StateAcknowledged:
		return []agent.State{agent.StateCommitted, agent.StateFailed, agent.StateUncertain}
	case agent.StateUncertain:
		return []agent.State{agent.StateCommitted, agent.StateFailed}
	case agent.StateCommitted:
		return []agent.State{agent.StateCompensating, agent.StateIrreversible}
	case agent.StateCompensating:
		return []agent.State{agent.StateCompensated, agent.StateCompensationFailed}
	case agent.StateCompensationFailed:
		return []agent.State{agent.StateCompensating}
	default:
		return nil
	}
}

// Can says whether an effect may go from one state to the other. No state follows itself.
func Can(from, to agent.State) bool { return slices.Contains(next(from), to) }

// Open says whether an effect of this state still needs something to happen: a decision, an outcome, a
// compensation. A committed one does not, although it may be compensated later, and neither does a void one,
// although it may be asked for again. Unknown states are not open.
func Open(s agent.State) bool {
	return s != agent.StateCommitted && s != agent.StateVoid && len(next(s)) > 0
}

// known says whether s is a state at all.
func known(s agent.State) bool {
	switch s {
	case agent.StateDenied, agent.StateDeclined, agent.StateExpired, agent.StateCancelled,
		agent.StateSuperseded, agent.StateFailed, agent.StateCompensated,
		agent.StateIrreversible:
		return true
	default:
		return len(next(s)) > 0
	}
}
