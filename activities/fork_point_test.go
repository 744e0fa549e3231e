package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// TestAForkOfAForkBelongsToTheFirstOfThem goes down four generations, some of whose records an older build has written.
func TestAForkOfAForkBelongsToTheFirstOfThem(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	from, head := w.scope, heads[2]
	turn := 2
	for generation := 1; generation <= 4; generation++ {
		in := w.fork(fmt.Sprintf("fork-%d", generation), from, turn)
		o := w.mustFork(t, in)
		if o.From != from || o.Turn != turn || o.Head != head || o.Root != w.scope {
			t.Fatalf("generation %d: %+v", generation, o)
		}
		w.sameTalk(from, in.Scope, head)
		said := &o
		if generation%2 == 0 {
			said = nil // as an older build leaves it
		}
		// Its own turns count from 1 again.
		own := w.ended(in.Scope, said, head, 3)
		from, turn, head = in.Scope, 3, own[3]
	}
}

// What is before a fork is its ancestor's, by that one's numbers.
func TestATurnOfAForkIsItsOwn(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	in := w.fork("fork", w.scope, 3)
	o := w.mustFork(t, in)
	own := w.ended(in.Scope, &o, heads[3], 1)
	if got := w.mustFork(t, w.fork("second", in.Scope, 1)); got.Head != own[1] {
		t.Errorf("turn 1 of a fork is %+v, want its own", got)
	}
	_, err := w.forked(t, w.fork("third", in.Scope, 3)) // which is a turn of its ancestor's
	app := wantApp(t, err, agent.ErrFork, true)
	if !strings.Contains(app.Error(), `whose turns count from 1 again; what was before is turn 3 of session "s1"`) {
		t.Error(app)
	}
}

func TestAForkNeedsItsTurnsClosingRecordWhole(t *testing.T) {
	t.Parallel()
	good := Closing{Version: 1, Turn: 5, Result: agent.TurnResult{Status: agent.StatusDone}}
	whole := agent.Origin{From: agent.NewScope("a", ""), Root: agent.NewScope("b", ""), Turn: 1}
	for name, c := range map[string]struct {
		do    func(c *Closing)
		kind  string
		final bool
	}{
		"nothing":              {func(*Closing) {}, "", false},
		"an origin":            {func(c *Closing) { c.Origin = &whole }, "", false},
		"another turn":         {func(c *Closing) { c.Turn = 4 }, agent.ErrStore, true},
		"another session":      {func(c *Closing) { c.Session = "s2" }, agent.ErrStore, true},
		"an undo":              {func(c *Closing) { c.Undo = 1 }, agent.ErrStore, true},
		"no version":           {func(c *Closing) { c.Version = 0 }, agent.ErrStore, true},
		"not ended":            {func(c *Closing) { c.Result.Status = agent.StatusWaiting }, agent.ErrStore, true},
		"no head":              {func(c *Closing) { c.Result.Head.Seq = 3 }, agent.ErrStore, true},
		"a head before 0":      {func(c *Closing) { c.Result.Head = agent.Head{Seq: -1, Hash: agent.DigestOf(nil)} }, agent.ErrStore, true},
		"a head of nothing":    {func(c *Closing) { c.Result.Head = agent.Head{Seq: 3, Hash: agent.DigestOf(nil)} }, agent.ErrStore, true},
		"no root":              {func(c *Closing) { o := whole; o.Root.Life = ""; c.Origin = &o }, agent.ErrStore, true},
		"another store":        {func(c *Closing) { c.Result.Store = "ffffffffffff" }, agent.ErrWrongStore, false},
		"a newer build's":      {func(c *Closing) { c.Version = closingVersion + 1 }, agent.ErrStore, false},
		"of a turn that erred": {func(c *Closing) { c.Result.Status = agent.StatusFailed }, "", false},
	} {
		w, _, _ := forks(t, "mem://")
		c5 := good
		c5.Scope = w.scope
		c.do(&c5)
		b, err := json.Marshal(c5)
		if err == nil {
			_, err = w.space().CreateClosing(t.Context(), store.ClosingName(5, 0), b)
		}
		if err != nil {
			t.Fatal(err)
		}
		in := w.fork("fork", w.scope, 5)
		_, err = w.forked(t, in)
		if c.kind == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantApp(t, err, c.kind, c.final)
		w.untouched(name, in.Scope)
	}
}

