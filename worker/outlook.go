package worker

import (
	"regexp"
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// A PossibleVerdict is one that policy may come to, and by which rule.
type PossibleVerdict struct {
	Decision agent.Decision `json:"decision"`
	Rule     string         `json:"rule"`
}

// An outlook says what policy may make of calls before anything is known of their arguments: which of its rules can
// match a tool at all. That a condition which fails asks instead of allowing is left out: it may happen to every one.
type outlook struct {
	config policy.Config
	terms  map[policyRule][]term
}

// A term is one part of a condition, all of which must hold. One that is known without arguments is the only
// rule of a policy of its own, so that the same code decides about it; of another alone is nil.
type term struct{ alone *policy.Policy }

type policyRule struct{ agent, rule string }

// ofTheCall finds what of a condition is known only when a call is made.
var ofTheCall = regexp.MustCompile(`\b(args|resource|session|actor)\b`)

func newOutlook(c policy.Config) *outlook {
	o := &outlook{config: c, terms: map[policyRule][]term{}}
	o.add("", c.Rules)
	for name, l := range c.Agents {
		o.add(name, l.Rules)
	}
	return o
}

func (o *outlook) add(agentName string, rules []policy.Rule) {
	for _, r := range rules {
		for _, text := range split(r.When) {
			var one term
			if !ofTheCall.MatchString(text) {
				p, err := policy.New(policy.Config{Rules: []policy.Rule{{Name: termName, When: text, Then: agent.DecisionDeny}}})
				if err == nil { // the whole was checked before
					one.alone = p
				}
			}
			at := policyRule{agentName, r.Name}
			o.terms[at] = append(o.terms[at], one)
		}
	}
}

const termName = "term"

// split splits a condition where && joins its terms outside of brackets and texts. One with an alternative there is
// a single term.
func split(when string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(when); i++ {
		switch c := when[i]; {
		case c == '"' || c == '\'':
			for i++; i < len(when) && when[i] != c; i++ {
				if when[i] == '\\' {
					i++
				}
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case depth == 0 && (c == '|' || c == '?'):
			return []string{when}
		case depth == 0 && c == '&' && i > from && when[i-1] == '&':
			out, from = append(out, when[from:i-1]), i+1
		}
	}
	return append(out, when[from:])
}

// of returns what policy may decide about an agent's calls of a tool, in the order of the rules.
func (o *outlook) of(name string, spec tool.Spec) []PossibleVerdict {
	r := policy.Request{
		Agent: agent.Definition{Name: name, Tools: []agent.ToolRef{{Name: spec.Name}}},
		Tool:  spec.Name, Class: spec.Class, Risk: spec.Risk,
	}
	own := o.config.Agents[name]
	nothing := PossibleVerdict{Decision: agent.DecisionAsk, Rule: policy.RuleNoRule}
	if spec.Class == agent.ClassRead {
		nothing.Decision = agent.DecisionAllow
	}
	first := o.posture(own.Posture, spec.Class)
	var out []PossibleVerdict
	for _, operator := range o.matching("", "", o.config.Rules, r, nothing) {
		for _, narrower := range o.matching(name, name+"/", own.Rules, r, PossibleVerdict{}) {
			v := stricter(stricter(first, operator), narrower)
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

func (o *outlook) posture(own policy.Posture, class agent.Class) PossibleVerdict {
	has := func(p policy.Posture) bool { return o.config.Posture == p || own == p }
	switch {
	case class == agent.ClassRead:
	case has(policy.PosturePlan):
		return PossibleVerdict{agent.DecisionDeny, policy.RulePosturePlan}
	case has(policy.PostureAsk):
		return PossibleVerdict{agent.DecisionAsk, policy.RulePostureAsk}
	}
	return PossibleVerdict{}
}

// matching returns what the rules of a layer may say, and otherwise where none needs to match.
func (o *outlook) matching(agentName, prefix string, rules []policy.Rule, r policy.Request, otherwise PossibleVerdict) []PossibleVerdict {
	var out []PossibleVerdict
	for _, one := range rules {
		can, must := matches(o.terms[policyRule{agentName, one.Name}], r)
		if can {
			out = append(out, PossibleVerdict{one.Then, prefix + one.Name})
		}
		if must {
			return out
		}
	}
	return append(out, otherwise)
}

// matches says whether a condition can hold for some arguments, and whether it does for all.
func matches(terms []term, r policy.Request) (can, must bool) {
	must = true
	for _, p := range terms {
		if p.alone == nil {
			must = false
			continue
		}
		if said, _ := p.alone.Decide(r); said.Rule != termName {
			return false, false
		}
	}
	return true, must
}

// stricter returns the stricter of two, the first on a tie.
func stricter(a, b PossibleVerdict) PossibleVerdict {
	rank := map[agent.Decision]int{agent.DecisionAllow: 1, agent.DecisionAsk: 2, agent.DecisionDeny: 3}
	if rank[b.Decision] > rank[a.Decision] {
		return b
	}
	return a
}
