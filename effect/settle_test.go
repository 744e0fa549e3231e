package effect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

func TestSettleWalksToTheReportedEnd(t *testing.T) {
	t.Parallel()
	const refused = agent.State("refused")
	cases := []struct {
		from, outcome agent.State
		attempt       int
		want          agent.State
		conflict      bool
	}{
		{agent.StateAuthorized, agent.StateCommitted, 1, agent.StateCommitted, false},
		{agent.StateAuthorized, agent.StateCommitted, 0, agent.StateCommitted, false}, // a read
		{agent.StateAuthorized, agent.StateFailed, 1, agent.StateFailed, false},
		{agent.StateAuthorized, agent.StateFailed, 0, agent.StateFailed, false}, // never sent
		{agent.StateAuthorized, agent.StateUncertain, 1, agent.StateUncertain, false},
		{agent.StateAuthorized, agent.StateVoid, 0, agent.StateVoid, false},
		{agent.StateAuthorized, agent.StateCancelled, 0, agent.StateCancelled, false},
		{agent.StateAuthorized, agent.StateDenied, 0, agent.StateVoid, false},
		{agent.StateAuthorized, agent.StateCancelled, 1, refused, false},
		{agent.StateAuthorized, agent.StateVoid, 2, refused, false},
		{agent.StateAuthorized, agent.StateDispatched, 1, refused, false},
		{agent.StateAuthorized, "", 0, refused, false},
		{agent.StateRequested, agent.StateCommitted, 1, refused, false},
		{agent.StateRequested, agent.StateDenied, 0, agent.StateDenied, false},
		{agent.StateAwaitingApproval, agent.StateFailed, 1, refused, false},
		{agent.StateAwaitingApproval, agent.StateCancelled, 0, agent.StateCancelled, false},
		{agent.StateDispatched, agent.StateUncertain, 1, agent.StateUncertain, false},
		{agent.StateDispatched, agent.StateCancelled, 0, agent.StateFailed, false},
		{agent.StateAcknowledged, agent.StateCommitted, 1, agent.StateCommitted, false},
		{agent.StateUncertain, agent.StateCommitted, 1, agent.StateCommitted, false},
		{agent.StateUncertain, agent.StateFailed, 1, agent.StateFailed, false},
		{agent.StateUncertain, agent.StateVoid, 0, agent.StateFailed, false},
		{agent.StateUncertain, agent.StateUncertain, 1, agent.StateUncertain, false},
		// A final state never changes.
		{agent.StateCommitted, agent.StateCommitted, 1, agent.StateCommitted, false},
		{agent.StateCommitted, agent.StateUncertain, 1, agent.StateCommitted, false},
		{agent.StateCommitted, agent.StateFailed, 1, agent.StateCommitted, true},
		{agent.StateFailed, agent.StateCommitted, 1, agent.StateFailed, true},
		{agent.StateFailed, agent.StateFailed, 1, agent.StateFailed, false},
		{agent.StateCancelled, agent.StateCommitted, 1, agent.StateCancelled, true},
		{agent.StateVoid, agent.StateFailed, 0, agent.StateVoid, false},
		{agent.StateCompensating, agent.StateCommitted, 1, agent.StateCompensating, false},
		{agent.StateCompensated, agent.StateFailed, 1, agent.StateCompensated, true},
		{agent.StateIrreversible, agent.StateCommitted, 1, agent.StateIrreversible, false},
	}
	for _, c := range cases {
		var l effect.Ledger
		add(t, &l, "k", c.from)
		err := l.Settle("k", agent.ToolResult{State: c.outcome, Attempt: c.attempt, Note: "because"}, time.Time{}, "")
		got, _ := l.Get("k")
		if c.want == refused {
			if err == nil || got.State != c.from {
				t.Errorf("%s, then %s (attempt %d): %v, now %s", c.from, c.outcome, c.attempt, err, got.State)
			}
			continue
		}
		if err != nil || got.State != c.want || (got.Conflict != "") != c.conflict {
			t.Errorf("%s, then %s (attempt %d): %v, now %+v, want %s", c.from, c.outcome, c.attempt, err, got, c.want)
		}
	}
}

func TestSettleKeepsWhatTheActivityReported(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	add(t, &l, "k", agent.StateAuthorized)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := l.Settle("k", agent.ToolResult{
		State: agent.StateCommitted, Attempt: 2, At: at, Note: "adopted", Conflict: "its own answer was 500",
	}, time.Time{}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Effect{
		Key: "k", State: agent.StateCommitted, Intent: "intent of k", Attempt: 2, At: at,
		Note: "adopted", Conflict: "its own answer was 500",
	}
	got, _ := l.Get("k")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatSomebodyWishedToStopIsLateWhenItsOutcomeComesAfterTheTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after agent.CancelFact }{
		{agent.CancelAsked, agent.CancelLate}, {agent.CancelRefused, agent.CancelRefused}, {"", ""},
	} {
		var l effect.Ledger
		if err := l.Add(agent.Effect{Key: "k", State: agent.StateUncertain, Cancel: c.before}); err != nil {
			t.Fatal(err)
		}
		if err := l.SettleLate("k", agent.ToolResult{State: agent.StateCommitted, Attempt: 1}, time.Now(), ""); err != nil {
			t.Fatal(err)
		}
		if e, _ := l.Get("k"); e.Cancel != c.after || e.State != agent.StateCommitted {
			t.Errorf("%q became %q of %s", c.before, e.Cancel, e.State)
		}
		if l.SettleLate("nobody", agent.ToolResult{}, time.Time{}, "") == nil {
			t.Error("an effect that is not there was settled")
		}
	}
}
