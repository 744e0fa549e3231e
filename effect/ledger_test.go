package effect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

func add(t *testing.T, l *effect.Ledger, key string, s agent.State) {
	t.Helper()
	if err := l.Add(agent.Effect{Key: key, State: s, Intent: "intent of " + key}); err != nil {
		t.Fatal(err)
	}
}

func keys(effects []agent.Effect) string {
	var out []string
	for _, e := range effects {
		out = append(out, e.Key)
	}
	return strings.Join(out, " ")
}

func TestLedgerKeepsTheOrderAndRefusesAKeyTwice(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	add(t, &l, "b", agent.StateRequested)
	add(t, &l, "a", agent.StateDenied)
	if err := l.Add(agent.Effect{Key: "b", State: agent.StateRequested}); err == nil {
		t.Error("the same key was taken twice")
	}
	for _, e := range []agent.Effect{{State: agent.StateRequested}, {Key: "x"}, {Key: "x", State: "odd"}} {
		if l.Add(e) == nil {
			t.Errorf("%+v was taken", e)
		}
	}
	if got := keys(l.All()); got != "b a" {
		t.Errorf("order is %q", got)
	}
	if l.Move("nobody", agent.StateDenied, agent.Stamp{}, nil) == nil || l.Settle("nobody", agent.ToolResult{}, time.Time{}, "") == nil {
		t.Error("an absent key was moved")
	}
}

func TestMoveKeepsKeyAndStateOutOfTheCallersHands(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	add(t, &l, "k", agent.StateRequested)
	err := l.Move("k", agent.StateAuthorized, agent.Stamp{}, func(e *agent.Effect) {
		*e = agent.Effect{Key: "other", State: agent.StateCommitted, Note: strings.Repeat("é", effect.MaxNote)}
	})
	if err != nil {
		t.Fatal(err)
	}
	e, ok := l.Get("k")
	if !ok || e.State != agent.StateAuthorized {
		t.Errorf("got %+v", e)
	}
	if len(e.Note) > effect.MaxNote || !utf8.ValidString(e.Note) || !strings.HasSuffix(e.Note, "é…") {
		t.Errorf("note of %d bytes: %q", len(e.Note), e.Note)
	}
}

func TestAllIsACopy(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	add(t, &l, "k", agent.StateRequested)
	l.All()[0].State = agent.StateCommitted
	if e, _ := l.Get("k"); e.State != agent.StateRequested {
		t.Error("a caller changed the ledger")
	}
}

func TestOnlyAnUncertainEffectBlocksItsIntent(t *testing.T) {
	t.Parallel()
	for _, s := range states {
		var l effect.Ledger
		add(t, &l, "k", s)
		e, blocked := l.Blocks("intent of k")
		if blocked != (s == agent.StateUncertain) || blocked && e.Key != "k" {
			t.Errorf("%s: blocked = %v by %q", s, blocked, e.Key)
		}
		if _, blocked := l.Blocks("another"); blocked {
			t.Errorf("%s: blocks another intent", s)
		}
		unresolved := s == agent.StateUncertain || s == agent.StateCompensationFailed || s == agent.StateIrreversible
		if got := len(l.Unresolved()) == 1; got != unresolved {
			t.Errorf("%s: unresolved = %v", s, got)
		}
	}
	var l effect.Ledger
	if err := l.Add(agent.Effect{Key: "k", State: agent.StateUncertain}); err != nil {
		t.Fatal(err)
	}
	if _, blocked := l.Blocks(""); blocked {
		t.Error("an effect without an intent blocks")
	}
}

func TestLedgerFoldsTheEarliestSettledEffectsOnly(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	add(t, &l, "open", agent.StateUncertain)
	add(t, &l, "conflict", agent.StateCommitted)
	if err := l.Settle("conflict", agent.ToolResult{State: agent.StateFailed}, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	for i := range effect.MaxSettled + 10 {
		add(t, &l, fmt.Sprintf("k%d", i), agent.StateCommitted)
	}
	if got, want := len(l.All()), effect.MaxSettled+2; got != want {
		t.Errorf("%d effects are kept, want %d", got, want)
	}
	if diff := cmp.Diff([]agent.Count{{State: agent.StateCommitted, N: 10}}, l.Folded()); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]bool{"open": true, "conflict": true, "k9": false, "k10": true} {
		if _, ok := l.Get(key); ok != want {
			t.Errorf("%s kept = %v, want %v", key, ok, want)
		}
	}
}

func TestLedgerRefusesMoreOpenEffectsThanItCanCarry(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	for i := range effect.MaxOpen {
		add(t, &l, fmt.Sprint(i), agent.StateUncertain)
	}
	if l.Add(agent.Effect{Key: "more", State: agent.StateRequested}) == nil {
		t.Error("one more open effect was taken")
	}
	if err := l.Add(agent.Effect{Key: "denied", State: agent.StateDenied}); err != nil {
		t.Errorf("a settled one was refused: %v", err)
	}
}

func TestLedgerSurvivesItsJSONForm(t *testing.T) {
	t.Parallel()
	var l effect.Ledger
	if b, err := json.Marshal(l); err != nil || string(b) != "{}" {
		t.Errorf("the empty ledger is %s, %v", b, err)
	}
	for i := range effect.MaxSettled + 5 {
		add(t, &l, fmt.Sprintf("k%d", i), agent.StateFailed)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := l.Add(agent.Effect{
		Key: "full", Tool: "pay", Place: agent.Place{Turn: 1, Step: 2, Call: 3}, Class: agent.ClassOnce,
		State: agent.StateUncertain, Action: "a", Intent: "i", Attempt: 2, At: at, Note: "n", Conflict: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(struct{ L effect.Ledger }{l})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ L effect.Ledger }
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.All(), back.L.All()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(l.Folded(), back.L.Folded()); diff != "" {
		t.Error(diff)
	}
}

func TestUnmarshalRefusesWhatItDoesNotUnderstandAndChangesNothing(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`[]`,
		`{"effects":[{"key":"k","state":"odd"}]}`,
		`{"effects":[{"key":"","state":"failed"}]}`,
		`{"effects":[{"key":"k","state":"failed"},{"key":"k","state":"failed"}]}`,
		`{"folded":[{"state":"uncertain","n":1}]}`,
		`{"folded":[{"state":"failed","n":-1}]}`,
	} {
		var l effect.Ledger
		add(t, &l, "here", agent.StateRequested)
		if json.Unmarshal([]byte(bad), &l) == nil {
			t.Errorf("%s was taken", bad)
		}
		if keys(l.All()) != "here" {
			t.Errorf("%s changed the ledger", bad)
		}
	}
}
