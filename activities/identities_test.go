package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/store"
)

func TestEveryAcceptedResultIsRecordedWithAllThatProducedIt(t *testing.T) {
	t.Parallel()
	pay := newFake(t, spec(agent.ClassOnce), nil)
	w := newWorld(t, "mem://", pay)
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
	in := w.hears("pay")
	res := w.mustAsk(in)
	key, err := modelKey(in)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := w.space().Result(t.Context(), key)
	if err != nil || rec.Model == nil {
		t.Fatalf("%+v, %v", rec, err)
	}
	m := rec.Model
	d := desk{snap: w.snap, def: w.snap.Agents["clerk"]}
	if m.Prompt != agent.DigestOf([]byte("Be exact.")) || m.Tools != d.schemas() || !m.Tools.Valid() || m.Policy != w.snap.Policy.Version() {
		t.Errorf("model record %+v", m)
	}
	if by := m.Result.Producer; by.Model == "" || by.Build != "b1" || by != res.Producer {
		t.Errorf("produced by %+v, in history %+v", by, res.Producer)
	}
	acted := w.asked("pay", `{}`)
	wantState(t, w.mustAttempt(1, acted), agent.StateCommitted)
	got, err := w.space().Result(t.Context(), keyOf(acted))
	if err != nil || got.Tool == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	want := store.Result{Key: keyOf(acted), Version: pay.spec.Version, Policy: w.snap.Policy.Version()}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Result{}, "Tool")); diff != "" {
		t.Error(diff)
	}
	if got.Tool.Version != pay.spec.Version.Short() || got.Tool.Build != "b1" {
		t.Errorf("tool record %+v", got.Tool)
	}
}
