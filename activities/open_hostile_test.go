package activities

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

func TestAStoredDefinitionThatCannotBeUsedStopsWhatDependsOnItAndNothingElse(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, w *world, b string) agent.Digest {
		t.Helper()
		body, err := w.space().PutBody(t.Context(), []byte(b), "")
		if err != nil {
			t.Fatal(err)
		}
		return body.Digest
	}
	for name, c := range map[string]struct {
		old  func(t *testing.T, w *world) agent.Digest
		want string
	}{
		"absent":        {func(*testing.T, *world) agent.Digest { return version("none") }, "not in the store"},
		"no digest":     {func(*testing.T, *world) agent.Digest { return "../../etc/passwd" }, "not a digest"},
		"damaged":       {func(t *testing.T, w *world) agent.Digest { return torn(t, w) }, "damaged"},
		"not JSON":      {func(t *testing.T, w *world) agent.Digest { return put(t, w, "\x00\xff") }, "no form that this build knows"},
		"another type":  {func(t *testing.T, w *world) agent.Digest { return put(t, w, `{"name":["clerk"]}`) }, "no form that this build knows"},
		"no definition": {func(t *testing.T, w *world) agent.Digest { return put(t, w, `{"role":"user"}`) }, "it names no agent"},
		"null":          {func(t *testing.T, w *world) agent.Digest { return put(t, w, `null`) }, "it names no agent"},
		"another agent's": {func(t *testing.T, w *world) agent.Digest {
			return put(t, w, `{"name":"admin","tools":[{"name":"pay"}]}`)
		}, `it defines agent "admin"`},
		"with a secret in": {func(t *testing.T, w *world) agent.Digest { return put(t, w, `{"name":"`+hush+`"}`) }, "it defines agent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := deployed(t)
			old := c.old(t, w)
			for _, u := range []agent.Upgrade{agent.UpgradePin, agent.UpgradeAsk} {
				w.upgrades(u)
				_, err := w.opens(old)
				app := wantApp(t, err, agent.ErrStore, true)
				if !strings.Contains(app.Message(), c.want) || !strings.Contains(app.Message(), "upgrade: follow") || strings.Contains(app.Message(), hush) {
					t.Errorf("%s: %v", u, app)
				}
			}
			w.upgrades(agent.UpgradeFollow)
			if res, err := w.opens(old); err != nil || res.Definition != w.digest() {
				t.Errorf("follow: %+v, %v", res, err)
			}
		})
	}
}

// torn stores a definition whose bytes are not those that its name says.
func torn(t *testing.T, w *world) agent.Digest {
	t.Helper()
	d := version("torn")
	if _, _, err := w.space().Create(t.Context(), store.KindBodies, string(d), []byte(`{"name":"clerk"}`)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAStoreInTroubleDecidesNothing(t *testing.T) {
	t.Parallel()
	w, old, in := offered(t)
	w.Store = newUnsteady(t, func(context.Context, string, string) fault { return fault{lost: true} })
	in.Store = w.Store.ID()
	for _, u := range []agent.Upgrade{agent.UpgradePin, agent.UpgradeAsk} {
		w.upgrades(u)
		in.Definition = old
		_, err := local[agent.OpenResult](t, w.Open, in)
		wantApp(t, err, agent.ErrStore, false)
	}
}

func FuzzAStoredDefinitionIsReadOrRefused(f *testing.F) {
	for _, s := range []string{`{"name":"clerk","instructions":"x","model":"m","limits":{}}`, `{}`, `null`, `[`, `{"name":1}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		def, err := parseDefinition(b)
		if (err == nil) != (def.Name != "") {
			t.Errorf("%q: %+v, %v", b, def, err)
		}
		if err == nil && len(Changes(def, agent.Definition{})) == 0 {
			t.Errorf("%q: no change", b)
		}
	})
}
