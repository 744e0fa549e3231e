package activities

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// as is what a member of the family asks for: the same action in its own session. Member 0 is the session that all
// others are forks of, or forks of forks.
func (w *world) as(member int, in agent.ToolInput) agent.ToolInput {
	if member > 0 {
		root := w.scope
		in.Scope, in.Root = agent.NewScope(fmt.Sprintf("fork-%d", member), "its run"), &root
	}
	return in
}

// pairs are who asked before and who asks now.
var pairs = []struct {
	name          string
	earlier, asks int
}{
	{"a fork after its root", 0, 1},
	{"the root after its fork", 1, 0},
	{"a fork after another", 1, 2},
	{"a fork after itself", 1, 1},
}

// What somebody else of the family left behind, in their own records.
func TestAnIdenticalActionOfTheFamilyIsRepeatedOnlyWhenItIsKnownNotToHaveHappened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, pair := range pairs {
			for _, c := range []struct {
				left  string // see leaveBehind
				want  agent.State
				sends int
			}{
				{"a commit", agent.StateVoid, 0},
				{"a dispatch", agent.StateDenied, 0},
				{"damage", agent.StateDenied, 0},
				{"a failure", agent.StateCommitted, 1},
				{"a revocation", agent.StateCommitted, 1},
				{"its own claim", agent.StateCommitted, 1},
			} {
				name := pair.name + ", " + c.left
				f := newFake(t, spec(agent.ClassOnce), nil)
				w := newWorld(t, "mem://", f)
				earlier := w.as(pair.earlier, w.at(w.asked("pay", `{}`), 1))
				leaveBehind(t, w, earlier, c.left)
				in := w.as(pair.asks, w.asked("pay", `{}`))
				res := w.mustAttempt(1, in)
				if res.State != c.want || f.count() != c.sends {
					t.Errorf("%s: %s (%s), sent %d times", name, res.State, res.Note, f.count())
				}
				if c.sends == 0 && !strings.Contains(res.Text+res.Note, earlier.Key()) {
					t.Errorf("%s: told %q, %q", name, res.Text, res.Note)
				}
				if c.want == agent.StateVoid && (res.Terms == nil || res.Terms.First != earlier.Key()) {
					t.Errorf("%s: terms %+v do not name the first", name, res.Terms)
				}
				if c.left == "its own claim" {
					if d, ok := w.dispatched(earlier.Key()); !ok || !d.Revoked {
						t.Errorf("%s: the session of the claim does not find that it was withheld: %+v, %v", name, d, ok)
					}
				}
				// It never comes after all, not by a zombie either.
				if late := w.mustAttempt(1, earlier); f.count() != c.sends {
					t.Errorf("%s: the earlier one was sent after that: %+v", name, late)
				}
			}
		}
	})
}

// A withheld claim must be withheld where its own session looks, and nowhere else.
func TestAForkLeavesNothingUnderAnothersKeyInItsOwnRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, pair := range pairs[:3] {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			earlier := w.as(pair.earlier, w.at(w.asked("pay", `{}`), 1))
			leaveBehind(t, w, earlier, "its own claim")
			in := w.as(pair.asks, w.asked("pay", `{}`))
			wantState(t, w.mustAttempt(1, in), agent.StateCommitted)
			for _, kind := range []store.Kind{store.KindDispatches, store.KindResults, store.KindIntents} {
				for _, at := range []agent.Scope{earlier.Scope, in.Scope} {
					names, err := w.Store.Space(at).List(t.Context(), kind, "")
					if err != nil {
						t.Fatal(err)
					}
					for _, name := range names {
						if kind == store.KindIntents && at != w.scope || kind != store.KindIntents && !strings.HasPrefix(name, at.String()+":") {
							t.Errorf("%s: %s holds %s %q", pair.name, at, kind, name)
						}
					}
				}
			}
		}
	})
}

func TestARepeatInTheFamilyIsDecidedByPolicy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for repeat, want := range map[policy.Repeat]agent.State{
			policy.RepeatAllow: agent.StateCommitted, policy.RepeatDeny: agent.StateDenied, policy.RepeatAsk: agent.StateVoid,
		} {
			for _, pair := range pairs {
				f := newFake(t, spec(agent.ClassOnce), nil)
				w := newWorld(t, "mem://", f)
				w.snap.Policy = repeating(t, repeat)
				first := w.as(pair.earlier, w.at(w.asked("pay", `{"n":1}`), 1))
				wantState(t, w.mustAttempt(1, first), agent.StateCommitted)
				in := w.as(pair.asks, w.asked("pay", `{"n":1.0}`))
				res := w.mustAttempt(1, in)
				wantState(t, res, want)
				if want == agent.StateDenied && !strings.Contains(res.Text, first.Key()) {
					t.Errorf("%s: told %q", pair.name, res.Text)
				}
				if want != agent.StateVoid {
					continue
				}
				if res.Terms.First != first.Key() {
					t.Errorf("%s: terms name %q", pair.name, res.Terms.First)
				}
				aware := granted(in, "")
				aware.Grant.Terms = *res.Terms
				wantState(t, w.mustAttempt(1, aware), agent.StateCommitted)
				if f.count() != 2 {
					t.Errorf("%s: sent %d times", pair.name, f.count())
				}
			}
		}
	})
}

