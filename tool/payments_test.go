package tool_test

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/compensation"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/tool"
)

// payAt starts a payments service and returns a refund tool for it and the tool that takes a refund back.
func payAt(t *testing.T, cfg payments.Config) (s *payments.Service, refund, void tool.Tool) {
	t.Helper()
	cfg.Path = filepath.Join(t.TempDir(), "books.jsonl")
	cfg.Orders = []payments.Order{{ID: "42", Item: "kettle", Status: "delivered", Total: 1990}}
	s, err := payments.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.Close(); s.Close() })
	refund, err = tool.NewHTTP(tool.HTTPConfig{
		Name: "refund", Method: "POST", URL: h.URL + "/refunds", Class: agent.ClassReconcilable,
		Parameters: json.RawMessage(`{"type":"object","required":["order","amount"],"properties":{"order":{"type":"string"},"amount":{"type":"number"}}}`),
		Reconcile: &tool.HTTPAsk{
			URL: h.URL + "/refunds?key={key}", Found: "status == 200 && body.refunds.exists(r, r.key == key)",
			Absent: "status == 200 && body.refunds.size() == 0",
		},
		Observe:    &tool.HTTPAsk{URL: h.URL + "/orders/{order}/state"},
		Compensate: &tool.Compensation{Tool: "void", Args: map[string]string{"refund": "has(result.refunds) ? result.refunds[0].refund : result.refund"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	void, err = tool.NewHTTP(tool.HTTPConfig{
		Name: "void", Method: "POST", URL: h.URL + "/refunds/{refund}/void", Class: agent.ClassIdempotent,
		Parameters: json.RawMessage(`{"type":"object","required":["refund"],"properties":{"refund":{"type":"string"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, refund, void
}

// What the destination did while its answer was lost is learnt by asking it, and nothing by asking one that does not
// say.
func TestALostAnswerIsFoundOutByAsking(t *testing.T) {
	t.Parallel()
	asked, mute := payments.Config{IgnoreKeys: true}, payments.Config{IgnoreKeys: true, Unaskable: true}
	for title, c := range map[string]struct {
		cfg   payments.Config
		fault payments.Fault
		want  tool.Finding
	}{
		"dropped after":      {asked, payments.FaultDrop, tool.Found},
		"500 after":          {asked, payments.FaultError, tool.Found},
		"dropped before":     {asked, payments.FaultLose, tool.Absent},
		"503 before":         {asked, payments.FaultRefuse, tool.Absent},
		"does not say":       {mute, payments.FaultDrop, tool.Unknown},
		"honours keys, asks": {payments.Config{}, payments.FaultDrop, tool.Found},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s, refund, _ := payAt(t, c.cfg)
			s.Inflict(c.fault)
			call := tool.Call{Key: "s~0:turn-1/2.1/ab", Args: `{"amount":19.90,"order":"42"}`}
			if _, err := refund.Do(t.Context(), call); err == nil || tool.Meaning(err) != tool.OutcomeAmbiguous {
				t.Fatalf("error %v, want an ambiguous one", err)
			}
			r, ok := tool.AsReconciler(refund)
			if !ok {
				t.Fatal("the tool cannot be asked")
			}
			if got, _, err := r.Reconcile(t.Context(), call); got != c.want {
				t.Errorf("%s, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestACompensationRestoresTheStateThatWasObserved(t *testing.T) {
	t.Parallel()
	s, refund, void := payAt(t, payments.Config{})
	o, ok := tool.AsObserver(refund)
	if !ok {
		t.Fatal("the tool does not observe")
	}
	call := tool.Call{Key: "k", Args: `{"amount":19.90,"order":"42"}`}
	state := func() string {
		r, err := o.Observe(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Data)
	}
	before := state()
	result, err := refund.Do(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if state() == before {
		t.Errorf("the refund does not show in the state %q", before)
	}
	recipe, err := compensation.New(refund.Spec().Compensate.Tool, refund.Spec().Compensate.Args)
	if err != nil {
		t.Fatal(err)
	}
	args, err := recipe.Args(call.Args, string(result.Data))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := void.Do(t.Context(), tool.Call{Key: "k/undo-1", Args: args}); err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before || len(s.Books().Entries) != 2 {
		t.Errorf("state %q after, %q before, %d entries", after, before, len(s.Books().Entries))
	}
}
