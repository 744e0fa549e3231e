package policy

import "github.com/holdfast-run/holdfast/agent"

// RuleRepeat is the rule of an action that repeats an effect which committed, where Duplicates says ask.
const RuleRepeat = "duplicate"

// Repeated returns the verdict on an action that the rules allow and that repeats an effect which committed before
// in the session, where Duplicates says ask: people are asked as the policy's own approval says. Without anybody who
// could approve it is a denial, and there are no terms.
func (p *Policy) Repeated(r Request) (agent.Verdict, *agent.Terms) {
	v := agent.Verdict{Decision: agent.DecisionAsk, Rule: RuleRepeat, Policy: p.Version().Short()}
	terms, nobody, _ := p.terms(&r, nil)
	if terms == nil {
		v.Decision, v.Rule = agent.DecisionDeny, nobody
	}
	return v, terms
}
