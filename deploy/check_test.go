package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	sdkworker "go.temporal.io/sdk/worker"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/worker"
	"github.com/holdfast-run/holdfast/workflows"
)

func recordedRuns(t *testing.T, each func(Item)) {
	t.Helper()
	g := Gate{Register: func(r sdkworker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) }}
	r, err := g.Files(t.Context(), []string{"../tests/histories/0.1.0", "../tests/histories/0.2.0"}, each)
	if err != nil || r.Total == 0 {
		t.Fatalf("%d histories, %v", r.Total, err)
	}
}

func TestRunsOfOlderReleasesSayWhatTheyWereMadeWith(t *testing.T) {
	t.Parallel()
	types := map[string]int{}
	recordedRuns(t, func(i Item) {
		if i.Err != nil {
			return
		}
		m, err := madeOf(i)
		if err != nil {
			t.Errorf("%s: %v", i.Source, err)
			return
		}
		if !m.scope.Valid() || m.agent == "" || m.change < 1 {
			t.Errorf("%s: %+v", i.Source, m)
		}
		if m.by.Definition != "" {
			types[i.Type]++
		}
	})
	if types[agent.WorkflowTurn] == 0 {
		t.Error("no turn says its definition")
	}
	if types[agent.WorkflowSession] != 0 {
		t.Error("a session of before number 3 says its definition")
	}
}

// A bench checks runs that it makes up, against a store.
type bench struct {
	store *store.Store
	k     *checking
	found map[string]Crossing
}

func newBench(t *testing.T, inv *worker.Inventory) *bench {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: "file://" + filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := &bench{store: s, found: map[string]Crossing{}}
	b.k = &checking{
		with: &yardstick{now: inv, store: s.ID()}, shelf: newShelf(s), groups: newGroups(), seen: map[string]bool{},
		each: func(c Crossing) { b.found[c.Workflow] = c },
	}
	return b
}

// keep puts a definition into a session's space.
func (b *bench) keep(t *testing.T, m made, def agent.Definition) agent.Digest {
	t.Helper()
	raw, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	body, err := b.store.Space(m.scope).PutBody(t.Context(), raw, "application/json")
	if err != nil {
		t.Fatal(err)
	}
	return body.Digest
}

func (b *bench) session(id string, change ...func(*made)) made {
	m := session(change...)
	m.workflow, m.store, m.scope = id, b.store.ID(), agent.Scope{Session: id, Life: "0000000a"}
	return m
}

func TestOldDefinitionsAreReadInEachSessionsOwnSpace(t *testing.T) {
	t.Parallel()
	b := newBench(t, now(agent.UpgradePin, withOldPay))
	has, lacks := b.session("has"), b.session("lacks")
	has.by.Definition = b.keep(t, has, before())
	lacks.by.Definition = has.by.Definition
	other := b.session("other")
	alien := before()
	alien.Name = "somebody"
	other.by.Definition = b.keep(t, other, alien)
	want := []string{"instructions", "tool pay: another version"}
	if c := b.k.compare(t.Context(), has); len(c.Errors) != 0 || cmp.Diff(want, c.Drifts[0].Changes) != "" {
		t.Errorf("%+v", c)
	}
	for _, m := range []made{lacks, other} {
		if c := b.k.compare(t.Context(), m); len(c.Errors) != 1 || c.Errors[0].Kind != TroubleDefinition {
			t.Errorf("%s: %+v", m.workflow, c)
		}
	}
	if p := b.k.shelf.problems(); p != nil {
		t.Errorf("a store that answered had a problem: %q", p)
	}
}

func TestSessionsThatDoNotKnowTheirDefinitionHaveItInTheirLastClosingRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, now(agent.UpgradePin))
	early := func(m *made) { m.holds, m.by, m.turns = false, agent.Identity{}, 3 }
	for id, form := range map[string]string{
		"by-an-old-turn": `{"definition":"%[1]s","build":"b1","result":{"status":"done"}}`,
		"by-a-new-turn":  `{"definition":"%[1]s","build":"b2","result":{"by":{"definition":"%[1]s","policy":"old","build":"b1"}}}`,
	} {
		m := b.session(id, early)
		def := b.keep(t, m, before())
		if _, err := b.store.Space(m.scope).CreateClosing(t.Context(), store.ClosingName(3, 0), fmt.Appendf(nil, form, def)); err != nil {
			t.Fatal(err)
		}
		c := b.k.compare(t.Context(), m)
		if len(c.Errors) != 0 || len(c.Drifts) < 2 || c.Drifts[0].Then != FateTakes || c.Drifts[0].From != string(def) || len(c.Drifts[0].Changes) == 0 || c.By.Build != "b1" {
			t.Errorf("%s: %+v", id, c)
		}
	}
	lost := b.session("lost", early)
	if c := b.k.compare(t.Context(), lost); len(c.Errors) != 0 || len(c.Drifts) != 1 || c.Drifts[0].From != "" || c.Drifts[0].Then != FateTakes {
		t.Errorf("without a record: %+v", c)
	}
}

func TestAStoreThatDoesNotAnswerIsOneProblem(t *testing.T) {
	t.Parallel()
	b := newBench(t, now(agent.UpgradePin))
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if c := b.k.compare(t.Context(), b.session(id)); len(c.Errors) != 1 || c.Errors[0].Kind != TroubleDefinition {
			t.Errorf("%+v", c)
		}
	}
	if p := b.k.shelf.problems(); len(p) != 1 {
		t.Errorf("problems %q, want one", p)
	}
}

func TestOnlyRunsThatReplayAndAreOpenAreComparedAndEachOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, now(agent.UpgradeFollow, withoutAgent))
	compared := map[string]bool{}
	recordedRuns(t, func(i Item) {
		b.k.item(t.Context(), i)
		again := i
		again.Run = "the next"
		b.k.item(t.Context(), again)
		if _, before := compared[i.Workflow]; !before && i.Err == nil {
			m, _ := madeOf(i)
			compared[i.Workflow] = !m.over
		}
	})
	b.k.item(t.Context(), Item{Workflow: "broken", Type: agent.WorkflowTurn, Err: &replay.Mismatch{}})
	b.k.item(t.Context(), Item{Workflow: "gone", Type: agent.WorkflowTurn, Err: errors.New("gone")})
	b.k.item(t.Context(), Item{Workflow: "new", Type: agent.WorkflowSession, Err: replay.ErrNotRun})
	_ = b.k.work.Wait()
	want := 0
	for _, c := range compared {
		if c {
			want++
		}
	}
	if b.k.compared != want || want == 0 {
		t.Errorf("%d runs compared, want %d", b.k.compared, want)
	}
	if g := troubles(b.k.groups.errors); !slices.ContainsFunc(g, func(g TroubleGroup) bool { return g.Kind == TroubleAgent && g.Runs() > 0 }) {
		t.Errorf("no agent of theirs is in the file, and the check says %+v", g)
	}
}

func TestACheckIsOfOpenRunsWhateverTheQuerySays(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                    isOpen,
		" ":                   isOpen,
		"A = 'x' OR B = 'y'":  isOpen + " AND (A = 'x' OR B = 'y')",
		"A = 'x') OR (B = ''": "",
		"A = 'x":              "",
	} {
		got, err := open(query)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", query, got, err)
		}
	}
}
