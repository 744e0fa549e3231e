package worker

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// A PolicyCheck is what a check of the policy alone says.
type PolicyCheck struct {
	File     string        `json:"file,omitempty"`
	Serial   int64         `json:"serial"`
	Policy   *PolicyReport `json:"policy,omitempty"`
	Problems []Problem     `json:"problems"`
	Hints    []string      `json:"hints,omitempty"`
}

// CheckPolicy says what the policy is, without a server, a key or a store: a configuration of [LoadPolicy] is
// enough. Tools of MCP servers are not looked at. The tools are those that the program adds.
func (c *Config) CheckPolicy(own ...tool.Tool) *PolicyCheck {
	r := &PolicyCheck{File: c.Path(), Serial: c.Serial, Problems: []Problem{}}
	d := c.problemsAt()
	set := c.toolSet(d, extras{own: own}, nil)
	agents := map[string]agent.Definition{}
	for _, name := range sortedKeys(c.Agents) {
		agents[name] = c.define(d, name, set, nil)
	}
	r.Problems = append(r.Problems, sortProblems(d.problems)...)
	r.Policy = c.policyReport(set, agents)
	r.Hints = c.policyHints(r.Policy)
	return r
}

// OK says whether nothing is wrong.
func (r *PolicyCheck) OK() bool { return len(r.Problems) == 0 }

// WriteText prints the check for a person.
func (r *PolicyCheck) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration  %s, serial %d\n", orDash(r.File), r.Serial)
	r.Policy.write(&b)
	conclude(&b, r.Hints, r.Problems, "the policy can be used; holdfast config check looks at everything else")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Config) policyReport(set *tool.Set, agents map[string]agent.Definition) *PolicyReport {
	p := c.policyConfig()
	r := &PolicyReport{
		Version: c.source.policy.Version().Short(), Posture: p.Posture, Rules: []RuleReport{},
		Approval: reportAsking(p.Approval), Approvers: []ApproverReport{}, Verdicts: []VerdictReport{},
		SelfApproval: *p.SelfApproval, Unsigned: "refuse",
		Duplicates: p.Duplicates, Uncertain: p.Uncertain, OnFailure: p.OnFailure,
		Upgrade: c.Upgrade, Settle: p.Rights.Settle, Compensate: p.Rights.Compensate, Fork: p.Rights.Fork,
	}
	if p.AcceptUnsigned {
		r.Unsigned = "accept"
	}
	r.addRules("", p.Rules, p.Approval)
	for _, name := range sortedKeys(p.Agents) {
		l := p.Agents[name]
		if l.Posture != "" {
			r.Agents = append(r.Agents, LayerReport{Agent: name, Posture: l.Posture})
		}
		r.addRules(name+"/", l.Rules, p.Approval)
	}
	for _, name := range sortedKeys(p.Approvers) {
		r.Approvers = append(r.Approvers, reportApprover(name, p.Approvers[name], time.Now()))
	}
	o, err := c.source.policy.Outlook()
	if err != nil {
		return r // the language of conditions is not there, so neither is a policy
	}
	for _, name := range sortedKeys(agents) {
		for _, ref := range agents[name].Tools {
			if t, ok := set.Lookup(ref.Name); ok {
				spec := t.Spec()
				r.Verdicts = append(r.Verdicts, VerdictReport{Agent: name, Tool: ref.Name, Can: o.Of(policy.Request{
					Agent: agents[name], Tool: spec.Name, Class: spec.Class, Risk: spec.Risk,
				})})
			}
		}
	}
	return r
}

func (r *PolicyReport) addRules(prefix string, rules []policy.Rule, otherwise policy.Asking) {
	for _, one := range rules {
		rule := RuleReport{Name: prefix + one.Name, When: one.When, Then: one.Then}
		if one.Then == agent.DecisionAsk {
			a := reportAsking(one.Approval.Over(otherwise))
			rule.Approval = &a
		}
		r.Rules = append(r.Rules, rule)
	}
}

