package activities

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// older is what release 0.1.0 left of an effect: a dispatch record with its intent, no arguments, and no claim.
func (w *world) older(in agent.ToolInput, ended agent.State) string {
	w.t.Helper()
	tl, _ := w.snap.Tools.Lookup(in.Tool)
	wanted, err := intent(tl.Spec(), in.Args)
	if err != nil {
		w.t.Fatal(err)
	}
	d := claimOf(in.Key(), 1, in.Class, in.Action)
	d.Tool, d.Intent, d.Revoked, d.SendBy = in.Tool, wanted, ended == agent.StateCancelled, d.At
	space := w.Store.Space(in.Scope)
	_, _, err = space.CreateDispatch(w.t.Context(), d)
	if err == nil && (ended == agent.StateCommitted || ended == agent.StateFailed) {
		_, _, err = space.CreateResult(w.t.Context(), store.Result{Key: in.Key(), Tool: &agent.ToolResult{State: ended, Attempt: 1}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return in.Key()
}

// What the source did before there were claims counts as well, by its dispatch records.
func TestAForkKnowsWhatItsAncestorsDidBeforeThereWereClaims(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ was, want agent.State }{
		{agent.StateCommitted, agent.StateVoid},
		{agent.StateUncertain, agent.StateDenied},
		{agent.StateFailed, agent.StateCommitted},
		{agent.StateCancelled, agent.StateCommitted},
	} {
		w, _, _ := forks(t, "mem://")
		first := w.older(w.at(w.asked("pay", `{}`), 1), c.was)
		in := w.fork("fork", w.scope, 2)
		o := w.mustFork(t, in)
		w.ended(in.Scope, &o, o.Head, 1)
		second := w.fork("fork of the fork", in.Scope, 1)
		second.Scope.Session = "second"
		w.mustFork(t, second)
		w.Client = w.heard
		ask := w.asked("pay", `{}`)
		ask.Scope, ask.Root = second.Scope, &o.Root
		res := w.mustAttempt(1, ask)
		wantState(t, res, c.want)
		if c.want == agent.StateVoid && res.Terms.First != first {
			t.Errorf("%s: terms %+v do not name %s", c.was, res.Terms, first)
		}
	}
}

func TestAForkClaimsNothingThatIsClaimedAndNothingThatIsNoEffect(t *testing.T) {
	t.Parallel()
	w, s, _ := forks(t, "mem://")
	w.Client = w.heard
	done := w.asked("pay", `{"n":1}`)
	wantState(t, w.mustAttempt(1, done), agent.StateCommitted)
	undo := w.at(w.asked("pay", `{"n":2}`), 3)
	undo.Undoes, undo.Undo = done.Key(), 1
	wantState(t, w.mustAttempt(1, undo), agent.StateCommitted)
	again := claimOf(done.Key()+"/again-1", 1, done.Class, done.Action)
	if _, _, err := w.space().CreateDispatch(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.space().Create(t.Context(), store.KindDispatches, w.at(done, 4).Key(), []byte("{")); err != nil {
		t.Fatal(err)
	}
	w.older(w.at(w.asked("pay", `{"n":3}`), 5), agent.StateCommitted)
	w.Client = s
	for _, session := range []string{"fork-1", "fork-2"} {
		w.mustFork(t, w.fork(session, w.scope, 2))
		names, err := w.space().List(t.Context(), store.KindIntents, "")
		if err != nil || len(names) != 2 {
			t.Errorf("%s: claims %q, %v", session, names, err)
		}
	}
}
