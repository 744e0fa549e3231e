package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

func TestAnOutlookHasTheVerdictsThatArgumentsCanLeadToAndNoOther(t *testing.T) {
	t.Parallel()
	read := tool.Spec{Name: "look", Class: agent.ClassRead, Risk: agent.RiskLow}
	pay := tool.Spec{Name: "pay", Class: agent.ClassOnce, Risk: agent.RiskHigh}
	for _, tt := range []struct {
		name, policy string
		spec         tool.Spec
		want         string
	}{
		{"no policy, a read", "", read, "allow no-rule"},
		{"no policy, an effect", "", pay, "ask no-rule"},
		{"another tool's rule", `rules: [{name: a, when: tool == "send" && args.n > 1, then: allow}]`, pay, "ask no-rule"},
		{"by arguments", `rules: [{name: a, when: tool == "pay" && args.n > 1, then: allow}]`, pay, "allow a, ask no-rule"},
		{"always", `rules: [{name: a, when: risk == "high", then: deny}]`, pay, "deny a"},
		{"the first that must match hides the rest", `rules: [{name: a, when: args.n > 1, then: ask}, {name: b, when: tool == "pay", then: allow}, {name: c, then: deny}]`, pay, "ask a, allow b"},
		{"an alternative", `rules: [{name: a, when: tool == "send" || args.n > 1, then: allow}]`, pay, "allow a, ask no-rule"},
		{"a name in text", `rules: [{name: a, when: 'tool == "args && x"', then: allow}]`, pay, "allow a, ask no-rule"},
		{"plan", "posture: plan, rules: [{name: a, then: allow}]", pay, "deny posture-plan"},
		{"plan, a read", "posture: plan, rules: [{name: a, then: allow}]", read, "allow a"},
		{"ask", "posture: ask, rules: [{name: a, then: allow}]", pay, "ask posture-ask"},
		{"the agent narrows", `rules: [{name: a, then: allow}]}, agent: {rules: [{name: b, when: args.n > 1, then: deny}]`, pay, "deny hello/b, allow a"},
		{"the agent cannot widen", `rules: [{name: a, then: deny}]}, agent: {rules: [{name: b, then: allow}]`, pay, "deny a"},
	} {
		text := strings.Replace(least, "Say hello.", "Say hello., policy: {}", 1)
		operator, own, _ := strings.Cut(tt.policy, "}, agent: {")
		text = strings.Replace(text, "policy: {}", "policy: {"+own+"}", 1) + "policy: {" + operator + "}\n"
		c, err := parseWith(nil, t.TempDir(), text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, v := range newOutlook(c.policyConfig()).of("hello", tt.spec) {
			got = append(got, fmt.Sprint(v.Decision, " ", v.Rule))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
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
	pay := tool.Spec{Name: "pay", Class: agent.ClassOnce, Risk: agent.RiskHigh}
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
			can := newOutlook(c).of("hello", pay)
			for _, args := range []string{`{"n":1}`, `{"n":2}`} {
				v, _ := p.Decide(policy.Request{
					Agent: agent.Definition{Name: "hello", Tools: []agent.ToolRef{{Name: "pay"}}},
					Tool:  "pay", Class: pay.Class, Risk: pay.Risk, Args: args,
				})
				if !(VerdictReport{Can: can}).may(v.Decision) {
					t.Errorf("%q, %q: %s of %s is not among %v", first, second, v.Decision, args, can)
				}
			}
		}
	}
}
