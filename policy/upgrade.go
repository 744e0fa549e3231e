package policy

import "github.com/holdfast-run/holdfast/agent"

// RuleUpgrade is the rule of a request to go on with another definition of an agent. A rule of the operator's may have
// the same name: none of them is asked about [agent.ToolUpgrade], so that no verdict could be taken for the other's.
const RuleUpgrade = "upgrade"

// Upgrade returns the verdict on going on with another definition of an agent: people are asked as the policy's own
// approval says, whatever the rules say about the agent's tools. Without anybody who could approve it is a denial, and
// there are no terms. Of r it takes the resource, the risk and the senders.
func (p *Policy) Upgrade(r Request) (agent.Verdict, *agent.Terms) {
	v := agent.Verdict{Decision: agent.DecisionDeny, Rule: RuleNoPolicy, Policy: p.Version().Short()}
	if p.Version() == "" {
		return v, nil
	}
	terms, nobody, _ := p.terms(&r, nil)
	if terms == nil {
		v.Rule = nobody
		return v, nil
	}
	v.Decision, v.Rule = agent.DecisionAsk, RuleUpgrade
	return v, terms
}
