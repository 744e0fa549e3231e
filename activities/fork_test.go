package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
)

func TestAForkBeginsWhereTheTurnEnded(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		w, _, heads := forks(t, url)
		for turn := 1; turn <= 3; turn++ {
			in := w.fork(fmt.Sprintf("fork-%d", turn), w.scope, turn)
			got := w.mustFork(t, in)
			want := agent.Origin{From: w.scope, Turn: turn, Head: heads[turn], Root: w.scope, By: "alice (claimed)", At: noon}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			w.sameTalk(w.scope, in.Scope, heads[turn])
			// What came after that turn is not in it.
			if names, err := w.Store.Space(in.Scope).List(t.Context(), store.KindSegments, ""); err != nil || len(names) != 2*turn {
				t.Errorf("%d segments of a fork at turn %d, %v", len(names), turn, err)
			}
		}
	}
}

// The first thing that a session did is done: neither policy, nor the agents, nor what became of the source matters any
// more. A session that was reset asks again.
func TestAForkThatWasDoneIsAdopted(t *testing.T) {
	t.Parallel()
	w, s, _ := forks(t, "mem://")
	in := w.fork("fork", w.scope, 2)
	want := w.mustFork(t, in)
	writes := w.Store.Stats().Writes
	w.governed(policy.Config{Posture: policy.PosturePlan, AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}}, Rights: policy.Rights{Fork: []string{"boss"}}})
	w.snap.Agents, s.broken = nil, errors.New("unavailable")
	if diff := cmp.Diff(want, w.mustFork(t, in)); diff != "" {
		t.Error(diff)
	}
	if n := w.Store.Stats().Writes - writes; n != 0 {
		t.Errorf("%d objects were written again", n)
	}
	// Another session does not profit from it.
	if _, err := w.forked(t, w.fork("another", w.scope, 2)); err == nil {
		t.Error("a fork by somebody who may not")
	}
}

func TestAForkThatCannotBeSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		do    func(w *world, s *forkServer, in *agent.ForkInput)
		kind  string
		final bool
		says  string
	}{
		{"turn 0", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Fork.Turn = 0 }, agent.ErrFork, true, "start a new session"},
		{"a turn before 0", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Fork.Turn = -3 }, agent.ErrFork, true, "count from 1"},
		{"no agent", func(_ *world, s *forkServer, in *agent.ForkInput) {
			in.Agent, s.broken = "nobody", errors.New("is not asked")
		}, agent.ErrUnknownAgent, true, "the agents are clerk"},
		{"itself", func(w *world, _ *forkServer, in *agent.ForkInput) { in.Scope = w.scope }, agent.ErrFork, true, "another name"},
		{"no session", func(_ *world, _ *forkServer, in *agent.ForkInput) {
			in.Fork.From = agent.Scope{Session: "../x", Life: "0"}
		}, agent.ErrFork, true, "8 hex digits"},
		{"a scope that is none", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Life = "x" }, agent.ErrInternal, true, "is not one"},
		{"another life", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Fork.From.Life = "ffffffff" }, agent.ErrFork, true, "no turn 2 of session"},
		{"no such turn", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Fork.Turn = 9 }, agent.ErrFork, true, "no turn 9 of session"},
		{"not ended", func(_ *world, s *forkServer, in *agent.ForkInput) {
			in.Fork.Turn = 4
			s.status["s1:turn-4"] = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		}, agent.ErrFork, true, "wait for its end, or cancel it"},
		{"ended without a record", func(_ *world, s *forkServer, in *agent.ForkInput) {
			in.Fork.Turn = 4
			s.status["s1:turn-4"] = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
		}, agent.ErrFork, true, "no closing record"},
		{"ended in another store", func(_ *world, s *forkServer, in *agent.ForkInput) {
			in.Fork.Turn, s.res.Store = 4, "ffffffffffff"
			s.status["s1:turn-4"] = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		}, agent.ErrWrongStore, false, "give the worker the session's store"},
		{"wrong store", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Store = "ffffffffffff" }, agent.ErrWrongStore, false, ""},
		{"stale", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Serial = 99 }, agent.ErrStaleConfig, false, ""},
		{"not entitled", func(w *world, _ *forkServer, _ *agent.ForkInput) {
			w.governed(policy.Config{AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}}, Rights: policy.Rights{Fork: []string{"boss"}}})
		}, agent.ErrNotEntitled, true, "may fork a session: boss"},
		{"nobody", func(_ *world, _ *forkServer, in *agent.ForkInput) { in.Fork.Approver = "" }, agent.ErrNotEntitled, true, "who decides"},
		{"no policy", func(w *world, _ *forkServer, _ *agent.ForkInput) { w.snap.Policy = nil }, agent.ErrNotEntitled, true, "no policy"},
		{"a secret in the reason", func(_ *world, _ *forkServer, in *agent.ForkInput) {
			in.Fork.Approver = strings.Repeat("x", 200) + hush
		}, agent.ErrNotEntitled, true, ""},
		{"the server is away", func(_ *world, s *forkServer, _ *agent.ForkInput) { s.broken = errors.New("unavailable") }, agent.ErrInternal, false, "unavailable"},
		{"the store is away", func(w *world, _ *forkServer, _ *agent.ForkInput) { _ = w.Store.Close() }, agent.ErrStore, false, ""},
	} {
		w, s, _ := forks(t, "mem://")
		in := w.fork("fork", w.scope, 2)
		c.do(w, s, &in)
		_, err := w.forked(t, in)
		app := wantApp(t, err, c.kind, c.final)
		if !strings.Contains(app.Error(), c.says) || strings.Contains(app.Error(), hush) {
			t.Errorf("%s: %v", c.name, app)
		}
		if c.name != "itself" && c.name != "the store is away" && in.Scope.Valid() {
			w.untouched(c.name, in.Scope)
		}
	}
}

