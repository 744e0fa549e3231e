package activities

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
)

// repeating is a policy that allows everything and says what becomes of repeats.
func repeating(t *testing.T, r policy.Repeat) *policy.Policy {
	t.Helper()
	return newPolicy(t, policy.Config{Duplicates: r, Rules: []policy.Rule{{Name: "one", Then: agent.DecisionAllow}}})
}

func TestAnEffectThatCommittedIsRepeatedOnlyAsPolicySays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for repeat, want := range map[policy.Repeat]agent.State{
			policy.RepeatAllow: agent.StateCommitted, policy.RepeatDeny: agent.StateDenied, policy.RepeatAsk: agent.StateVoid,
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			w.snap.Policy = repeating(t, repeat)
			first := w.asked("pay", `{"n":1}`)
			wantState(t, w.mustAttempt(1, first), agent.StateCommitted)
			res := w.mustAttempt(1, w.at(w.asked("pay", `{"n":1.0}`), 3)) // numbers count by value
			wantState(t, res, want)
			if want == agent.StateVoid && (res.Terms.First != first.Key() || res.Verdict.Rule != policy.RuleRepeat || !strings.Contains(res.Note, first.Key())) {
				t.Errorf("%s: void with %+v, %+v", repeat, res.Verdict, res.Terms)
			}
			if want == agent.StateDenied && !strings.Contains(res.Text, first.Key()) {
				t.Errorf("%s: the model is told %q", repeat, res.Text)
			}
			wantState(t, w.mustAttempt(1, w.at(w.asked("pay", `{"n":2}`), 4)), agent.StateCommitted)
		}
	})
}

func TestARepeatGoesOnceTheApproversWereToldOfTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, p := range map[string]*policy.Policy{"allowed": repeating(t, policy.RepeatAsk), "asked": saying(t, agent.DecisionAsk)} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			w.snap.Policy = p
			first := granted(w.asked("pay", `{}`), "")
			wantState(t, w.mustAttempt(1, first), agent.StateCommitted)
			in := w.at(w.asked("pay", `{}`), 3)
			unaware := granted(in, "")
			res := w.mustAttempt(1, unaware)
			wantState(t, res, agent.StateVoid)
			aware := granted(in, "")
			aware.Grant.Terms = *res.Terms
			wantState(t, w.mustAttempt(1, aware), agent.StateCommitted)
			third := granted(w.at(in, 6), "")
			third.Grant.Terms.First = first.Key() // told of the first, which covers what came between
			wantState(t, w.mustAttempt(1, third), agent.StateCommitted)
			wrong := granted(w.at(in, 4), "")
			wrong.Grant.Terms.First = in.Key() // not the first
			wantState(t, w.mustAttempt(1, wrong), agent.StateVoid)
			stale := granted(w.at(in, 5), "")
			stale.Grant.Terms, stale.Grant.Decisions = *res.Terms, nil
			wantState(t, w.mustAttempt(1, stale), agent.StateVoid)
			if f.count() != 3 {
				t.Errorf("%s: sent %d times, want 3", name, f.count())
			}
		}
	})
}

// What an earlier action of the same intent left behind, under another key.
func TestAnIdenticalActionWaitsForTheOutcomeOfTheEarlierOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			left  string // see leaveBehind
			want  agent.State
			sends int
		}{
			{"nobody knows", "a dispatch", agent.StateDenied, 0},
			{"its dispatch record cannot be read", "damage", agent.StateDenied, 0},
			{"it failed", "a failure", agent.StateCommitted, 1},
			{"it was withdrawn", "a revocation", agent.StateCommitted, 1},
			{"it was claimed and never sent", "its own claim", agent.StateCommitted, 1},
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			earlier := w.at(w.asked("pay", `{}`), 1)
			leaveBehind(t, w, earlier, c.left)
			in := w.asked("pay", `{}`)
			res := w.mustAttempt(1, in)
			if res.State != c.want || f.count() != c.sends {
				t.Errorf("%s: %s (%s), sent %d times", c.name, res.State, res.Note, f.count())
			}
			if res.State == agent.StateDenied && !strings.Contains(res.Text, earlier.Key()) {
				t.Errorf("%s: the model is told %q", c.name, res.Text)
			}
			// Neither comes after all, not by a zombie either.
			if res := w.mustAttempt(1, earlier); f.count() != c.sends {
				t.Errorf("%s: the earlier one was sent after that: %+v", c.name, res)
			}
			if res := w.mustAttempt(2, in); c.want == agent.StateDenied && (res.State == agent.StateCommitted || f.count() != 0) {
				t.Errorf("%s: sent after it was denied: %+v", c.name, res)
			}
		}
	})
}

func TestAClaimThatCannotBeReadSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, junk := range []string{"", "{", "null", `{"key":""}`, `{"key":7}`} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			wanted, err := intent(f.spec, in.Args)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.space().Create(t.Context(), store.KindIntents, store.IntentName(wanted, 1), []byte(junk)); err != nil {
				t.Fatal(err)
			}
			wantState(t, w.mustAttempt(1, in), agent.StateDenied)
			if f.count() != 0 {
				t.Errorf("%q: sent", junk)
			}
		}
	})
}

