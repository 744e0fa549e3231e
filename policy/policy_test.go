package policy_test

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

func TestAnAgentMayUseWhatItListsAndNothingElse(t *testing.T) {
	t.Parallel()
	listed := agent.Definition{Tools: []agent.ToolRef{{Name: "get"}, {Name: "pay"}}}
	all, err := policy.New(policy.Config{Rules: []policy.Rule{{Name: "everything", Then: agent.DecisionAllow}}})
	if err != nil || !all.Version().Valid() {
		t.Fatalf("version %q, %v", all.Version(), err)
	}
	cases := []struct {
		name     string
		policy   *policy.Policy
		agent    agent.Definition
		tool     string
		decision agent.Decision
		rule     string
	}{
		{"listed", all, listed, "pay", agent.DecisionAllow, "everything"},
		{"not listed", all, listed, "refund", agent.DecisionDeny, policy.RuleNotListed},
		{"cyrillic a", all, listed, "p\u0430y", agent.DecisionDeny, policy.RuleNotListed},
		{"other case", all, listed, "Pay", agent.DecisionDeny, policy.RuleNotListed},
		{"no name", all, listed, "", agent.DecisionDeny, policy.RuleNotListed},
		{"no tools", all, agent.Definition{}, "pay", agent.DecisionDeny, policy.RuleNotListed},
		{"zero policy", &policy.Policy{}, listed, "pay", agent.DecisionDeny, policy.RuleNoPolicy},
		{"nil policy", nil, listed, "pay", agent.DecisionDeny, policy.RuleNoPolicy},
	}
	for _, c := range cases {
		want := agent.Verdict{Decision: c.decision, Rule: c.rule, Policy: c.policy.Version().Short()}
		if got, _ := c.policy.Decide(policy.Request{Agent: c.agent, Tool: c.tool}); got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}
