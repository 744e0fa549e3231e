package policy

import (
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"

	"github.com/holdfast-run/holdfast/agent"
)

// A Possible is a verdict that policy may come to, and by which rule.
type Possible struct {
	Decision agent.Decision `json:"decision"`
	Rule     string         `json:"rule"`
}

// An Outlook says what policy may make of calls before anything is known of their arguments: which of its rules can
// match a tool at all. That a condition which fails asks instead of allowing is left out, as is that nobody may be
// left to approve: both may happen to every call. It may be used by many goroutines.
type Outlook struct {
	policy *Policy
	terms  map[string][]cel.Program // by the rule's name; nil is known only when a call is made
}

// ofTheCall finds what of a condition is known only when a call is made.
var ofTheCall = regexp.MustCompile(`\b(args|resource|session|actor)\b`)

// Outlook returns the outlook of a policy.
func (p *Policy) Outlook() (*Outlook, error) {
	env, err := newEnv()
	if err != nil {
		return nil, err
	}
	o := &Outlook{policy: p, terms: map[string][]cel.Program{}}
	o.add(env, p.rules)
	for _, l := range p.agents {
		o.add(env, l.rules)
	}
	return o, nil
}

// add splits the conditions of rules into terms, all of which must hold.
func (o *Outlook) add(env *cel.Env, rules []rule) {
	for _, r := range rules {
		for _, text := range split(r.when) {
			var known cel.Program
			if !ofTheCall.MatchString(text) {
				known, _ = compile(env, text) // the whole was checked before
			}
			o.terms[r.name] = append(o.terms[r.name], known)
		}
	}
}

// split splits a condition where && joins its terms outside of brackets and texts. One with an alternative there is
// a single term, and none has none.
func split(when string) []string {
	if when == "" {
		return nil
	}
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

// Of returns what policy may decide about an agent's calls of a tool that it lists, in the order of the rules. Of r
// it takes the agent's name, the tool, its class and its risk.
func (o *Outlook) Of(r Request) []Possible {
	f := &facts{r: &r}
	own := o.policy.agents[r.Agent.Name]
	first := postureSays(stricterPosture(o.policy.posture, own.posture), class(&r))
	var out []Possible
	for _, operators := range o.matching(o.policy.rules, f, noRule(class(&r))) {
		for _, agents := range o.matching(own.rules, f, said{}) {
			s := strictest(first, operators, agents)
			if v := (Possible{s.decision, s.rule}); !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// matching returns what the rules of a layer may say, and otherwise where none needs to match.
func (o *Outlook) matching(rules []rule, f *facts, otherwise said) []said {
	var out []said
	for _, r := range rules {
		can, must := matches(o.terms[r.name], f)
		if can {
			out = append(out, said{decision: r.then, rule: r.name})
		}
		if must {
			return out
		}
	}
	return append(out, otherwise)
}

// matches says whether a condition can hold for some arguments, and whether it does for all.
func matches(terms []cel.Program, f *facts) (can, must bool) {
	must = true
	for _, known := range terms {
		if known == nil {
			must = false
			continue
		}
		if yes, err := holds(known, f); err == nil && !yes {
			return false, false
		}
	}
	return true, must
}
