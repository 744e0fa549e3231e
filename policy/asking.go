package policy

import (
	"slices"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// terms returns what an approval takes, or, when nobody could ever give it, the name of the rule that denies and
// why: the model and the user learn it at once, not when the request expires.
func (p *Policy) terms(r *Request, layers []said) (t *agent.Terms, rule, why string) {
	a, some := p.asking(layers)
	if !some {
		return nil, RuleNobody, "the rules that ask name no approver in common"
	}
	t = &agent.Terms{
		Resource: r.Resource, Risk: r.Risk, By: a.By, Quorum: a.Quorum, Expires: agent.Duration(a.Expires),
		NotSender: !p.selfApproval,
	}
	if a.Escalate != nil {
		t.EscalateAfter, t.EscalateTo = agent.Duration(a.Escalate.After), a.Escalate.To
	}
	t.Signed = p.needsSignature(t)
	if !t.NotSender {
		return t, "", ""
	}
	left := p.mayEver(a)
	for _, s := range r.Senders {
		if !s.Signed && !p.acceptUnsigned {
			return nil, RuleUnsigned, "whoever sent the message may not approve, and the message has no signature that says who that is"
		}
		left = without(left, s.Name)
	}
	if !p.acceptUnsigned && len(left) < a.Quorum {
		return nil, RuleNobody, "without those who sent the messages too few people are left who may approve"
	}
	return t, "", ""
}

// needsSignature says whether a claimed name would make t mean nothing.
func (p *Policy) needsSignature(t *agent.Terms) bool {
	return !p.acceptUnsigned && (len(t.By) > 0 || t.Quorum > 1 || t.NotSender)
}

// asking returns what the rules that ask want, or else the default; of an operator's and an agent's rule the
// narrower in everything. It is false when both name approvers and have none in common.
func (p *Policy) asking(layers []said) (Asking, bool) {
	var stated []*Asking
	for _, s := range layers {
		if s.decision == agent.DecisionAsk && s.asking != nil {
			stated = append(stated, s.asking)
		}
	}
	switch len(stated) {
	case 0:
		return p.approval, true
	case 1:
		return stated[0].Over(p.approval), true
	}
	return narrower(stated[0], stated[1], p.approval)
}

// Over returns a with what it leaves out taken from d: what a rule's ask takes, given the policy's own.
func (a Asking) Over(d Asking) Asking {
	if len(a.By) == 0 {
		a.By = d.By
	}
	if a.Quorum == 0 {
		a.Quorum = d.Quorum
	}
	if a.Expires == 0 {
		a.Expires = d.Expires
	}
	if a.Escalate == nil && len(a.By) > 0 {
		a.Escalate = d.Escalate
	}
	return a
}

// narrower returns what satisfies both: the common approvers, the larger quorum, the earlier end, and an
// escalation only to those that both would have let decide by then. An agent's rule that names no approvers
// adds none to the operator's.
func narrower(operators, agents *Asking, d Asking) (Asking, bool) {
	a, b := operators.Over(d), agents.Over(d)
	if len(agents.By) == 0 {
		b.By, b.Escalate = nil, nil
	} else if len(operators.By) == 0 {
		a.By, a.Escalate = nil, nil
	}
	out := Asking{Quorum: max(a.Quorum, b.Quorum), Expires: min(a.Expires, b.Expires)}
	out.By = common(a.By, b.By)
	if (len(a.By) > 0 || len(b.By) > 0) && len(out.By) == 0 {
		return out, false
	}
	var after time.Duration
	for _, x := range []Asking{a, b} {
		if x.Escalate != nil {
			after = max(after, x.Escalate.After)
		}
	}
	to := common(a.late(), b.late())
	for _, name := range out.By {
		to = without(to, name)
	}
	if after > 0 && len(to) > 0 {
		out.Escalate = &Escalation{After: after, To: to}
	}
	return out, true
}

// late names who may decide when it has escalated; none is anybody.
func (a Asking) late() []string {
	if len(a.By) == 0 || a.Escalate == nil {
		return a.By
	}
	return sorted(append(slices.Clone(a.By), a.Escalate.To...))
}

// common returns the names in both, where an empty list is everybody.
func common(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var both []string
	for _, name := range a {
		if slices.Contains(b, name) {
			both = append(both, name)
		}
	}
	return both
}

func without(names []string, name string) []string {
	if !slices.Contains(names, name) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// mayEver names who could prove that they may decide, now or when it has escalated.
func (p *Policy) mayEver(a Asking) []string {
	names := a.late()
	if len(names) == 0 {
		for name := range p.people {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(sorted(slices.Clone(names)), func(n string) bool { return !p.people[n].able() })
}

// able says whether somebody has a key that is not revoked.
func (a Approver) able() bool {
	return slices.ContainsFunc(a.Keys, func(k Key) bool { return !k.Revoked })
}
