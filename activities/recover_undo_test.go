package activities

import (
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/store"
)

// A turn is terminated while it undoes what it has done: nobody else enters how its compensation ended.
func TestARecoveredTurnSaysWhatBecameOfItsCompensations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, original := range []agent.State{agent.StateCompensating, agent.StateCommitted} { // as the turn says, and as its history does
			for _, c := range []struct {
				left string // of the compensation, by the time of the termination
				at   agent.State
				want agent.State
			}{
				{"a commit", agent.StateAuthorized, agent.StateCompensated},
				{"a failure", agent.StateAuthorized, agent.StateCompensationFailed},
				{"a dispatch", agent.StateAuthorized, agent.StateCompensationFailed},
				{"nothing", agent.StateAwaitingApproval, agent.StateCompensationFailed},
			} {
				w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
				did, undo := w.asked("pay", `{}`), w.asked("pay", `{"back":true}`)
				undo.Undoes, undo.Undo = did.Key(), 1
				leaveBehind(t, w, did, "a commit")
				if c.left != "nothing" {
					d := claimOf(undo.Key(), 1, undo.Class, undo.Action)
					d.Revoked = false
					if _, _, err := w.space().CreateDispatch(t.Context(), d); err != nil {
						t.Fatal(err)
					}
				}
				if s := map[string]agent.State{"a commit": agent.StateCommitted, "a failure": agent.StateFailed}[c.left]; s != "" {
					if _, _, err := w.space().CreateResult(t.Context(), store.Result{Key: undo.Key(), Tool: &agent.ToolResult{State: s, Attempt: 1}}); err != nil {
						t.Fatal(err)
					}
				}
				view := agent.TurnView{Step: 2, Ledger: []agent.Effect{
					{Key: did.Key(), Tool: "pay", Place: did.Place, Class: did.Class, Action: did.Action, State: original},
					{Key: undo.Key(), Tool: "pay", Place: did.Place, Class: did.Class, Action: undo.Action, State: c.at, Undoes: did.Key()},
				}}
				ledger, _, err := w.settleAll(t.Context(), w.snap, agent.RecoverInput{Scope: w.scope, Turn: 1}, view)
				if err != nil {
					t.Fatal(err)
				}
				undone(&ledger)
				e, _ := ledger.Get(did.Key())
				if e.State != c.want || e.Undone != 1 && original == agent.StateCommitted {
					t.Errorf("%s, %s: %+v", original, c.left, e)
				}
				if listed := len(ledger.Unresolved()) > 0; listed != (c.want == agent.StateCompensationFailed) {
					t.Errorf("%s, %s: listed %v", original, c.left, listed)
				}
			}
		}
	})
}

// The turn's last state says nothing of an effect whose end is contradicted.
func TestARecoveredTurnListsAContradiction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
		in := w.asked("pay", `{}`)
		leaveBehind(t, w, in, "a failure")
		w.contradict(in.Key(), agent.StateCommitted)
		var ledger effect.Ledger
		if err := w.addDispatched(t.Context(), w.snap, agent.RecoverInput{Scope: w.scope, Turn: 1}, &ledger); err != nil {
			t.Fatal(err)
		}
		if all := ledger.Unresolved(); len(all) != 1 || all[0].State != agent.StateFailed || !strings.Contains(all[0].Conflict, "saw committed") {
			t.Errorf("unresolved %+v", all)
		}
	})
}

// An action whose authority was void and that was approved anew is scheduled twice; what counts is the second time.
func TestAHistorysViewHasAnActionThatWasScheduledAgainAsSent(t *testing.T) {
	t.Parallel()
	in := agent.ToolInput{Scope: agent.NewScope("s1", "run-1"), Place: agent.Place{Turn: 1, Step: 1, Call: 1}, Tool: "pay", Class: agent.ClassOnce, Action: agent.DigestOf(nil)}
	payload := func(v any) *common.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(v)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	w := &walk{scheduled: map[int64]any{}}
	schedule := func(event int64) {
		w.schedule(event, &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &common.ActivityType{Name: agent.ActivityTool}, Input: payload(in)})
	}
	schedule(5)
	w.complete(w.scheduled[5], payload(agent.ToolResult{State: agent.StateVoid}))
	schedule(11)
	if l := w.view.Ledger; len(l) != 1 || l[0].State != agent.StateDispatched {
		t.Errorf("ledger %+v", l)
	}
}
