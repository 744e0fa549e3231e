package activities

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tool"
)

// moved is a worker that has another "pay" than its agent's definition of before, whose digest is old, and the same
// "look". The fake is the "pay" that it has.
func moved(t *testing.T) (w *world, pay *fake, old agent.Digest) {
	t.Helper()
	look := newFake(t, tool.Spec{Name: "look", Class: agent.ClassRead}, nil)
	before := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil), look)
	old = before.digest()
	changed := spec(agent.ClassOnce)
	changed.Description = "Pays, and says so."
	pay = newFake(t, changed, nil)
	return worldOver(t, before.Store, pay, look), pay, old
}

func TestAPinnedAgentIsOfferedToolsInTheVersionsThatItNamesOnly(t *testing.T) {
	t.Parallel()
	for u, want := range map[agent.Upgrade]struct {
		offered []string
		trouble string
	}{
		"":                  {[]string{"pay", "look"}, ""},
		agent.UpgradeFollow: {[]string{"pay", "look"}, ""},
		agent.UpgradeAsk:    {[]string{"pay", "look"}, ""},
		agent.UpgradePin:    {[]string{"look"}, `the tool "pay" is not there in the version that this agent is pinned to: nothing was run; do without it, or tell the user; the tools are look`},
	} {
		w, _, old := moved(t)
		w.upgrades(u)
		var offered []string
		w.talk(t, modeltest.Config{Func: func(r modeltest.Request) modeltest.Step {
			offered = r.Tools
			return modeltest.Want(call("c1", "pay", `{}`), call("c2", "look", `{}`), call("c3", "none", `{}`))
		}})
		in := w.hears("pay")
		in.Definition = old.Short()
		res := w.mustAsk(in)
		if diff := cmp.Diff(want.offered, offered); diff != "" {
			t.Errorf("%q: offered %s", u, diff)
		}
		if c := res.Calls[0]; c.Trouble != want.trouble || (c.Args == "") != (want.trouble != "") {
			t.Errorf("%q: call %+v", u, c)
		}
		if c := res.Calls[1]; c.Trouble != "" || c.Action == "" {
			t.Errorf("%q: call %+v", u, c)
		}
		if c := res.Calls[2]; !strings.HasPrefix(c.Trouble, `there is no tool "none"`) {
			t.Errorf("%q: call %+v", u, c)
		}
		if res.Producer.Tools == "" {
			t.Errorf("%q: the result does not say that other tools were offered than were defined", u)
		}
	}
}

// What was decided on is not run either: by then it may have been pinned, or the worker have another version.
func TestAPinnedAgentsActionRunsInTheVersionThatItNamesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		u       agent.Upgrade
		decided bool // on the version that this worker has
		seen    int64
		want    string
	}{
		{"follows", agent.UpgradeFollow, true, 3, ""},
		{"follows, and the tool has changed since", agent.UpgradeFollow, false, 3, "has changed since this was asked for"},
		{"pinned since", agent.UpgradePin, true, 3, "pinned to"},
		{"pinned, and the tool has changed since", agent.UpgradePin, false, 3, "pinned to"},
		{"pinned, and no other worker does better", agent.UpgradePin, false, 2, "pinned to"},
	} {
		w, pay, old := moved(t)
		w.upgrades(c.u)
		in := w.asked("pay", `{}`)
		in.Definition, in.Serial = old.Short(), c.seen
		if !c.decided {
			in.Action = version("of before")
		}
		prev := Progress{}
		if c.seen == w.snap.Serial && c.want != "" { // another worker may have it
			_, p, err := w.attempt(t.Context(), 1, prev, in)
			if app := wantApp(t, err, agent.ErrStaleConfig, false); !strings.Contains(app.Message(), c.want) {
				t.Errorf("%s: %v", c.name, app)
			}
			prev = Progress{Troubles: missTries + p.Troubles}
		}
		res, _, err := w.attempt(t.Context(), 1, prev, in)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if (res.State == agent.StateCommitted) != (c.want == "") || !strings.Contains(res.Text, c.want) || (pay.count() > 0) != (c.want == "") {
			t.Errorf("%s: %+v, sent %d times", c.name, res, pay.count())
		}
	}
}

func TestWhatUndoesAnEffectIsNotHeldBackByAPin(t *testing.T) {
	t.Parallel()
	w, pay, old := moved(t)
	w.upgrades(agent.UpgradePin)
	in := w.asked("pay", `{}`)
	in.Definition, in.Undoes, in.Undo = old.Short(), agent.ActionKey(w.scope, in.Place, in.Action), 1
	wantState(t, w.mustAttempt(1, in), agent.StateCommitted)
	if pay.count() != 1 {
		t.Errorf("sent %d times", pay.count())
	}
}

func TestAPinnedModelIsFoundByItsVersion(t *testing.T) {
	t.Parallel()
	at := func(v string) Model { return Model{Version: version(v)} }
	for name, c := range map[string]struct {
		models map[string]Model
		pinned agent.Digest
		want   string // "" if there is none
		follow string
	}{
		"of that name":                      {map[string]Model{"m": at("1"), "z": at("1")}, version("1"), "m", "m"},
		"of another name":                   {map[string]Model{"m": at("2"), "a": at("1"), "b": at("1")}, version("1"), "a", "m"},
		"of another name only":              {map[string]Model{"b": at("1")}, version("1"), "b", ""},
		"of no version":                     {map[string]Model{"m": at("2"), "b": at("1")}, "", "m", "m"},
		"gone":                              {map[string]Model{"m": at("2")}, version("1"), "", "m"},
		"gone, and nothing has its version": {map[string]Model{"b": {}}, "", "", ""},
	} {
		def := agent.Definition{Name: "clerk", Model: "m", ModelVersion: c.pinned}
		for u, want := range map[agent.Upgrade]string{agent.UpgradePin: c.want, agent.UpgradeAsk: c.follow, agent.UpgradeFollow: c.follow} {
			s := &Snapshot{Models: c.models, Upgrades: map[string]agent.Upgrade{"clerk": u}}
			got, m, ok := s.model(def)
			if ok != (want != "") || ok && (got != want || m != c.models[want]) || !ok && got != "m" {
				t.Errorf("%s, %s: %q, %v; want %q", name, u, got, ok, want)
			}
		}
	}
}

func TestAPinnedModelIsAskedUnderItsNewNameAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	w.edit(func(d *agent.Definition) { d.ModelVersion = version("1") })
	srv := w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Say("hello")}})
	kept := w.snap.Models["m"]
	kept.Version = version("1")
	w.snap.Models = map[string]Model{"m": {Name: "m", Version: version("2"), Client: &openai.Client{}}, "kept": kept}
	w.upgrades(agent.UpgradePin)
	if res := w.mustAsk(w.hears("hello")); res.Text != "hello" || srv.Count() != 1 {
		t.Errorf("%+v, asked %d times", res, srv.Count())
	}
	if res, err := local[agent.OpenResult](t, w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: "clerk", Serial: 3}); err != nil || res.Model != "kept" {
		t.Errorf("%+v, %v", res, err)
	}
	delete(w.snap.Models, "kept")
	_, _, err := w.askOnce(t.Context(), 1, Progress{}, w.hears("and now?"))
	if app := wantApp(t, err, agent.ErrStaleConfig, false); !strings.Contains(app.Message(), `in another version than agent "clerk" is pinned to`) {
		t.Error(app)
	}
	_, err = local[agent.OpenResult](t, w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: "clerk", Serial: 3})
	wantApp(t, err, agent.ErrStaleConfig, false)
}