func reportAsking(a policy.Asking) AskingReport {
	out := AskingReport{By: a.By, Quorum: a.Quorum, Expires: agent.Duration(a.Expires)}
	if a.Escalate != nil {
		out.EscalateAfter, out.EscalateTo = agent.Duration(a.Escalate.After), a.Escalate.To
	}
	return out
}

func reportApprover(name string, a policy.Approver, now time.Time) ApproverReport {
	out := ApproverReport{Name: name, Groups: a.Groups, Keys: []KeyReport{}}
	for _, k := range a.Keys {
		key := KeyReport{
			Fingerprint: ssh.FingerprintSHA256(k.Key), Type: k.Key.Type(), Comment: k.Comment, Expires: k.Expires,
		}
		switch {
		case k.Revoked:
			key.State = "revoked"
		case !k.Expires.IsZero() && !now.Before(k.Expires):
			key.State = "expired"
		}
		out.Keys = append(out.Keys, key)
	}
	return out
}

// policyHints says what of the policy works and is yet seldom meant.
func (c *Config) policyHints(p *PolicyReport) []string {
	var out []string
	if c.Policy.AcceptUnsigned {
		out = append(out, "unsigned: accept: whoever reaches Temporal can decide under anybody's name; take it out where more than one person does")
	}
	if open := p.openWhenFailing(); len(open) > 0 {
		out = append(out, fmt.Sprintf("a condition of %s that cannot be evaluated asks by the default approval, and anybody may give that; "+
			"name people in policy.approval too", clipList(open)))
	}
	var asks, denied []string
	for _, v := range p.Verdicts {
		switch {
		case v.may(agent.DecisionAllow):
		case v.may(agent.DecisionAsk):
			asks = append(asks, v.Agent+": "+v.Tool)
		default:
			denied = append(denied, v.Agent+": "+v.Tool)
		}
	}
	if len(asks) > 0 {
		out = append(out, fmt.Sprintf("no rule allows %s: each call waits for a person", clipList(asks)))
	}
	if len(denied) > 0 {
		out = append(out, fmt.Sprintf("every call of %s is denied; take it off the agent's list if that is meant", clipList(denied)))
	}
	return out
}

// openWhenFailing names rules that allow by what a model sends, where other rules name who is to be asked: a call that
// such a condition cannot be evaluated for is asked about by the default approval, which names nobody.
func (p *PolicyReport) openWhenFailing() []string {
	named := slices.ContainsFunc(p.Rules, func(r RuleReport) bool { return r.Approval != nil && len(r.Approval.By) > 0 })
	if len(p.Approval.By) > 0 || !named {
		return nil
	}
	var out []string
	for _, r := range p.Rules {
		if r.Then == agent.DecisionAllow && argsUsed.MatchString(r.When) {
			out = append(out, r.Name)
		}
	}
	return out
}

var argsUsed = regexp.MustCompile(`\bargs\b`)

var (
	toolEquals  = regexp.MustCompile(`\btool\s*[=!]=\s*("[^"]*"|'[^']*')`)
	toolAmong   = regexp.MustCompile(`\btool\s+in\s*\[([^\]]*)\]`)
	textLiteral = regexp.MustCompile(`"[^"]*"|'[^']*'`)
)

// strangers says which rules speak of tools that there are not: such a rule never matches, or always.
func strangers(p *PolicyReport, set *tool.Set) []string {
	var out []string
	for _, r := range p.Rules {
		for _, name := range toolsNamed(r.When) {
			if _, ok := set.Lookup(name); ok {
				continue
			}
			out = append(out, fmt.Sprintf("rule %s speaks of the tool %q, which there is not; %sthere are: %s",
				r.Name, clip(name), meant(name, set.Names()), clipList(set.Names())))
		}
	}
	return out
}

// toolsNamed returns the tools whose names a condition has in the usual places.
func toolsNamed(when string) []string {
	var literals []string
	for _, m := range toolEquals.FindAllStringSubmatch(when, -1) {
		literals = append(literals, m[1])
	}
	for _, m := range toolAmong.FindAllStringSubmatch(when, -1) {
		literals = append(literals, textLiteral.FindAllString(m[1], -1)...)
	}
	var out []string
	for _, l := range literals {
		if name := l[1 : len(l)-1]; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