// A person signs before the session is started; that no worker was there for two hours makes the fork no older.
func TestAForkIsJudgedByWhenItsSessionWasStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		began time.Time
		says  string
	}{{noon.Add(time.Minute), ""}, {noon.Add(2 * time.Hour), "sign it again"}, {noon.Add(-time.Hour), "after the server's"}} {
		w, s, _ := forks(t, "mem://")
		k := newSigner(t)
		w.governed(policy.Config{Approvers: map[string]policy.Approver{"alice": {Keys: []policy.Key{{Key: k.PublicKey()}}}}, Rights: policy.Rights{Fork: []string{"alice"}}})
		s.began = c.began
		in := w.fork("fork", w.scope, 1)
		in.Fork = signedFork(t, k, in)
		res, err := w.forked(t, in)
		if c.says == "" && (err != nil || res.Origin.By != "alice" || !res.Origin.At.Equal(c.began)) {
			t.Errorf("%+v, %v", res, err)
		}
		if c.says != "" {
			if app := wantApp(t, err, agent.ErrNotEntitled, true); !strings.Contains(app.Error(), c.says) {
				t.Error(app)
			}
		}
		in.Agent = "other"
		w.snap.Agents["other"] = w.snap.Agents["clerk"]
		in.Scope.Session = "stolen"
		_, err = w.forked(t, in)
		wantApp(t, err, agent.ErrNotEntitled, true)
	}
}

func TestAttemptsToForkAtOnceAgree(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		w, _, heads := forks(t, url)
		in := w.fork("fork", w.scope, 3)
		got := make([]agent.Origin, 6)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = w.mustFork(t, in) })
		}
		all.Wait()
		for _, o := range got {
			if diff := cmp.Diff(got[0], o); diff != "" || o.Head != heads[3] {
				t.Error(diff)
			}
		}
		w.sameTalk(w.scope, in.Scope, heads[3])
	}
}

// Two attempts may see another policy, by which the same name is proved or only claimed.
func TestWhatAnotherAttemptToForkHasRecordedCounts(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	in := w.fork("fork", w.scope, 3)
	own := agent.Origin{From: w.scope, Turn: 3, Head: heads[3], Root: w.scope, By: "alice", At: noon}
	other := own
	other.By = "alice (claimed)"
	f := &forking{Activities: w.Activities, pulse: &pulse{ctx: t.Context()}, snap: w.snap, in: in}
	for _, o := range []agent.Origin{own, other} {
		got, err := f.record(o)
		if diff := cmp.Diff(own, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// TestAForkMayBeEndedAnywhere lets each request to the store in turn not arrive, or not be answered, and then lets the
// fork be done again.
func TestAForkMayBeEndedAnywhere(t *testing.T) {
	t.Parallel()
	for _, x := range []fault{{lost: true}, {unsaid: true}} {
		reached := 0
		for strike := 1; ; strike++ {
			var mu sync.Mutex
			n, armed := 0, false
			s := newUnsteady(t, func(context.Context, string, string) fault {
				mu.Lock()
				defer mu.Unlock()
				if !armed {
					return fault{}
				}
				if n++; n == strike {
					return x
				}
				return fault{}
			})
			w := worldOver(t, s, newFake(t, spec(agent.ClassOnce), nil))
			w.Client = &forkServer{began: noon}
			heads := w.ended(w.scope, nil, agent.Head{}, 3)
			old := w.asked("pay", `{}`)
			w.older(old, agent.StateCommitted)
			in := w.fork("fork", w.scope, 3)
			armed = true
			if _, err := w.forked(t, in); err != nil {
				wantApp(t, err, agent.ErrStore, false)
				reached++
			}
			if n < strike {
				break
			}
			o := w.mustFork(t, in)
			if o.Head != heads[3] || o.Root != w.scope {
				t.Errorf("struck at request %d: %+v", strike, o)
			}
			w.sameTalk(w.scope, in.Scope, heads[3])
			wanted, _ := intent(spec(agent.ClassOnce), old.Args)
			if first := firstCommitted(t.Context(), w.space(), wanted, ""); first != old.Key() {
				t.Errorf("struck at request %d: what was done before is claimed by %q", strike, first)
			}
		}
		if reached < 10 {
			t.Errorf("%+v: only %d requests mattered", x, reached)
		}
	}
}

func TestAForkSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	p := &pulse{ctx: t.Context(), beat: func(Progress) {}}
	f := &forking{Activities: w.Activities, pulse: p, snap: w.snap, in: w.fork("fork", w.scope, 3)}
	if err := f.copy(heads[3]); err != nil {
		t.Fatal(err)
	}
	if got := p.progress().Phase; got != "copying the transcript: 9 of 9 objects" {
		t.Errorf("at last it says %q", got)
	}
}
