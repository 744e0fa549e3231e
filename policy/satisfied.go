package policy

import (
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// Satisfied says whether a grant still authorises its action: each of its decisions is judged again, at its own
// time, under the policy in force, whose verdict and terms on the action are given, and distinct people must be
// enough for its quorum. Nil is yes; a [*Refused] says why the approval is void. Without terms the grant's own
// count.
//
// A decision that edited the arguments names the action that it was made of, so its digest proves nothing about
// the grant's action: that its arguments are those that are sent is the caller's to check.
func (p *Policy) Satisfied(
	s agent.Scope, g agent.Grant, inForce agent.Verdict, terms *agent.Terms, senders []agent.Actor,
) error {
	switch {
	case p.Version() == "":
		return refuse("there is no policy to judge it by")
	case inForce.Decision == agent.DecisionDeny:
		return refuse("the policy in force denies the action (%s)", inForce.Rule)
	}
	if terms == nil {
		terms = &g.Terms
	}
	var people []string
	var first error
	for i := range g.Decisions {
		d := &g.Decisions[i]
		switch err := p.stands(s, &g, d, terms, senders); {
		case err != nil && first == nil:
			first = err
		case err == nil && !slices.ContainsFunc(people, func(name string) bool { return same(name, d.Approver) }):
			people = append(people, d.Approver)
		}
	}
	if need := max(terms.Quorum, 1); len(people) < need {
		if first != nil {
			return first
		}
		return refuse("%d different people must approve it and %d did", need, len(people))
	}
	return nil
}

// stands judges one decision of a grant again.
func (p *Policy) stands(s agent.Scope, g *agent.Grant, d *agent.Decided, terms *agent.Terms, senders []agent.Actor) error {
	if err := wellFormed(&d.ApprovalDecision); err != nil {
		return err
	}
	edits := d.Args != "" && (d.ID != g.ID || d.Digest != g.Action)
	switch {
	case d.Choice != agent.ChoiceApprove:
		return refuse("a decision of %q is no approval", d.Approver)
	case edits && call(d.ID) != call(g.ID), !edits && (d.ID != g.ID || d.Digest != g.Action):
		return refuse("a decision of %q is for another action", d.Approver)
	case d.At.IsZero():
		return refuse("it is not known when the server took the decision of %q", d.Approver)
	case !g.Expires.IsZero() && d.At.After(g.Expires):
		return refuse("the decision of %q was late: the request expired at %s", d.Approver, stamp(g.Expires))
	case !edits && !d.Time.IsZero() && d.Time.Before(g.Requested.Add(-skew)):
		return refuse("the decision of %q has a time before the request's", d.Approver)
	}
	_, err := p.weigh(word{
		scope: s, terms: terms, asked: g.Requested, senders: senders, decision: &d.ApprovalDecision, at: d.At, edits: edits,
	})
	return err
}

// call is the part of a request's id that says which call of the session it is for: all before the action.
func call(id string) string { return id[:max(strings.LastIndexByte(id, '/'), 0)] }
