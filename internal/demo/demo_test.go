package demo

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/worker"
)

func TestOnlyOneRefundThatIsApprovedAndSurvivedTwoKillsPasses(t *testing.T) {
	t.Parallel()
	right := payments.Entry{Refund: "re_1", Key: "k", Order: order, Amount: price}
	for name, c := range map[string]struct {
		change func(b *payments.Books, l *[]entry, kills *int)
		want   string // part of the error; empty is none
	}{
		"one":          {func(*payments.Books, *[]entry, *int) {}, ""},
		"none":         {func(b *payments.Books, _ *[]entry, _ *int) { b.Entries = nil }, "no refund"},
		"two":          {func(b *payments.Books, _ *[]entry, _ *int) { b.Entries = append(b.Entries, right) }, "2 refunds"},
		"two keys":     {func(b *payments.Books, _ *[]entry, _ *int) { b.Requests["l"] = 1 }, "2 keys"},
		"wrong amount": {func(b *payments.Books, _ *[]entry, _ *int) { b.Entries[0].Amount = 1 }, "0.01 for order 42"},
		"wrong order":  {func(b *payments.Books, _ *[]entry, _ *int) { b.Entries[0].Order = "43" }, "order 43"},
		"one kill":     {func(_ *payments.Books, _ *[]entry, n *int) { *n = 1 }, "killed 1 time,"},
		"no ledger":    {func(_ *payments.Books, l *[]entry, _ *int) { *l = nil }, "ledger"},
		"uncertain":    {func(_ *payments.Books, l *[]entry, _ *int) { (*l)[0].State = agent.StateUncertain }, "ledger"},
		"another key":  {func(_ *payments.Books, l *[]entry, _ *int) { (*l)[0].Key = "l" }, "ledger"},
		"no policy":    {func(_ *payments.Books, l *[]entry, _ *int) { (*l)[0].Verdict.Policy = "" }, "approved"},
		"unsigned":     {func(_ *payments.Books, l *[]entry, _ *int) { (*l)[0].Approvals[0].Decisions[0].Claimed = true }, "approved"},
		"not approved": {func(_ *payments.Books, l *[]entry, _ *int) { (*l)[0].Approvals[0].Outcome = agent.OutcomeVoid }, "approved"},
		"another one":  {func(_ *payments.Books, l *[]entry, _ *int) { (*l)[0].Approvals[0].Decisions[0].Approver = "eve" }, "approved"},
	} {
		books := payments.Books{Entries: []payments.Entry{right}, Requests: map[string]int{"k": 2}}
		ledger, kills := []entry{approved("k", "demo")}, 2
		c.change(&books, &ledger, &kills)
		err := verdict(books, ledger, "demo", kills)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

// approved is what the ledger should hold at the end.
func approved(key, by string) entry {
	e := entry{Effect: agent.Effect{Key: key, State: agent.StateCommitted, Approval: key + "#1", Verdict: agent.Verdict{Policy: "p"}}}
	e.Approvals = []agent.Approval{{
		ApprovalRequest: agent.ApprovalRequest{ID: key + "#1"}, Outcome: agent.OutcomeApproved,
		Decisions: []agent.Decided{{ApprovalDecision: agent.ApprovalDecision{Approver: by}}},
	}}
	return e
}

func TestADeclinedRefundMustHaveLeftNothing(t *testing.T) {
	t.Parallel()
	declined := []entry{{Effect: agent.Effect{State: agent.StateDeclined}}}
	if err := untouched(payments.Books{}, declined); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"a refund":   untouched(payments.Books{Entries: make([]payments.Entry, 1), Requests: map[string]int{"k": 1}}, declined),
		"a request":  untouched(payments.Books{Requests: map[string]int{"k": 1}}, declined),
		"another":    untouched(payments.Books{}, []entry{approved("k", "demo")}),
		"no ledger":  untouched(payments.Books{}, nil),
		"unapproved": untouched(payments.Books{}, []entry{{Effect: agent.Effect{State: agent.StateAwaitingApproval}}}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTheBooksInALine(t *testing.T) {
	t.Parallel()
	e := payments.Entry{Order: order, Amount: price}
	for want, b := range map[string]payments.Books{
		"1 refund of 19.90 for order 42, 2 requests with the same key": {Entries: []payments.Entry{e}, Requests: map[string]int{"k": 2}},
		"2 refunds, 3 requests with 2 keys":                            {Entries: []payments.Entry{e, e}, Requests: map[string]int{"k": 2, "l": 1}},
	} {
		if got := summary(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheConfigurationIsOneThatAWorkerTakes(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]places{
		"scripted": {BaseURL: "http://127.0.0.1:1/v1", Model: "scripted"},
		"somebody's own, with a name that YAML would read as something else": {Model: `no: "1.0"`, Key: "env:PATH"}, // any variable that is set
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p.Agent, p.Store, p.Payments, p.Heartbeat = agentName, "file://"+dir, "http://127.0.0.1:2", heartbeat
			p.Limit, p.Approver = limit, "demo"
			var err error
			if p.PublicKey, err = makeKey(filepath.Join(dir, "key")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "holdfast.yaml")
			if err := writeConfig(path, p); err != nil {
				t.Fatal(err)
			}
			cfg, err := worker.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Models["main"].Model; got != p.Model {
				t.Errorf("model %q, want %q", got, p.Model)
			}
			for amount, want := range map[string]agent.Decision{"10.00": agent.DecisionAllow, price.String(): agent.DecisionAsk, "all": agent.DecisionAsk} {
				if got := decision(t, cfg, amount); got != want {
					t.Errorf("a refund of %s: %s, want %s", amount, got, want)
				}
			}
			if got := cfg.Tools["refund"].Effect; got != agent.ClassIdempotent {
				t.Errorf("refund is %q, want %q", got, agent.ClassIdempotent)
			}
			if got := cfg.Tools["refund"].HTTP.URL; got != "http://127.0.0.1:2/refunds" {
				t.Errorf("refund goes to %q", got)
			}
			if got, want := cfg.Agents[agentName].Tools, []string{"lookup_order", "refund"}; !slices.Equal(got, want) {
				t.Errorf("tools %q, want %q", got, want)
			}
		})
	}
}

// decision returns what the configuration's policy makes of a refund.
func decision(t *testing.T, cfg *worker.Config, amount string) agent.Decision {
	t.Helper()
	p, err := policy.New(cfg.Policy)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := p.Decide(policy.Request{
		Agent: agent.Definition{Name: agentName, Tools: []agent.ToolRef{{Name: "refund"}}},
		Tool:  "refund", Class: agent.ClassIdempotent, Args: fmt.Sprintf(`{"amount":%q,"order":"42"}`, amount),
	})
	return v.Decision
}

func TestTheScriptLooksUpThenRefundsThenAnswers(t *testing.T) {
	t.Parallel()
	messages := []modeltest.Message{{Role: "user", Content: request}}
	var asked []string
	for range 2 {
		step := script(modeltest.Request{Messages: messages})
		for _, name := range []string{"lookup_order", "refund"} {
			if bytes.Contains(step.Message, []byte(name)) {
				asked = append(asked, name)
			}
		}
		messages = append(messages, modeltest.Message{Role: "assistant"}, modeltest.Message{Role: "tool", CallID: "c"})
	}
	if diff := cmp.Diff([]string{"lookup_order", "refund"}, asked); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	for result, want := range map[string]string{`{"refund":"re_1"}`: "has been refunded", "declined": "was not approved"} {
		messages[len(messages)-1].Content = result
		if last := script(modeltest.Request{Messages: messages}); !bytes.Contains(last.Message, []byte(want)) {
			t.Errorf("last answer %s, want that it %s", last.Message, want)
		}
	}
}

func TestLinesAreHandedOnWhole(t *testing.T) {
	t.Parallel()
	var got []string
	w := &lines{each: func(s string) { got = append(got, s) }}
	for _, part := range []string{"on", "e\ntwo\n\nth", "ree\n", "cut"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestEventsStandInColumnsWithTheirTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newPrinter(&out, func(s string) string { return "<" + s + ">" })
	p.start = time.Now().Add(-1500 * time.Millisecond)
	p.event("turn", "step %d", 1)
	p.shout("KILL", "now")
	want := "   1.5 s  turn      step 1\n<   1.5 s  KILL      now>\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
