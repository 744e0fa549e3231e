package activities

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// A watcher is a tool that can look at its target.
type watcher struct {
	*fake
	look func(context.Context, tool.Call) (tool.Result, error)
}

func (w *watcher) Observe(ctx context.Context, c tool.Call) (tool.Result, error) {
	return w.look(ctx, c)
}

func asking() policy.Config {
	return policy.Config{Rules: []policy.Rule{{Name: "people", Then: agent.DecisionAsk}}}
}

func TestAnAskKeepsTheExactBytesAndWhatAToolSeesOfTheTarget(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("a question is a %s", r.Method)
		}
		seen.Store(r.URL.RequestURI())
	}))
	t.Cleanup(srv.Close)
	pay, err := tool.NewHTTP(tool.HTTPConfig{
		Name: "pay", Method: http.MethodPost, URL: srv.URL + "/orders/{id}/refund", Class: agent.ClassOnce, AllowPrivate: true,
		Resource:   "orders/{id}",
		Parameters: []byte(`{"type":"object","properties":{"id":{"type":"string"},"amount":{"type":"number"}},"required":["id"]}`),
		Observe:    &tool.HTTPAsk{URL: srv.URL + "/orders/{id}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "mem://", pay)
	w.governed(asking())
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", ` {"id" : "a/b", "amount": 10.50}`))}})
	c := w.mustAsk(w.hears("refund it")).Calls[0]
	const want = `{"amount":10.50,"id":"a/b"}`
	place := agent.Place{Turn: 1, Step: 1, Call: 1}
	if c.Args != want || c.Trouble != "" || c.Action != action(pay.Spec(), want, place).Digest() || c.Verdict.Rule != "people" || c.Verdict.Decision != agent.DecisionAsk {
		t.Errorf("call %+v", c)
	}
	if seen.Load() != "/orders/a%2Fb" {
		t.Errorf("looked at %v", seen.Load())
	}
	o := c.Terms
	if o == nil || o.Resource != "orders/a/b" || o.Version != pay.Spec().Version || o.Quorum != 1 || o.Observed == nil || !o.Observed.Digest.Valid() || o.Observed.At.IsZero() {
		t.Errorf("terms %+v", o)
	}
}

func TestAnObservationIsMaskedAndBoundedAndItsFailureStillAsks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		long := strings.Repeat("ä", agent.MaxObserved)
		for _, c := range []struct {
			name    string
			look    doFunc
			text    string // its beginning
			trouble string
		}{
			{"state", says(`{"balance":7}`), `{"balance":7}`, ""},
			{"secret", says("the key is " + hush), "the key is ", ""},
			{"long", says(long), "ääää", ""},
			{"binary", says("\x00\xff"), "[2 bytes of binary data", ""},
			{"nothing", says(""), "", ""},
			{"trouble", fails(errors.New("no way in with " + hush)), "", "no way in with"},
			{"panic", func(context.Context, tool.Call) (tool.Result, error) { panic("oh") }, "", "panicked: oh"},
			{"never", func(context.Context, tool.Call) (tool.Result, error) {
				time.Sleep(time.Hour)
				return tool.Result{}, nil
			}, "", "no answer in 10s"},
		} {
			w := newWorld(t, "mem://", &watcher{newFake(t, spec(agent.ClassOnce), nil), c.look})
			w.governed(asking())
			d := &desk{snap: w.snap, def: w.snap.Agents["clerk"], scope: w.scope, place: agent.Place{Turn: 1, Step: 1}}
			calls := []agent.Call{d.decide(agent.Call{Tool: "pay", Args: `{}`}, 1)}
			d.inform(t.Context(), w.space(), calls)
			if calls[0].Trouble != "" || calls[0].Args != `{}` || calls[0].Terms == nil || calls[0].Terms.Observed == nil {
				t.Errorf("%s: call %+v", c.name, calls[0])
				continue
			}
			o := calls[0].Terms.Observed
			if !strings.HasPrefix(o.Text, c.text) || len(o.Text) > agent.MaxObserved || strings.Contains(o.Text+o.Trouble, hush) ||
				(o.Trouble == "") != (c.trouble == "") || !strings.Contains(o.Trouble, c.trouble) || (o.Digest == "") != (c.trouble != "") {
				t.Errorf("%s: observation %+v", c.name, o)
			}
		}
		time.Sleep(time.Hour) // the one that never came back
	})
}