func TestOfIdenticalActionsAtOnceOneIsSent(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, url, f)
		var wg sync.WaitGroup
		for step := range 8 {
			in := w.at(w.asked("pay", `{}`), step+1)
			wg.Go(func() {
				if _, _, err := w.attempt(t.Context(), 1, Progress{}, in); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if f.count() > 1 {
			t.Errorf("%s: sent %d times", url, f.count())
		}
	}
}

// TestAResetTurnAsksWhatItsDiscardedRunSent gives the discarded run the same effect under another key.
func TestAResetTurnAsksWhatItsDiscardedRunSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			left  string
			reset bool
			want  agent.State
			sends int
		}{
			{"a commit", true, agent.StateCommitted, 0},
			{"a dispatch", true, agent.StateUncertain, 0},
			{"damage", true, agent.StateUncertain, 0},
			{"a failure", true, agent.StateCommitted, 1},
			{"a revocation", true, agent.StateCommitted, 1},
			{"its own claim", true, agent.StateCommitted, 1},
			{"nothing", true, agent.StateCommitted, 1},
			{"a commit", false, agent.StateVoid, 0},
			{"a dispatch", false, agent.StateDenied, 0},
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{"to":"acme"}`)
			in.Reset = c.reset
			edited := in
			edited.Action = agent.DigestOf([]byte("as the tool was before it was edited"))
			leaveBehind(t, w, edited, c.left)
			res := w.mustAttempt(1, in)
			if res.State != c.want || f.count() != c.sends {
				t.Errorf("%s, reset %v: %s (%s), sent %d times", c.left, c.reset, res.State, res.Note, f.count())
			}
			if c.reset && c.sends == 0 && !strings.Contains(res.Note, edited.Key()) {
				t.Errorf("%s: note %q", c.left, res.Note)
			}
		}
	})
}

func TestATurnThatCannotClaimSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		if err := w.Store.Close(); err != nil {
			t.Fatal(err)
		}
		_, _, err := w.attempt(t.Context(), 1, Progress{}, in)
		wantApp(t, err, agent.ErrStore, false)
		if f.count() != 0 {
			t.Error("sent without a claim")
		}
	})
}

func TestAnIntentHasAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		w.snap.Policy = repeating(t, policy.RepeatAllow)
		in := w.asked("pay", `{}`)
		wanted, _ := intent(f.spec, in.Args)
		for n := range maxClaims {
			key := fmt.Sprintf("%s:turn-1/1.%d/0000000000000000", w.scope, n+1)
			if _, err := w.space().CreateIntent(t.Context(), wanted, n+1, key); err != nil {
				t.Fatal(err)
			}
		}
		wantState(t, w.mustAttempt(1, in), agent.StateDenied)
	})
}

// contradict puts beside an action's record what a given-up attempt saw that contradicts it.
func (w *world) contradict(key string, s agent.State) {
	w.t.Helper()
	saw := agent.ToolResult{State: s, Attempt: 2}
	if _, _, err := w.space().CreateResult(w.t.Context(), store.Result{Key: lateKey(key), Tool: &saw}); err != nil {
		w.t.Fatal(err)
	}
}

// A person said that it had failed, and then an attempt came back that had done it.
func TestAnIdenticalActionIsARepeatOfOneWhoseFailureIsContradicted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for repeat, want := range map[policy.Repeat]agent.State{
			policy.RepeatAllow: agent.StateCommitted, policy.RepeatDeny: agent.StateDenied, policy.RepeatAsk: agent.StateVoid,
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			w.snap.Policy = repeating(t, repeat)
			earlier := w.at(w.asked("pay", `{}`), 1)
			leaveBehind(t, w, earlier, "a failure")
			w.contradict(earlier.Key(), agent.StateCommitted)
			in := w.asked("pay", `{}`)
			wanted, _ := intent(f.spec, in.Args)
			if first := firstCommitted(t.Context(), w.space(), wanted, in.Key()); first != earlier.Key() {
				t.Errorf("%s: who is asked is told of %q", repeat, first)
			}
			res := w.mustAttempt(1, in)
			wantState(t, res, want)
			if want == agent.StateVoid && res.Terms.First != earlier.Key() {
				t.Errorf("void with %+v", res.Terms)
			}
		}
	})
}

// An approval of a repeat is of what the approver saw of the target, also where the rules would not ask.
func TestARepeatIsNotSentWhenItsTargetHasDrifted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		state := "open"
		f := newFake(t, spec(agent.ClassOnce), nil)
		f.sees = func() (string, error) { return state, nil }
		w := newWorld(t, "mem://", f)
		w.snap.Policy = repeating(t, policy.RepeatAsk)
		wantState(t, w.mustAttempt(1, w.asked("pay", `{}`)), agent.StateCommitted)
		in := w.at(w.asked("pay", `{}`), 3)
		res := w.mustAttempt(1, in)
		wantState(t, res, agent.StateVoid)
		aware := granted(in, "")
		aware.Grant.Terms = *res.Terms
		state = "closed"
		res = w.mustAttempt(1, aware)
		wantState(t, res, agent.StateVoid)
		if f.count() != 1 || res.Terms == nil || res.Terms.First == "" || res.Terms.Observed == nil || res.Terms.Observed.Text != state {
			t.Errorf("sent %d times, void with %+v", f.count(), res.Terms)
		}
		aware.Grant.Terms = *res.Terms
		wantState(t, w.mustAttempt(1, aware), agent.StateCommitted)
	})
}