// A late compensation has a record beside that of its turn, and is no place to fork at.
func TestACompensationIsNoPlaceToForkAt(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	w.closes(agent.CloseInput{Scope: w.scope, Turn: 2, Undo: 1, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone, Head: heads[3]}})
	if o := w.mustFork(t, w.fork("fork", w.scope, 2)); o.Head != heads[2] {
		t.Errorf("%+v", o)
	}
	w.closes(agent.CloseInput{Scope: w.scope, Turn: 7, Undo: 1, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone, Head: heads[3]}})
	_, err := w.forked(t, w.fork("other", w.scope, 7))
	wantApp(t, err, agent.ErrFork, true)
}

func TestAForkOfADamagedSourceIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind store.Kind
		of   func(w *world, heads []agent.Head) string
		ok   bool // it is as if nothing were wrong
	}{
		{"closing record", store.KindClosings, func(*world, []agent.Head) string { return store.ClosingName(2, 0) }, false},
		{"another turn's closing record", store.KindClosings, func(*world, []agent.Head) string { return store.ClosingName(1, 0) }, true},
		{"segment that is repeated", store.KindSegments, func(_ *world, heads []agent.Head) string {
			return fmt.Sprintf("%08d-%s", heads[1].Seq, heads[1].Hash)
		}, true},
		{"last segment", store.KindSegments, func(_ *world, heads []agent.Head) string {
			return fmt.Sprintf("%08d-%s", heads[2].Seq, heads[2].Hash)
		}, false},
		{"text", store.KindBodies, func(w *world, _ []agent.Head) string {
			return string(agent.DigestOf([]byte(strings.Repeat(fmt.Sprintf("turn 2 of %s. ", w.scope), 500))))
		}, false},
		{"later text", store.KindBodies, func(w *world, _ []agent.Head) string {
			return string(agent.DigestOf([]byte(strings.Repeat(fmt.Sprintf("turn 3 of %s. ", w.scope), 500))))
		}, true},
	} {
		dir := t.TempDir()
		w, _, heads := forks(t, "file://"+dir)
		ruin(t, dir, w.scope, c.kind, c.of(w, heads))
		in := w.fork("fork", w.scope, 2)
		res, err := w.forked(t, in)
		if c.ok {
			if err != nil || res.Origin.Head != heads[2] {
				t.Errorf("%s: %+v, %v", c.name, res, err)
			}
			continue
		}
		app := wantApp(t, err, agent.ErrStore, true)
		if !strings.Contains(app.Error(), "fork it at") {
			t.Errorf("%s: %v does not say what to do", c.name, app)
		}
		if names, err := w.Store.Space(in.Scope).List(t.Context(), store.KindClosings, ""); err != nil || len(names) > 0 {
			t.Errorf("%s: a fork that was refused has the record %q, %v", c.name, names, err)
		}
	}
}

// Where the record of whether the source is a fork cannot be read, nobody knows what must not be repeated.
func TestAForkOfWhatMayBeAForkIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, _, heads := forks(t, "file://"+dir)
	in := w.fork("fork", w.scope, 2)
	o := w.mustFork(t, in)
	w.ended(in.Scope, nil, heads[2], 1) // as an older build leaves it
	ruin(t, dir, in.Scope, store.KindClosings, store.ForkName)
	_, err := w.forked(t, w.fork("second", in.Scope, 1))
	if app := wantApp(t, err, agent.ErrStore, true); !strings.Contains(app.Error(), "must not be repeated") {
		t.Error(app)
	}
	// The session itself does not begin elsewhere when it is reset.
	_, err = w.forked(t, in)
	wantApp(t, err, agent.ErrStore, true)
	// A turn that says it does not need the record.
	w.closes(agent.CloseInput{Scope: in.Scope, Turn: 2, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone, Head: heads[2]}, Origin: &o})
	if got := w.mustFork(t, w.fork("third", in.Scope, 2)); got.Root != w.scope {
		t.Errorf("%+v", got)
	}
}

