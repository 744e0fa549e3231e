package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

func TestAnOutlookHasTheVerdictsThatArgumentsCanLeadToAndNoOther(t *testing.T) {
	t.Parallel()
	const allow, ask, deny = agent.DecisionAllow, agent.DecisionAsk, agent.DecisionDeny
	rule := func(name, when string, then agent.Decision) policy.Rule {
		return policy.Rule{Name: name, When: when, Then: then}
	}
	read := policy.Request{Tool: "look", Class: agent.ClassRead, Risk: agent.RiskLow}
	pay := policy.Request{Tool: "pay", Class: agent.ClassOnce, Risk: agent.RiskHigh}
	for _, tt := range []struct {
		name    string
		posture policy.Posture
		rules   []policy.Rule
		own     []policy.Rule
		r       policy.Request
		want    string
	}{
		{"no policy, a read", "", nil, nil, read, "allow no-rule"},
		{"no policy, an effect", "", nil, nil, pay, "ask no-rule"},
		{"another tool's rule", "", []policy.Rule{rule("a", `tool == "send" && args.n > 1`, allow)}, nil, pay, "ask no-rule"},
		{"by arguments", "", []policy.Rule{rule("a", `tool == "pay" && args.n > 1`, allow)}, nil, pay, "allow a, ask no-rule"},
		{"always", "", []policy.Rule{rule("a", `risk == "high"`, deny)}, nil, pay, "deny a"},
		{"the first that must match hides the rest", "", []policy.Rule{
			rule("a", `args.n > 1`, ask), rule("b", `tool == "pay"`, allow), rule("c", "", deny),
		}, nil, pay, "ask a, allow b"},
		{"an alternative", "", []policy.Rule{rule("a", `tool == "send" || args.n > 1`, allow)}, nil, pay, "allow a, ask no-rule"},
		{"a name in text", "", []policy.Rule{rule("a", `tool == "args && x"`, allow)}, nil, pay, "allow a, ask no-rule"},
		{"plan", policy.PosturePlan, []policy.Rule{rule("a", "", allow)}, nil, pay, "deny posture-plan"},
		{"plan, a read", policy.PosturePlan, []policy.Rule{rule("a", "", allow)}, nil, read, "allow a"},
		{"ask", policy.PostureAsk, []policy.Rule{rule("a", "", allow)}, nil, pay, "ask posture-ask"},
		{"the agent narrows", "", []policy.Rule{rule("a", "", allow)}, []policy.Rule{rule("b", `args.n > 1`, deny)}, pay, "deny hello/b, allow a"},
		{"the agent cannot widen", "", []policy.Rule{rule("a", "", deny)}, []policy.Rule{rule("b", "", allow)}, pay, "deny a"},
	} {
		o := outlook(t, policy.Config{Posture: tt.posture, Rules: tt.rules, Agents: map[string]policy.Layer{"hello": {Rules: tt.own}}})
		tt.r.Agent.Name = "hello"
		var got []string
		for _, v := range o.Of(tt.r) {
			got = append(got, fmt.Sprint(v.Decision, " ", v.Rule))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func outlook(t *testing.T, c policy.Config) *policy.Outlook {
	t.Helper()
	p, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	o, err := p.Outlook()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What an outlook leaves out would be a false calm: no call may get a verdict that is not in it, unless a condition
// failed.
func TestNoCallGetsAVerdictThatItsOutlookHasNot(t *testing.T) {
	t.Parallel()
	conditions := []string{
		"", `tool == "pay"`, `tool != "pay"`, `args.n > 1`, `tool == "pay" && args.n > 1`, `args.n > 1 && tool == "send"`,
		`tool == "send" || args.n > 1`, `has(args.n) && effect != "read"`, `risk == "high" ? args.n > 1 : true`,
		`(tool == "pay" && args.n > 1) || agent == "other"`, `!(tool == "pay")`, `actor == "" && agent == "hello"`,
	}
	decisions := []agent.Decision{agent.DecisionAllow, agent.DecisionAsk, agent.DecisionDeny}
	for i, first := range conditions {
		for j, second := range conditions {
			c := policy.Config{Rules: []policy.Rule{{Name: "second", When: second, Then: decisions[j%3]}}}
			if first != "" {
				c.Rules = append([]policy.Rule{{Name: "first", When: first, Then: decisions[i%3]}}, c.Rules...)
			}
			p, err := policy.New(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range []string{`{"n":1}`, `{"n":2}`} {
				r := call("hello", "pay", agent.ClassOnce, args)
				r.Risk = agent.RiskHigh
				v, _ := p.Decide(r)
				can := outlook(t, c).Of(r)
				if !slices.Contains(can, policy.Possible{Decision: v.Decision, Rule: v.Rule}) {
					t.Errorf("%q, %q: %s by %s of %s is not among %v", first, second, v.Decision, v.Rule, args, can)
				}
			}
		}
	}
}
