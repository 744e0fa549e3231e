package policy_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestExplainSaysWhichRuleOfWhichLayerDecidedAndWhy(t *testing.T) {
	t.Parallel()
	no := false
	c := shop(t)
	c.Agents["careful"] = policy.Layer{Posture: policy.PostureAsk, Rules: c.Agents["narrow"].Rules}
	strict := shop(t)
	strict.SelfApproval = &no
	hostile := policy.Config{Rules: []policy.Rule{{Name: "few", When: "int(args.n) < 3", Then: agent.DecisionDeny}}}
	for name, x := range map[string]struct {
		config policy.Config
		r      policy.Request
	}{
		"allowed":         {c, call("support", "refund", agent.ClassOnce, `{"amount":99}`)},
		"asks":            {c, call("support", "refund", agent.ClassOnce, `{"amount":250}`)},
		"posture":         {c, call("careful", "refund", agent.ClassOnce, `{"amount":1,"currency":"EUR"}`)},
		"plan":            {c, call("reader", "refund", agent.ClassOnce, `{"amount":1}`)},
		"agent-denies":    {c, call("narrow", "refund", agent.ClassOnce, `{"amount":1,"currency":"USD"}`)},
		"error":           {c, call("support", "refund", agent.ClassOnce, canonical(t, `{"amount":"\u001b[31m\u202elots"}`))},
		"value":           {hostile, call("support", "mail", agent.ClassOnce, canonical(t, `{"n":"\u001b[31m\u202elots"}`))},
		"no-rule":         {c, call("support", "get", agent.ClassRead, "")},
		"not-listed":      {c, policy.Request{Tool: "p\u0430y", Class: agent.ClassOnce, Agent: agent.Definition{Name: "support"}}},
		"sender-unsigned": {strict, call("support", "mail", agent.ClassOnce, "")},
		"no-policy":       {policy.Config{}, call("support", "mail", agent.ClassOnce, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustNew(t, x.config)
			if name == "no-policy" {
				p = nil
			}
			if name == "sender-unsigned" {
				x.r.Senders = []agent.Actor{{Name: "erin"}}
			}
			e := p.Explain(x.r)
			if v, terms := p.Decide(x.r); v != e.Verdict || cmp.Diff(terms, e.Terms) != "" {
				t.Errorf("Decide says %+v %+v", v, terms)
			}
			if p != nil { // it changes with every key and rule of these tests
				e.Policy, e.Verdict.Policy = "0123456789abcdef", "0123456789abcdef"
			}
			b, err := json.MarshalIndent(e, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, e.String()+string(b)+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "explain", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func canonical(t *testing.T, args string) string {
	t.Helper()
	out, err := approval.Canonical([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