func TestAForkDoesNotBuildOnRecordsOfAnotherSeal(t *testing.T) {
	t.Parallel()
	url := "file://" + t.TempDir()
	open := func(seal string) *world {
		s, err := store.Open(t.Context(), store.Config{URL: url, Seal: []byte(seal)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		w := worldOver(t, s, newFake(t, spec(agent.ClassOnce), nil))
		w.Client = &forkServer{began: noon}
		return w
	}
	forger, w := open("another"), open("ours")
	forger.ended(forger.scope, nil, agent.Head{}, 2)
	in := w.fork("fork", w.scope, 2)
	_, err := w.forked(t, in)
	wantApp(t, err, agent.ErrStore, true)
	w.untouched("a forged closing record", in.Scope)
	forger.mustFork(t, in)
	_, err = w.forked(t, in)
	if app := wantApp(t, err, agent.ErrStore, true); !strings.Contains(app.Error(), "where this session began") {
		t.Error(app)
	}
}

// A turn that was ended from outside is closed by the recovery, which says where the session began.
func TestTheRecordOfARecoveredTurnSaysWhereItsSessionBegan(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	in := w.fork("fork", w.scope, 3)
	want := w.mustFork(t, in)
	w.Client = goneTurns{}
	res, err := w.recoverTurn(t.Context(), w.snap, agent.RecoverInput{Scope: in.Scope, Turn: 1, Head: heads[3]}, "it was terminated")
	if err != nil || res.Closing == "" {
		t.Fatal(res, err)
	}
	b, err := w.Store.Space(in.Scope).Closing(t.Context(), store.ClosingName(1, 0))
	var c Closing
	if err != nil || json.Unmarshal(b, &c) != nil || c.Origin == nil {
		t.Fatalf("%s, %v", b, err)
	}
	if diff := cmp.Diff(want, *c.Origin); diff != "" {
		t.Error(diff)
	}
}

// goneTurns is a server that knows no turn any more.
type goneTurns struct{ client.Client }

func (goneTurns) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

func FuzzARecordIsAPlaceToBeginAtOrRefused(f *testing.F) {
	scope := agent.NewScope("s1", "run-1")
	for _, v := range []any{
		Closing{Version: 1, Scope: scope, Turn: 2, Result: agent.TurnResult{Status: agent.StatusDone}},
		Forked{Version: 1, Scope: scope, Origin: agent.Origin{From: scope, Root: scope, Turn: 1}},
		Closing{Version: 9},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"v":1,"origin":null,"result":{"head":{"seq":-1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseClosing(b, scope, 2)
		if err == nil && (c.Scope != scope || c.Turn != 2 || !headed(c.Result.Head) || c.Origin != nil && !c.Origin.Root.Valid()) {
			t.Errorf("%s is taken as %+v", b, c)
		}
		r, err := parseForked(b, scope)
		if err == nil && (!r.Origin.Root.Valid() || !r.Origin.From.Valid() || !headed(r.Origin.Head)) {
			t.Errorf("%s is taken as %+v", b, r)
		}
	})
}

// The source has seen a newer configuration than a worker that was left behind has: whom that one would still let
// fork, or approve in the fork, may have been revoked since.
func TestAForkIsJudgedByNoOlderConfigurationThanItsSourceWas(t *testing.T) {
	t.Parallel()
	w, _, heads := forks(t, "mem://")
	w.closes(agent.CloseInput{
		Scope: w.scope, Turn: 4, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone, Head: heads[3], Serial: 7},
	})
	in := w.fork("fork", w.scope, 4)
	in.Fork.Approver = "" // refused for good, were it judged
	_, err := w.forked(t, in)
	wantApp(t, err, agent.ErrStaleConfig, false)
	w.untouched("stale", in.Scope)

	in.Fork.Approver, w.snap.Serial = "alice", 8
	if res, err := w.forked(t, in); err != nil || res.Serial != 8 {
		t.Fatalf("%+v, %v", res, err)
	}
	w.snap.Serial = 7 // an attempt after a death comes to an older worker
	_, err = w.forked(t, in)
	wantApp(t, err, agent.ErrStaleConfig, false)
}
