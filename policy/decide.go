package policy

import (
	"cel.dev/cel-go/cel"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// Names of the rules that no file has, as verdicts carry them.
const (
	RuleNoPolicy     = "no-policy"       // there is no policy to decide by
	RuleNotListed    = "not-listed"      // the agent does not list the tool
	RuleBadArguments = "bad-arguments"   // the arguments are not canonical: nobody could say what was decided on
	RulePosturePlan  = "posture-plan"    // reads only
	RulePostureAsk   = "posture-ask"     // every effect asks
	RuleNoRule       = "no-rule"         // none of the operator's rules matches: reads are allowed, effects ask
	RuleUnsigned     = "sender-unsigned" // the sender may not approve, and nobody can say who that is
	RuleNobody       = "no-approver"     // it asks, and too few people are left who may approve
)

// reserved are the names that a rule of the operator's may not have.
func reserved() []string {
	return []string{
		RuleNoPolicy, RuleNotListed, RuleBadArguments, RulePosturePlan, RulePostureAsk, RuleNoRule, RuleUnsigned,
		RuleNobody, RuleRepeat,
	}
}

// A rule is a Rule that was checked.
type rule struct {
	name    string // as verdicts have it
	when    string
	program cel.Program // nil always holds
	then    agent.Decision
	asking  Asking // stated by the rule, names resolved
}

// A said is what a layer says; no decision is nothing.
type said struct {
	layer    string
	decision agent.Decision
	rule     string
	why      string
	asking   *Asking // the rule's own
	rules    []ExplainedRule
}

// Decide returns the verdict on r, and what an approval takes when it is to ask. It is safe for concurrent use,
// does no I/O and has no clock: equal versions decide equally.
func (p *Policy) Decide(r Request) (agent.Verdict, *agent.Terms) {
	v, terms, _, _ := p.decide(&r, false)
	return v, terms
}

// decide asks every layer; the strictest wins, the first on a tie. Rules are listed only to explain.
func (p *Policy) decide(r *Request, explain bool) (v agent.Verdict, terms *agent.Terms, layers []said, why string) {
	v = agent.Verdict{Decision: agent.DecisionDeny, Rule: RuleNoPolicy, Policy: p.Version().Short()}
	if p.Version() == "" {
		return v, nil, nil, "there is no policy"
	}
	f := &facts{r: r, actor: p.actor(r.Senders)}
	own := p.agents[r.Agent.Name]
	layers = []said{
		listed(r),
		postureSays(stricterPosture(p.posture, own.posture), class(r)),
		p.operatorSays(f, explain),
		rulesSay("agent rules", own.rules, f, explain),
	}
	s := strictest(layers...) // an allow is always the operator's: the layers before it never say one
	v.Decision, v.Rule, why = s.decision, s.rule, s.layer+": "+s.why
	if v.Decision == agent.DecisionAsk {
		var nobody, because string
		if terms, nobody, because = p.terms(r, layers); terms == nil {
			v.Decision, v.Rule, why = agent.DecisionDeny, nobody, because
		}
	}
	return v, terms, layers, why
}

// strictest returns the strictest of what layers say, the first on a tie.
func strictest(layers ...said) (out said) {
	for _, s := range layers {
		if rank(s.decision) > rank(out.decision) {
			out = s
		}
	}
	return out
}

// rank orders decisions by strictness; nothing said is the least.
func rank(d agent.Decision) int {
	switch d {
	case "":
		return 0
	case agent.DecisionAllow:
		return 1
	case agent.DecisionAsk:
		return 2
	}
	return 3
}

// listed compares names byte by byte: a look-alike is not listed. Arguments that are not canonical are refused
// here too, because readers could differ on what they say.
func listed(r *Request) said {
	s := said{layer: "tools", decision: agent.DecisionDeny, rule: RuleNotListed, why: "the agent does not list this tool"}
	for _, t := range r.Agent.Tools {
		if t.Name == r.Tool {
			s = said{layer: "tools", why: "the agent lists this tool"}
		}
	}
	if s.decision == "" && r.Args != "" {
		if canonical, err := approval.Canonical([]byte(r.Args)); err != nil || canonical != r.Args {
			s.decision, s.rule, s.why = agent.DecisionDeny, RuleBadArguments, "the arguments are not in their canonical form"
		}
	}
	return s
}

func stricterPosture(a, b Posture) Posture {
	for _, p := range []Posture{PosturePlan, PostureAsk} {
		if a == p || b == p {
			return p
		}
	}
	return PostureAuto
}

func postureSays(p Posture, c agent.Class) said {
	s := said{layer: "posture"}
	switch {
	case p == PostureAuto:
		s.why = "auto: the rules decide"
	case c == agent.ClassRead:
		s.why = string(p) + ": a read is not its matter"
	case p == PosturePlan:
		s.decision, s.rule, s.why = agent.DecisionDeny, RulePosturePlan, "plan: reads only"
	default:
		s.decision, s.rule, s.why = agent.DecisionAsk, RulePostureAsk, "ask: every effect asks"
	}
	return s
}

func (p *Policy) operatorSays(f *facts, explain bool) said {
	s := rulesSay("rules", p.rules, f, explain)
	if s.decision != "" {
		return s
	}
	none := noRule(class(f.r))
	none.layer, none.rules = s.layer, s.rules
	return none
}

// noRule is what the operator's layer says where none of its rules matches.
func noRule(c agent.Class) said {
	if c == agent.ClassRead {
		return said{rule: RuleNoRule, decision: agent.DecisionAllow, why: "no rule matches: reads are allowed"}
	}
	return said{rule: RuleNoRule, decision: agent.DecisionAsk, why: "no rule matches: effects ask"}
}

// rulesSay returns what the first rule that matches says. A condition that fails counts as matched, and an allow
// then asks: what could not be evaluated must not pass.
func rulesSay(layer string, rules []rule, f *facts, explain bool) said {
	s := said{layer: layer, why: "no rule matches"}
	for i := range rules {
		ru := &rules[i]
		seen := ExplainedRule{Name: ru.name, When: ru.when, Then: ru.then, Result: NotReached}
		if s.decision == "" {
			matches, err := true, error(nil)
			if ru.program != nil {
				matches, err = holds(ru.program, f)
			}
			seen.Result = NoMatch
			switch {
			case err != nil:
				seen.Result, seen.Error = Failed, shown(err.Error())
				s.decision, s.rule, s.why = ru.then, ru.name, "the condition of "+ru.name+" could not be evaluated"
				if ru.then == agent.DecisionAllow {
					s.decision = agent.DecisionAsk
				}
			case matches:
				seen.Result = Matched
				s.decision, s.rule, s.why = ru.then, ru.name, ru.name+" matches"
			}
			if s.decision == agent.DecisionAsk {
				s.asking = &ru.asking
			}
			if s.decision != "" && !explain {
				return s
			}
		}
		if explain {
			s.rules = append(s.rules, seen)
		}
	}
	return s
}

// actor is the name that a condition may rely on: the first sender's, if a signature proves it or the operator
// takes names as they are claimed.
func (p *Policy) actor(senders []agent.Actor) string {
	if len(senders) > 0 && (senders[0].Signed || p.acceptUnsigned) {
		return senders[0].Name
	}
	return ""
}
