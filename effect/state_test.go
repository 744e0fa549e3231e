package effect_test

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

var states = []agent.State{
	agent.StateRequested, agent.StateDenied, agent.StateAwaitingApproval, agent.StateAuthorized,
	agent.StateDeclined, agent.StateExpired, agent.StateCancelled, agent.StateSuperseded, agent.StateVoid,
	agent.StateDispatched, agent.StateAcknowledged, agent.StateCommitted, agent.StateFailed,
	agent.StateUncertain, agent.StateCompensating, agent.StateCompensated, agent.StateCompensationFailed,
	agent.StateIrreversible,
}

// table is the design's chapter 6, written a second time on purpose.
var table = map[string]bool{
	"requested>denied": true, "requested>awaiting_approval": true, "requested>authorized": true,
	"awaiting_approval>declined": true, "awaiting_approval>expired": true,
	"awaiting_approval>cancelled": true, "awaiting_approval>superseded": true,
	"awaiting_approval>authorized": true,
	"void>awaiting_approval":       true, "void>denied": true, // "opens the next ask"
	"authorized>void": true, "authorized>cancelled": true, "authorized>dispatched": true,
	"dispatched>acknowledged": true, "dispatched>committed": true, "dispatched>failed": true,
	"dispatched>uncertain":   true,
	"acknowledged>committed": true, "acknowledged>failed": true, "acknowledged>uncertain": true,
	"uncertain>committed": true, "uncertain>failed": true,
	"committed>compensating": true, "committed>irreversible": true,
	"compensating>compensated": true, "compensating>compensation_failed": true,
	"compensation_failed>compensating": true,
}

func TestCanFollowsTheTableForEveryPair(t *testing.T) {
	t.Parallel()
	all := append([]agent.State{"", "no such state"}, states...)
	for _, from := range all {
		for _, to := range all {
			want := table[string(from)+">"+string(to)]
			if got := effect.Can(from, to); got != want {
				t.Errorf("Can(%q, %q) = %v, want %v", from, to, got, want)
			}
			if err := moved(t, from, to); (err == nil) != want {
				t.Errorf("Move %q to %q: %v, want allowed = %v", from, to, err, want)
			}
		}
	}
}

func moved(t *testing.T, from, to agent.State) error {
	t.Helper()
	var l effect.Ledger
	if err := l.Add(agent.Effect{Key: "k", State: from}); err != nil {
		return err
	}
	err := l.Move("k", to, agent.Stamp{}, nil)
	want := to
	if err != nil {
		want = from
	}
	if e, _ := l.Get("k"); e.State != want {
		t.Errorf("Move %q to %q left %q", from, to, e.State)
	}
	return err
}

func TestOpenIsWhatStillNeedsSomethingToHappen(t *testing.T) {
	t.Parallel()
	open := map[agent.State]bool{
		agent.StateRequested: true, agent.StateAwaitingApproval: true, agent.StateAuthorized: true,
		agent.StateDispatched: true, agent.StateAcknowledged: true, agent.StateUncertain: true,
		agent.StateCompensating: true, agent.StateCompensationFailed: true,
	}
	for _, s := range append([]agent.State{"", "no such state"}, states...) {
		if effect.Open(s) != open[s] {
			t.Errorf("Open(%q) = %v", s, effect.Open(s))
		}
	}
}
