package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// A Judgement is a decision to judge, with what it is judged by.
type Judgement struct {
	Scope    agent.Scope
	Request  agent.ApprovalRequest
	Decision agent.ApprovalDecision
	At       time.Time       // when the server took the signal
	Given    []agent.Decided // approvals of the same request that were accepted before
	Senders  []agent.Actor   // of the turn's messages
	// Verdict and Terms are those of the policy in force on the request's action. Without Terms the
	// request's own count.
	Verdict agent.Verdict
	Terms   *agent.Terms
}

// Judge says whether a decision counts, and by whom it is. Its error says why not, in words for the approver and
// for the record; it is a [*Refused]. It does not look at edited arguments: they make another action.
func (p *Policy) Judge(j Judgement) (agent.Decided, error) {
	r, d := &j.Request, &j.Decision
	if err := wellFormed(d); err != nil {
		return agent.Decided{}, err
	}
	switch {
	case p.Version() == "":
		return agent.Decided{}, refuse("there is no policy to judge it by")
	case d.ID != r.ID:
		return agent.Decided{}, refuse("it is for another request: this one is %q", r.ID)
	case d.Digest != r.Action:
		return agent.Decided{}, refuse("its digest is not that of the action that waits, %s: look at the request again", r.Action)
	case j.At.IsZero():
		return agent.Decided{}, refuse("it is not known when the server took it")
	case !r.ExpiresAt.IsZero() && j.At.After(r.ExpiresAt):
		return agent.Decided{}, refuse("it is late: the request expired at %s", stamp(r.ExpiresAt))
	case !d.Time.IsZero() && d.Time.Before(r.RequestedAt.Add(-skew)):
		return agent.Decided{}, refuse("its time %s is before the request's, %s", stamp(d.Time), stamp(r.RequestedAt))
	case d.Choice == agent.ChoiceApprove && j.Verdict.Decision == agent.DecisionDeny:
		return agent.Decided{}, refuse("the policy in force denies the action (%s)", j.Verdict.Rule)
	}
	terms := j.Terms
	if terms == nil {
		terms = &r.Terms
	}
	w := word{scope: j.Scope, terms: terms, asked: r.RequestedAt, senders: j.Senders, decision: d, at: j.At}
	key, err := p.weigh(w)
	if err != nil {
		return agent.Decided{}, err
	}
	if d.Choice == agent.ChoiceApprove && slices.ContainsFunc(j.Given, func(g agent.Decided) bool { return same(g.Approver, d.Approver) }) {
		return agent.Decided{}, refuse("%q has approved it already: %d different people are needed", d.Approver, terms.Quorum)
	}
	return agent.Decided{ApprovalDecision: *d, At: j.At, Claimed: key == "", Key: key}, nil
}

// A word is somebody's decision with what it is weighed by.
type word struct {
	scope    agent.Scope
	terms    *agent.Terms
	asked    time.Time
	senders  []agent.Actor
	decision *agent.ApprovalDecision
	at       time.Time
	// edits says that the word made the action that it is now for out of another one, whose escalation was
	// looked at when it was given.
	edits bool
}

// weigh says whether the person may decide, and returns the fingerprint of the key that proves it, "" if the name
// is only claimed.
func (p *Policy) weigh(w word) (key string, err error) {
	d := w.decision
	sent := slices.ContainsFunc(w.senders, func(s agent.Actor) bool { return same(s.Name, d.Approver) })
	if d.Choice != agent.ChoiceCancel || !sent { // whoever sent the message may always withdraw
		if err := entitled(w); err != nil {
			return "", err
		}
		if !p.selfApproval || w.terms.NotSender {
			if err := p.notSender(w, sent); err != nil {
				return "", err
			}
		}
	}
	needed := p.needsSignature(w.terms) || !p.acceptUnsigned && (w.terms.Signed || !p.selfApproval)
	return p.prove(proof{
		by: d.Approver, signature: d.Signature, signed: d.Time, at: w.at, needed: needed,
		bytes: func() []byte { return approval.DecisionBytes(w.scope, *d) },
	})
}

// entitled says whether the terms name the person, by the time of the decision.
func entitled(w word) error {
	t, name := w.terms, w.decision.Approver
	if len(t.By) == 0 || slices.Contains(t.By, name) {
		return nil
	}
	if t.EscalateAfter > 0 && slices.Contains(t.EscalateTo, name) {
		from := w.asked.Add(t.EscalateAfter.Std())
		if w.edits || !w.at.Before(from) {
			return nil
		}
		return refuse("%q may decide it only from %s, when it escalates", name, stamp(from))
	}
	return refuse("%q is not among those who may decide it: %s", name, strings.Join(t.By, ", "))
}

func (p *Policy) notSender(w word, sent bool) error {
	if sent {
		return refuse("%q sent the message that led to it, and policy wants somebody else to decide", w.decision.Approver)
	}
	for _, s := range w.senders {
		if !s.Signed && !p.acceptUnsigned {
			return refuse("policy wants somebody else than the sender to decide, and nothing proves who sent the message")
		}
	}
	return nil
}

const maxID = 512 // bytes of a request's id

// wellFormed bounds what will be shown and kept.
func wellFormed(d *agent.ApprovalDecision) error {
	switch d.Choice {
	case agent.ChoiceApprove, agent.ChoiceDecline, agent.ChoiceCancel:
	default:
		return refuse("the decision %.40q is not known: use approve, decline or cancel", d.Choice)
	}
	switch {
	case len(d.ID) > maxID:
		return refuse("its id has %d bytes; %d is the most", len(d.ID), maxID)
	case len(d.Args) > agent.MaxDecision:
		return refuse("its arguments have %d bytes; %d is the most", len(d.Args), agent.MaxDecision)
	case d.Args != "" && d.Choice != agent.ChoiceApprove:
		return refuse("only an approval can have edited arguments")
	}
	return statement(d.Approver, d.Reason, d.Signature, d.Ref)
}

// same compares names as people do. Approvers never differ only in case.
func same(a, b string) bool { return strings.EqualFold(a, b) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
