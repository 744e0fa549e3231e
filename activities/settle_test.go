package activities

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// doubtful is a world with a payment that an attempt may have sent before it died.
func doubtful(t *testing.T, url string, f *fake) (*world, *chronicle, agent.Effect) {
	t.Helper()
	w := newWorld(t, url, f)
	c := newChronicle(t, w)
	c.started("run-1", "")
	in := w.asked("pay", `{"n":1}`)
	w.dispatch(in, now().Add(-time.Hour))
	return w, c, agent.Effect{
		Key: keyOf(in), Tool: "pay", Place: in.Place, Class: in.Class, State: agent.StateUncertain, Action: in.Action, Attempt: 1,
	}
}

func (w *world) settles(t *testing.T, e agent.Effect, x agent.Settlement) agent.SettleResult {
	t.Helper()
	return mustLocal[agent.SettleResult](t, w.Settle, agent.SettleInput{Scope: w.scope, Effect: e, Settlement: x, Run: "run-1", Store: w.Store.ID(), Serial: 2})
}

// says makes a person's settlement arrive at noon.
func (c *chronicle) says(x agent.Settlement) agent.Settlement {
	c.t.Helper()
	c.signal(noon, agent.SignalSettle, x)
	return x
}

func TestASettlementByKeyAloneForgesNothing(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w, _, e := doubtful(t, url, f)
		key := agent.Settlement{Key: e.Key}
		if res := w.settles(t, e, key); !strings.Contains(res.Why, "still not known") || w.recorded(e.Key) || res.Serial != 3 {
			t.Errorf("%+v, recorded %v", res, w.recorded(e.Key))
		}
		if f.count() != 0 {
			t.Errorf("it was sent %d times", f.count())
		}
		// A worker has written the record, and that is what counts.
		done := agent.ToolResult{State: agent.StateCommitted, Text: "paid", Attempt: 1}
		if _, _, err := w.space().CreateResult(t.Context(), store.Result{Key: e.Key, Tool: &done}); err != nil {
			t.Fatal(err)
		}
		res := w.settles(t, e, key)
		done.Adopted = true
		if diff := cmp.Diff(done, res.Result); diff != "" || res.Why != "" || res.By != "" {
			t.Errorf("%+v differs from the record:\n%s", res, diff)
		}
	}
}

func TestASettlementDoesNotWithdrawWhatIsStillToBeSent(t *testing.T) {
	t.Parallel()
	f := newFake(t, spec(agent.ClassOnce), nil)
	w := newWorld(t, "mem://", f)
	c := newChronicle(t, w)
	c.started("run-1", "")
	in := w.asked("pay", `{}`)
	for _, s := range []agent.State{agent.StateAuthorized, agent.StateDispatched, agent.StateAwaitingApproval} {
		e := agent.Effect{Key: keyOf(in), Tool: "pay", State: s, Class: in.Class, Action: in.Action}
		person := c.says(agent.Settlement{Key: e.Key, Outcome: agent.StateFailed, Evidence: "I say so", Approver: "eve"})
		for _, x := range []agent.Settlement{{Key: e.Key}, person} {
			if res := w.settles(t, e, x); !strings.Contains(res.Why, string(s)) {
				t.Errorf("%s: %+v", s, res)
			}
		}
	}
	if _, ok := w.dispatched(keyOf(in)); ok || w.recorded(keyOf(in)) {
		t.Error("the settlement left a record")
	}
	wantState(t, w.mustAttempt(1, in), agent.StateCommitted)
}

func TestAPersonsWordIsWrittenOnceAndTheStandingRecordWins(t *testing.T) {
	t.Parallel()
	for _, outcome := range []agent.State{agent.StateCommitted, agent.StateFailed} {
		for _, url := range []string{"mem://", "file://" + t.TempDir()} {
			w, c, e := doubtful(t, url, newFake(t, spec(agent.ClassOnce), nil))
			x := c.says(agent.Settlement{Key: e.Key, Outcome: outcome, Evidence: "statement of May, page 2, " + hush, Approver: "alice"})
			first := w.settles(t, e, x)
			if first.Why != "" || first.By != "alice (claimed)" || !first.Result.At.Equal(noon) {
				t.Fatalf("%+v", first)
			}
			wantState(t, first.Result, outcome)
			r := first.Result
			if !strings.Contains(r.Evidence, "page 2") || !strings.Contains(r.Evidence, "alice (claimed)") || !strings.Contains(r.Note, "alice") || strings.Contains(r.Text+r.Evidence, hush) {
				t.Errorf("result %+v", r)
			}
			rec, err := w.space().Result(t.Context(), e.Key)
			if diff := cmp.Diff(&r, rec.Tool); err != nil || diff != "" {
				t.Errorf("%v, the record differs:\n%s", err, diff)
			}
			// An attempt that did not hear of its own success writes the same record.
			if again := w.settles(t, e, x); again.Result.Conflict != "" || again.Result.State != outcome {
				t.Errorf("the second time %+v", again)
			}
			// Somebody else says otherwise: the record stands, and the contradiction is seen.
			other := agent.StateCommitted
			if outcome == other {
				other = agent.StateFailed
			}
			res := w.settles(t, e, c.says(agent.Settlement{Key: e.Key, Outcome: other, Evidence: "I saw", Approver: "bob"}))
			if res.Why != "" || res.Result.State != outcome || !strings.Contains(res.Result.Conflict, "bob") {
				t.Errorf("contradicted: %+v", res)
			}
		}
	}
}

