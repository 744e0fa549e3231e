package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// An Explanation is a verdict and how it came about.
type Explanation struct {
	Policy string           `json:"policy"` // first 16 hex digits of the version
	Agent  string           `json:"agent"`
	Tool   string           `json:"tool"`
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
	Error  string         `json:"error,omitempty"` // why the condition failed; bounded, safe to show
}

// Explain decides on r as [Policy.Decide] does and says why.
func (p *Policy) Explain(r Request) Explanation {
	v, terms, layers, why := p.decide(&r, true)
	e := Explanation{Policy: v.Policy, Tool: r.Tool, Agent: r.Agent.Name, Verdict: v, Why: why, Terms: terms}
	for _, s := range layers {
		e.Layers = append(e.Layers, ExplainedLayer{
			Name: s.layer, Decision: s.decision, Rule: s.rule, Why: s.why, Rules: s.rules,
		})
	}
	return e
}

// String returns the explanation for a terminal, in several lines.
func (e Explanation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s for %s: %s, by rule %s of policy %s\n",
		approval.Visible(e.Tool), approval.Visible(e.Agent), e.Verdict.Decision, e.Verdict.Rule, e.Policy)
	fmt.Fprintf(&out, "  because %s\n", e.Why)
	for _, l := range e.Layers {
		fmt.Fprintf(&out, "%-12s %-6s %s\n", l.Name, cmp.Or(l.Decision, "-"), l.Why)
		for _, r := range l.Rules {
			fmt.Fprintf(&out, "  %-11s %-6s %s", r.Result, r.Then, r.Name)
			if r.When != "" {
				fmt.Fprintf(&out, ": %s", approval.Visible(r.When))
			}
			out.WriteByte('\n')
			if r.Error != "" {
				fmt.Fprintf(&out, "              %s\n", r.Error)
			}
		}
	}
	if e.Terms != nil {
		out.WriteString(asked(e.Terms))
	}
	return out.String()
}

// asked says in a line what an approval takes.
func asked(t *agent.Terms) string {
	s := fmt.Sprintf("approval     %d of ", t.Quorum)
	if len(t.By) == 0 {
		s += "anybody"
	} else {
		s += strings.Join(t.By, ", ")
	}
	s += ", within " + t.Expires.String()
	if t.EscalateAfter > 0 {
		s += ", after " + t.EscalateAfter.String() + " also " + strings.Join(t.EscalateTo, ", ")
	}
	if t.NotSender {
		s += ", not by who sent the message"
	}
	if t.Signed {
		return s + ", signed\n"
	}
	return s + ", a claimed name is enough\n"
}

// shown is a text of a condition's error for a person: it can hold the model's values.
func shown(text string) string {
	const most = 300
	if text == "no such overload" {
		text += ": a value has another type than the condition uses it as"
	}
	if len(text) > most {
		text = text[:most] + "..."
	}
	return approval.Visible(text)
}
