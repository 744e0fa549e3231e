package policy

import "github.com/holdfast-run/holdfast/agent"

// RuleAllowListed is the rule of [AllowListed].
const RuleAllowListed = "allow-listed"

// AllowListed returns the policy with one rule: an agent may use the tools that its definition lists.
func AllowListed() *Policy {
	p := &Policy{
		posture: PostureAuto, selfApproval: true,
		rules:    []rule{{name: RuleAllowListed, then: agent.DecisionAllow}},
		approval: Asking{Quorum: 1, Expires: DefaultExpires},
	}
	p.version = p.digest()
	return p
}
