package policy

import "github.com/holdfast-run/holdfast/agent"

// An Explanation is a verdict and how it came about.
type Explanation struct {
	Policy string           `json:"policy"` // first 16 hex digits of the version
	Tool   string           `json:"tool"`
	Agent  string           `json:"agent"`
	Layers []ExplainedLayer `json:"layers"` // in order; all of them, also after a denial
	// Verdict is the strictest of the layers', and Why says which that is.
	Verdict agent.Verdict `json:"verdict"`
	Why     string        `json:"why"`
	Terms   *agent.Terms  `json:"terms,omitempty"`
}

// An ExplainedLayer is what one layer says.
type ExplainedLayer struct {
	Name string `json:"layer"` // "tools", "posture", "rules", "agent rules"
	// Decision is empty when the layer says nothing.
	Decision agent.Decision  `json:"decision,omitempty"`
	Rule     string          `json:"rule,omitempty"` // that decided
	Why      string          `json:"why"`
	Rules    []ExplainedRule `json:"rules,omitempty"`
}

// What became of a rule.
const (
	Matched    = "matched"
	NoMatch    = "no match"
	Failed     = "error"       // it counts as matched, never as no match
	NotReached = "not reached" // a rule before it decided
)

// An ExplainedRule is what became of one rule.
type ExplainedRule struct {
	Name   string         `json:"rule"`
	When   string         `json:"when,omitempty"`
	Then   agent.Decision `json:"then"`
	Result string         `json:"result"`
	Error  string         `json:"error,omitempty"` // why the condition failed
}

// Explain decides on r as [Policy.Decide] does and says why.
func (p *Policy) Explain(r Request) Explanation {
	v, terms := p.Decide(r)
	return Explanation{Policy: v.Policy, Tool: r.Tool, Agent: r.Agent.Name, Verdict: v, Terms: terms}
}

// String returns the explanation for a terminal.
func (e Explanation) String() string { return string(e.Verdict.Decision) + " by " + e.Verdict.Rule + "\n" }
