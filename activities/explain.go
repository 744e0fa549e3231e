package activities

import (
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// Explain says what policy decides today about a call with canonical arguments, and why: what a model of that agent
// would be told in a turn with those senders. Nothing is asked, sent or recorded.
func (s *Snapshot) Explain(
	def agent.Definition, spec tool.Spec, args string, scope agent.Scope, senders []agent.Actor,
) policy.Explanation {
	return s.Policy.Explain(policy.Request{
		Agent: def, Tool: spec.Name, Class: spec.Class, Risk: spec.Risk, Args: args,
		Resource: resource(spec.Resource, args), Scope: scope, Senders: senders,
	})
}

// Resource returns what a call with canonical arguments touches, by its tool's declaration; "" where that says nothing.
func Resource(spec tool.Spec, args string) string { return resource(spec.Resource, args) }