func TestEqualStatesHaveEqualDigestsBeyondWhatIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	look := func(text string) *agent.Observation {
		return w.snap.observe(t.Context(), &watcher{newFake(t, spec(agent.ClassOnce), nil), says(text)}, tool.Call{}, time.Second)
	}
	long := strings.Repeat("x", 2*agent.MaxObserved)
	if a, b, c := look(long), look(long), look(long+"y"); a.Digest != b.Digest || a.Digest == c.Digest || a.Text != c.Text {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
	if o := w.snap.observe(t.Context(), newFake(t, spec(agent.ClassOnce), nil), tool.Call{}, time.Second); o != nil {
		t.Errorf("a tool that cannot look saw %+v", o)
	}
}

func TestAllTargetsOfAStepAreLookedAtAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "mem://", &watcher{newFake(t, spec(agent.ClassOnce), nil), func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(9 * time.Second)
			return tool.Result{}, nil
		}})
		w.governed(asking())
		d := &desk{snap: w.snap, def: w.snap.Agents["clerk"], scope: w.scope, place: agent.Place{Turn: 1, Step: 1}}
		var calls []agent.Call
		for i := range 5 {
			calls = append(calls, d.decide(agent.Call{Tool: "pay", Args: `{}`}, i+1))
		}
		start := time.Now()
		d.inform(t.Context(), w.space(), calls)
		if took := time.Since(start); took != 9*time.Second || calls[4].Terms.Observed == nil {
			t.Errorf("took %s: %+v", took, calls[4].Terms)
		}
	})
}

func TestWhoeverIsAskedForTheSameAgainIsToldOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	d := &desk{snap: w.snap, def: w.snap.Agents["clerk"], scope: w.scope, place: agent.Place{Turn: 2, Step: 1}}
	ask := func() string {
		w.governed(asking())
		calls := []agent.Call{d.decide(agent.Call{Tool: "pay", Args: `{"n":1}`}, 1)}
		d.inform(t.Context(), w.space(), calls)
		return calls[0].Terms.First
	}
	if first := ask(); first != "" {
		t.Errorf("first is %q before there is one", first)
	}
	wanted := d.decide(agent.Call{Tool: "pay", Args: `{"n":1}`}, 1).Intent
	for i, s := range []agent.State{agent.StateFailed, agent.StateCommitted, agent.StateCommitted} {
		key := agent.ActionKey(w.scope, agent.Place{Turn: 1, Step: i + 1, Call: 1}, agent.DigestOf(nil))
		if _, err := w.space().CreateIntent(t.Context(), wanted, i+1, key); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.space().CreateResult(t.Context(), store.Result{Key: key, Tool: &agent.ToolResult{State: s}}); err != nil {
			t.Fatal(err)
		}
	}
	if first, want := ask(), agent.ActionKey(w.scope, agent.Place{Turn: 1, Step: 2, Call: 1}, agent.DigestOf(nil)); first != want {
		t.Errorf("first is %q, want the first that committed, %q", first, want)
	}
}

func TestPolicyHearsOfTheSendersOfTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	w.governed(policy.Config{Rules: []policy.Rule{{Name: "alices", When: `actor == "alice"`, Then: agent.DecisionAllow}}})
	w.talk(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step { return modeltest.Want(call("c1", "pay", `{}`)) }})
	for decision, sender := range map[agent.Decision]agent.Actor{
		agent.DecisionAllow: {Name: "alice", Signed: true},
		agent.DecisionAsk:   {Name: "alice"}, // who only says so
	} {
		in := w.hears("pay for " + string(decision))
		in.Senders = []agent.Actor{sender}
		if c := w.mustAsk(in).Calls[0]; c.Verdict.Decision != decision {
			t.Errorf("%+v: %+v", sender, c.Verdict)
		}
	}
}