// A model's call that people are asked about is told of what the family did, before any approval.
func TestPeopleAreToldOfTheFirstOfTheFamily(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		first := w.as(1, w.at(w.asked("pay", `{}`), 1))
		wantState(t, w.mustAttempt(1, first), agent.StateCommitted)
		w.snap.Policy = saying(t, agent.DecisionAsk)
		in := w.as(2, w.asked("pay", `{}`))
		res := w.mustAttempt(1, in)
		wantState(t, res, agent.StateVoid)
		if res.Terms.First != first.Key() {
			t.Errorf("a void approval leads to %+v", res.Terms)
		}
		d := &desk{snap: w.snap, def: w.snap.Agents["clerk"], scope: in.Scope, place: in.Place}
		calls := []agent.Call{d.decide(agent.Call{Tool: "pay", Args: in.Args}, in.Call)}
		d.inform(t.Context(), w.claims(in.Scope, in.Root), calls)
		if calls[0].Terms == nil || calls[0].Terms.First != first.Key() {
			t.Errorf("a new call has %+v", calls[0].Terms)
		}
	})
}

func TestAContradictedFailureInTheFamilyMayHaveHappened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, pair := range pairs {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			w.snap.Policy = repeating(t, policy.RepeatDeny)
			earlier := w.as(pair.earlier, w.at(w.asked("pay", `{}`), 1))
			leaveBehind(t, w, earlier, "a failure")
			saw := agent.ToolResult{State: agent.StateCommitted, Attempt: 2}
			if _, _, err := w.Store.Space(earlier.Scope).CreateResult(t.Context(), store.Result{Key: lateKey(earlier.Key()), Tool: &saw}); err != nil {
				t.Fatal(err)
			}
			in := w.as(pair.asks, w.asked("pay", `{}`))
			wanted, _ := intent(f.spec, in.Args)
			if first := firstCommitted(t.Context(), w.claims(in.Scope, in.Root), wanted, in.Key()); first != earlier.Key() {
				t.Errorf("%s: who is asked is told of %q", pair.name, first)
			}
			wantState(t, w.mustAttempt(1, in), agent.StateDenied)
		}
	})
}

// A fork's first turn has the number of a turn of its ancestor. What that did is nobody's discarded run.
func TestAResetForkDoesNotTakeItsAncestorsTurnForItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, pair := range pairs {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			earlier := w.as(pair.earlier, w.at(w.asked("pay", `{}`), 1))
			leaveBehind(t, w, earlier, "a commit")
			in := w.as(pair.asks, w.asked("pay", `{}`))
			in.Reset = true
			want := agent.StateVoid
			if pair.earlier == pair.asks {
				want = agent.StateCommitted // its own, adopted
			}
			wantState(t, w.mustAttempt(1, in), want)
			if f.count() != 0 {
				t.Errorf("%s: sent", pair.name)
			}
		}
	})
}

func TestAClaimThatNamesNoActionSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, junk := range []string{"x", "../../x", "s1~00000000:turn-1/1.model/0000000000000000", "s1~zzzzzzzz:turn-1/1.1/0000000000000000"} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			in := w.as(1, w.asked("pay", `{}`))
			wanted, _ := intent(f.spec, in.Args)
			if _, err := w.space().CreateIntent(t.Context(), wanted, 1, junk); err != nil {
				t.Fatal(err)
			}
			wantState(t, w.mustAttempt(1, in), agent.StateDenied)
			if first := firstCommitted(t.Context(), w.space(), wanted, in.Key()); first != "" || f.count() != 0 {
				t.Errorf("%q: first %q, sent %d times", junk, first, f.count())
			}
		}
	})
}

func TestOfAFamilyThatAsksForTheSameAtOnceOneSends(t *testing.T) {
	t.Parallel()
	for _, repeat := range []policy.Repeat{policy.RepeatDeny, policy.RepeatAsk} {
		for _, url := range []string{"mem://", "file://" + t.TempDir()} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, url, f)
			w.snap.Policy = repeating(t, repeat)
			var all sync.WaitGroup
			for n := range 9 {
				in := w.as(n%3, w.at(w.asked("pay", `{}`), n/3+1))
				all.Go(func() {
					if _, _, err := w.attempt(t.Context(), 1, Progress{}, in); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if f.count() != 1 {
				t.Errorf("%s, %s: sent %d times", url, repeat, f.count())
			}
		}
	}
}

// What undoes an effect repeats nothing, whoever of the family undid the same.
func TestACompensationClaimsNothingInItsFamily(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		for member := range 2 {
			in := w.as(member, w.asked("pay", `{}`))
			in.Undoes, in.Undo = in.Key(), 1
			wantState(t, w.mustAttempt(1, in), agent.StateCommitted)
		}
		if names, err := w.space().List(t.Context(), store.KindIntents, ""); err != nil || len(names) > 0 || f.count() != 2 {
			t.Errorf("claims %q, %v, sent %d times", names, err, f.count())
		}
	})
}

// Without a seal that the worker trusts, what an ancestor's records say is not adopted, and nothing is sent.
func TestAFamilysRecordsOfAnotherSealSendNothing(t *testing.T) {
	t.Parallel()
	url := "file://" + t.TempDir()
	open := func(seal string) *world {
		s, err := store.Open(t.Context(), store.Config{URL: url, Seal: []byte(seal)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return worldOver(t, s, tool.Tool(newFake(t, spec(agent.ClassOnce), nil)))
	}
	forger, w := open("another seal"), open("the seal")
	earlier := forger.as(0, forger.at(forger.asked("pay", `{}`), 1))
	leaveBehind(t, forger, earlier, "a failure") // which would let the next one send
	in := w.as(1, w.asked("pay", `{}`))
	in.Store = w.Store.ID()
	wantState(t, w.mustAttempt(1, in), agent.StateDenied)
}