func TestASettlementThatDoesNotCountSaysWhyAndLeavesNoRecord(t *testing.T) {
	t.Parallel()
	w, c, e := doubtful(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	w.governed(policy.Config{
		AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}}, Rights: policy.Rights{Settle: []string{"boss"}},
	})
	for want, x := range map[string]agent.Settlement{
		"another effect":    {Key: "k", Outcome: agent.StateFailed, Evidence: "e", Approver: "boss"},
		"committed or fail": {Key: e.Key, Outcome: agent.StateVoid, Evidence: "e", Approver: "boss"},
		"evidence has 0":    {Key: e.Key, Outcome: agent.StateFailed, Approver: "boss"},
		"evidence has 2049": {Key: e.Key, Outcome: agent.StateFailed, Approver: "boss", Evidence: strings.Repeat("x", agent.MaxEvidence+1)},
		"not among those":   {Key: e.Key, Outcome: agent.StateFailed, Evidence: "e", Approver: "eve"},
		"boss":              {Key: e.Key, Outcome: agent.StateFailed, Evidence: "e", Approver: "boss", Signature: "forged"},
	} {
		c.says(x)
		if res := w.settles(t, e, x); !strings.Contains(res.Why, want) || res.Result.State != "" {
			t.Errorf("%+v, want %q", res, want)
		}
	}
	if w.recorded(e.Key) {
		t.Error("there is a record")
	}
}

func TestASettlementThatTheServerNeverTookDoesNotCount(t *testing.T) {
	t.Parallel()
	w, _, e := doubtful(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	_, err := local[agent.SettleResult](t, w.Settle, agent.SettleInput{Scope: w.scope, Effect: e, Run: "run-1", Settlement: agent.Settlement{
		Key: e.Key, Outcome: agent.StateFailed, Evidence: "e", Approver: "alice",
	}})
	if wantApp(t, err, agent.ErrInternal, false); w.recorded(e.Key) {
		t.Error("there is a record")
	}
}

func TestASettlementCountsAlsoWhenTheRecordIsDamaged(t *testing.T) {
	t.Parallel()
	w, c, e := doubtful(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	if _, _, err := w.space().Create(t.Context(), store.KindResults, e.Key, []byte("no record")); err != nil {
		t.Fatal(err)
	}
	res := w.settles(t, e, c.says(agent.Settlement{Key: e.Key, Outcome: agent.StateCommitted, Evidence: "e", Approver: "alice"}))
	if wantState(t, res.Result, agent.StateCommitted); !strings.Contains(res.Result.Note, "cannot be read") {
		t.Errorf("%+v", res)
	}
	if res := w.settles(t, e, agent.Settlement{Key: e.Key}); !strings.Contains(res.Why, "still not known") {
		t.Errorf("by key alone: %+v", res)
	}
}

// What was settled is what a later attempt finds.
func TestASettledEffectIsAdoptedByALaterAttempt(t *testing.T) {
	t.Parallel()
	f := newFake(t, spec(agent.ClassOnce), nil)
	w, c, e := doubtful(t, "mem://", f)
	w.settles(t, e, c.says(agent.Settlement{Key: e.Key, Outcome: agent.StateCommitted, Evidence: "e", Approver: "alice"}))
	res := w.mustAttempt(2, w.asked("pay", `{"n":1}`))
	if wantState(t, res, agent.StateCommitted); !res.Adopted || f.count() != 0 {
		t.Errorf("sent %d times: %+v", f.count(), res)
	}
}

func TestASettlementByKeyAloneHasTheDestinationAsked(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("asked by %s", r.Method)
		}
		_, _ = out.Write([]byte(`{"id":7}`))
	}))
	t.Cleanup(srv.Close)
	pay, err := tool.NewHTTP(tool.HTTPConfig{
		Name: "pay", Method: http.MethodPost, URL: srv.URL + "/payments", Class: agent.ClassReconcilable, AllowPrivate: true,
		Parameters: []byte(`{"type":"object"}`), Reconcile: &tool.HTTPAsk{URL: srv.URL + "/payments/{key}", Found: "status == 200"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "mem://", pay)
	in := w.asked("pay", `{}`)
	d := claimOf(keyOf(in), 1, in.Class, in.Action)
	d.Revoked, d.Tool, d.Args, d.At, d.SendBy = false, "pay", in.Args, now().Add(-time.Hour), now().Add(-time.Hour)
	if _, _, err := w.space().CreateDispatch(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	e := agent.Effect{Key: d.Key, Tool: "pay", Place: in.Place, Class: in.Class, State: agent.StateUncertain, Action: in.Action, Attempt: 1}
	res := w.settles(t, e, agent.Settlement{Key: e.Key})
	if wantState(t, res.Result, agent.StateCommitted); !strings.Contains(res.Result.Text, `"id":7`) || res.Result.Evidence == "" || res.By != "" {
		t.Errorf("%+v", res)
	}
}

func TestAPersonsWordOnWhatIsFinalSaysOnlyThatSomebodyHasLooked(t *testing.T) {
	t.Parallel()
	for _, final := range []agent.Effect{
		{State: agent.StateFailed, Conflict: "its record says committed"}, {State: agent.StateCompensationFailed},
	} {
		w, c, e := doubtful(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
		e.State, e.Conflict = final.State, final.Conflict
		x := c.says(agent.Settlement{Key: e.Key, Outcome: agent.StateCommitted, Evidence: "seen", Approver: "alice"})
		res := w.settles(t, e, x)
		if !res.Looked || res.Why != "" || !strings.Contains(res.Result.Evidence, "seen") || w.recorded(e.Key) {
			t.Errorf("%s: %+v, recorded %v", e.State, res, w.recorded(e.Key))
		}
		e.Looked = res.Result.Evidence
		if again := w.settles(t, e, x); !strings.Contains(again.Why, "nothing to settle") {
			t.Errorf("a second time: %+v", again)
		}
	}
}
