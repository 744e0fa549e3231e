package activities

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// TestAResetTurnAsksWhatItsDiscardedRunSent gives the discarded run the same effect under another key.
func TestAResetTurnAsksWhatItsDiscardedRunSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			revoked bool
			result  agent.State // of the discarded run; empty for none
			want    agent.State
			sent    int
		}{
			"it was done":         {false, agent.StateCommitted, agent.StateCommitted, 0},
			"nobody knows":        {false, "", agent.StateUncertain, 0},
			"it failed":           {false, agent.StateFailed, agent.StateCommitted, 1},
			"it was never sent":   {true, "", agent.StateCommitted, 1},
			"it was another one":  {false, agent.StateCommitted, agent.StateCommitted, 1},
			"the run is no reset": {false, agent.StateCommitted, agent.StateCommitted, 1},
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{"to":"acme"}`)
			in.Reset = name != "the run is no reset"
			d := claimOf(agent.ActionKey(w.scope, in.Place, agent.DigestOf([]byte("edited"))), 1, in.Class, agent.DigestOf([]byte("edited")))
			d.Revoked = c.revoked
			d.Intent, _ = intent(f.spec, in.Args)
			if name == "it was another one" {
				d.Intent = "another"
			}
			if _, _, err := w.space().CreateDispatch(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if c.result != "" {
				if _, _, err := w.space().CreateResult(t.Context(), store.Result{Key: d.Key, Tool: &agent.ToolResult{State: c.result, Attempt: 1}}); err != nil {
					t.Fatal(err)
				}
			}
			if res := w.mustAttempt(1, in); res.State != c.want || f.count() != c.sent {
				t.Errorf("%s: %s, sent %d times", name, res.State, f.count())
			}
		}
	})
}

func TestAResetTurnThatCannotAskSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		in.Reset = true
		r := &toolRun{
			Activities: w.Activities, pulse: &pulse{ctx: t.Context(), attempt: 1, beat: func(Progress) {}}, snap: w.snap, in: in,
			space: w.space(), key: keyOf(in), tool: f, spec: f.spec,
		}
		if err := w.Store.Close(); err != nil {
			t.Fatal(err)
		}
		if res, err := r.discarded(); err == nil {
			t.Errorf("the store is gone, and yet %+v", res)
		}
	})
}
