package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

const (
	maxRules   = 200                  // in one layer
	maxWait    = 366 * 24 * time.Hour // for people
	rulePhrase = "1 to 64 letters, digits, points, underscores and hyphens"
)

// A checker gathers all that is wrong with a configuration.
type checker struct {
	c      *Config
	env    *cel.Env
	groups map[string][]string
	wrong  []error
}

func (k *checker) say(path, rule, format string, args ...any) {
	k.wrong = append(k.wrong, &RuleError{Path: path, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// choices checks what is one of a few words.
func (k *checker) choices(p *Policy) {
	k.oneOf("posture", p.posture, PosturePlan, PostureAsk, PostureAuto)
	k.oneOf("duplicates", p.duplicates, RepeatAsk, RepeatAllow, RepeatDeny)
	k.oneOf("uncertain", p.uncertain, DoubtWait, DoubtTell)
	k.oneOf("on_failure", p.onFailure, agent.UnwindKeep, agent.UnwindCompensate, agent.UnwindAsk)
	if !p.selfApproval && !p.acceptUnsigned && len(p.mayEver(Asking{})) == 0 {
		k.say("self_approval", "", "false means nothing while no approver has a key: add keys under approvers")
	}
}

func (k *checker) oneOf(path string, got any, words ...any) {
	text := make([]string, 0, len(words))
	for _, w := range words {
		if fmt.Sprint(w) == fmt.Sprint(got) {
			return
		}
		if fmt.Sprint(w) != "" {
			text = append(text, fmt.Sprint(w))
		}
	}
	k.say(path, "", "%q is not known: use one of %s", fmt.Sprint(got), strings.Join(text, ", "))
}

// rules checks a layer's rules; prefix goes before their names in verdicts.
func (k *checker) rules(path, prefix string, rules []Rule, p *Policy) []rule {
	if len(rules) > maxRules {
		k.say(path, "", "%d rules; %d is the most", len(rules), maxRules)
		return nil
	}
	named := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	var out []rule
	seen, always := map[string]bool{}, ""
	for i, r := range rules {
		at := fmt.Sprintf("%s/%d", path, i)
		switch {
		case !named.MatchString(r.Name):
			k.say(at+"/name", r.Name, "a rule's name has %s, and begins with a letter or digit", rulePhrase)
		case slices.Contains(reserved(), r.Name):
			k.say(at+"/name", r.Name, "this name is taken by a rule that every policy has: use another")
		case seen[r.Name]:
			k.say(at+"/name", r.Name, "another rule has this name: verdicts could not tell them apart")
		}
		seen[r.Name] = true
		if always != "" {
			k.say(at, r.Name, "this rule is never reached: rule %q before it has no condition", always)
		}
		if always == "" && r.When == "" {
			always = r.Name
		}
		out = append(out, k.rule(at, prefix, r, p))
	}
	return out
}

func (k *checker) rule(at, prefix string, r Rule, p *Policy) rule {
	out := rule{name: prefix + r.Name, when: r.When, then: r.Then}
	switch r.Then {
	case agent.DecisionAllow, agent.DecisionAsk, agent.DecisionDeny:
	case "":
		k.say(at+"/then", r.Name, "it does not say what to do: add then: allow, ask or deny")
	default:
		k.say(at+"/then", r.Name, "%q is not known: use allow, ask or deny", r.Then)
	}
	if r.When != "" {
		var wrong []*RuleError
		out.program, wrong = compile(k.env, r.When)
		for _, e := range wrong {
			e.Path, e.Rule = at+"/when", r.Name
			k.wrong = append(k.wrong, e)
		}
	}
	stated := len(r.Approval.By) > 0 || r.Approval.Quorum != 0 || r.Approval.Expires != 0 || r.Approval.Escalate != nil
	if stated && r.Then != agent.DecisionAsk {
		k.say(at+"/approval", r.Name, "only a rule with then: ask has an approval")
	}
	before := len(k.wrong)
	out.asking = k.asking(at+"/approval", r.Name, r.Approval)
	if stated && len(k.wrong) == before {
		k.possible(at+"/approval", r.Name, out.asking.Over(p.approval), p)
	}
	return out
}

// asking checks a and resolves its names.
func (k *checker) asking(path, rule string, a Asking) Asking {
	out := Asking{By: k.names(path+"/by", rule, a.By), Quorum: a.Quorum, Expires: a.Expires}
	if a.Quorum < 0 || a.Quorum > 100 {
		k.say(path+"/quorum", rule, "%d people: use 1 to 100", a.Quorum)
	}
	if a.Expires < 0 || a.Expires > maxWait {
		k.say(path+"/expires", rule, "%s: use a duration up to a year, such as 24h", a.Expires)
	}
	if e := a.Escalate; e != nil {
		out.Escalate = &Escalation{After: e.After, To: k.names(path+"/escalate/to", rule, e.To)}
		if e.After <= 0 || e.After > maxWait {
			k.say(path+"/escalate/after", rule, "%s: use a duration up to a year, such as 1h", e.After)
		}
		if len(e.To) == 0 {
			k.say(path+"/escalate/to", rule, "nobody is named: add approvers or groups")
		}
	}
	return out
}

// possible checks a complete asking: that people exist who can give what it asks for.
func (k *checker) possible(path, rule string, a Asking, p *Policy) {
	if a.Escalate != nil {
		if len(a.By) == 0 {
			k.say(path+"/escalate", rule, "anybody may decide from the start: name approvers in by, or leave escalate out")
		}
		if a.Escalate.After >= a.Expires {
			k.say(path+"/escalate/after", rule, "it would expire after %s, before it escalates", a.Expires)
		}
	}
	if p.acceptUnsigned || len(a.By) == 0 && a.Quorum <= 1 {
		return
	}
	if n := len(p.mayEver(a)); n < a.Quorum {
		k.say(path, rule, "%d approvals are needed and %d of those who may decide have a key that is not revoked: add keys "+
			"under approvers, or unsigned: accept on a machine of one person", a.Quorum, n)
	}
}

// right checks who may do something beside approving.
func (k *checker) right(path string, names []string) []string {
	out := k.names(path, "", names)
	able := func(name string) bool { return k.c.Approvers[name].able() }
	if len(out) > 0 && !k.c.AcceptUnsigned && !slices.ContainsFunc(out, able) {
		k.say(path, "", "none of them has a key that is not revoked: add keys under approvers")
	}
	return out
}

// names resolves groups. A name that nobody has is an error, and so is a person who can prove nothing.
func (k *checker) names(path, rule string, names []string) []string {
	var out []string
	for i, name := range names {
		at := fmt.Sprintf("%s/%d", path, i)
		a, person := k.c.Approvers[name]
		members, group := k.groups[name]
		switch {
		case person && len(a.Keys) == 0 && !k.c.AcceptUnsigned:
			k.say(at, rule, "approver %q has no key, and without a signature anybody could claim the name", name)
		case person:
			out = append(out, name)
		case group:
			out = append(out, members...)
		default:
			k.say(at, rule, "%q is no approver and no group: add it under approvers", name)
		}
	}
	return sorted(out)
}

// visible says whether a name shows what it is.
func visible(name string) bool {
	return name != "" && len(name) <= agent.MaxName && approval.Visible(name) == name && strings.TrimSpace(name) == name
}
