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
	d := desk{def: def, scope: scope, senders: senders}
	return s.Policy.Explain(d.request(spec, args))
}

// Resource returns what a call with canonical arguments touches, by its tool's declaration; "" where that says nothing.
func Resource(spec tool.Spec, args string) string { return resource(spec.Resource, args) }
