package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

func TestAnUpgradeIsAskedAboutAsThePolicysOwnApprovalSaysWhateverTheRulesSay(t *testing.T) {
	t.Parallel()
	no := false
	alice := []agent.Actor{{Name: "alice", Signed: true}}
	finance := policy.Asking{By: []string{"finance"}, Quorum: 2, Expires: time.Hour}
	for name, c := range map[string]struct {
		config  func(*policy.Config)
		senders []agent.Actor
		rule    string
		terms   *agent.Terms
	}{
		"nothing said":    {nil, alice, policy.RuleUpgrade, &agent.Terms{Quorum: 1, Expires: agent.Duration(policy.DefaultExpires)}},
		"denied by rules": {func(c *policy.Config) { c.Rules = []policy.Rule{{Name: "none", Then: agent.DecisionDeny}} }, alice, policy.RuleUpgrade, &agent.Terms{Quorum: 1, Expires: agent.Duration(policy.DefaultExpires)}},
		"allowed by rules": {func(c *policy.Config) {
			c.Rules = []policy.Rule{{Name: policy.RuleUpgrade, Then: agent.DecisionAllow}}
		}, alice, policy.RuleUpgrade, &agent.Terms{Quorum: 1, Expires: agent.Duration(policy.DefaultExpires)}},
		"reads only": {func(c *policy.Config) { c.Posture = policy.PosturePlan }, alice, policy.RuleUpgrade, &agent.Terms{Quorum: 1, Expires: agent.Duration(policy.DefaultExpires)}},
		"two of finance": {func(c *policy.Config) { c.Approval = finance }, alice, policy.RuleUpgrade, &agent.Terms{
			By: []string{"alice", "bob"}, Quorum: 2, Expires: agent.Duration(time.Hour), Signed: true,
		}},
		"two of finance, one of whom sent the message": {func(c *policy.Config) {
			c.Approval, c.SelfApproval = finance, &no
		}, alice, policy.RuleNobody, nil},
		"not the sender, whom nobody knows": {func(c *policy.Config) { c.SelfApproval = &no }, []agent.Actor{{Name: "erin"}}, policy.RuleUnsigned, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := shop(t)
			if c.config != nil {
				c.config(&config)
			}
			p := mustNew(t, config)
			want := agent.Verdict{Decision: agent.DecisionAsk, Rule: c.rule, Policy: p.Version().Short()}
			if c.terms == nil {
				want.Decision = agent.DecisionDeny
			} else {
				c.terms.Resource = "support"
			}
			v, terms := p.Upgrade(policy.Request{Tool: agent.ToolUpgrade, Class: agent.ClassRead, Resource: "support", Senders: c.senders})
			if diff := cmp.Diff(want, v) + cmp.Diff(c.terms, terms); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutAPolicyNobodyIsAskedAboutAnUpgrade(t *testing.T) {
	t.Parallel()
	for _, p := range []*policy.Policy{nil, {}} {
		v, terms := p.Upgrade(policy.Request{Tool: agent.ToolUpgrade})
		if v.Decision != agent.DecisionDeny || v.Rule != policy.RuleNoPolicy || terms != nil {
			t.Errorf("%+v, %+v", v, terms)
		}
	}
}
