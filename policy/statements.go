package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// JudgeSettlement says whether a person's settlement of an effect counts, and by whom it is: "alice", or
// "alice (claimed)". Its error is a [*Refused]. A worker's settlement, with a key alone, is not its matter.
func (p *Policy) JudgeSettlement(s agent.Scope, x agent.Settlement, at time.Time) (by string, err error) {
	switch {
	case x.Outcome != agent.StateCommitted && x.Outcome != agent.StateFailed:
		return "", refuse("the outcome %.40q cannot be said by a person: use committed or failed", x.Outcome)
	case strings.TrimSpace(x.Evidence) == "":
		return "", refuse("it has no evidence: say what you saw, and where")
	case len(x.Evidence) > agent.MaxEvidence:
		return "", refuse("its evidence has %d bytes; %d is the most", len(x.Evidence), agent.MaxEvidence)
	}
	if err := statement(x.Approver, "", x.Signature, x.Ref); err != nil {
		return "", err
	}
	return p.right("settle an effect", func(p *Policy) []string { return p.rights.Settle }, proof{
		by: x.Approver, signature: x.Signature, signed: x.Time, at: at,
		bytes: func() []byte { return approval.SettlementBytes(s, x) },
	})
}

// JudgeCompensate says whether an order to compensate counts, and by whom it is, as [Policy.JudgeSettlement] does.
func (p *Policy) JudgeCompensate(s agent.Scope, c agent.Compensate, at time.Time) (by string, err error) {
	if err := statement(c.Approver, c.Reason, c.Signature, c.Ref); err != nil {
		return "", err
	}
	return p.right("order compensations", func(p *Policy) []string { return p.rights.Compensate }, proof{
		by: c.Approver, signature: c.Signature, signed: c.Time, at: at,
		bytes: func() []byte { return approval.CompensateBytes(s, c) },
	})
}

// JudgeFork says whether a fork counts that makes a session of that id, with that agent, and by whom it is, as
// [Policy.JudgeSettlement] does. At is when the session was started. The life of the new session is not known to
// whoever signs; a session id is started once.
func (p *Policy) JudgeFork(session, agentName string, f agent.Fork, at time.Time) (by string, err error) {
	if err := statement(f.Approver, f.Reason, f.Signature, ""); err != nil {
		return "", err
	}
	return p.right("fork a session", func(p *Policy) []string { return p.rights.Fork }, proof{
		by: f.Approver, signature: f.Signature, signed: f.Time, at: at,
		bytes: func() []byte { return approval.ForkBytes(session, agentName, f) },
	})
}

// right judges what needs a right. An order that was signed long ago does not count: it could be a copy, and
// another run of the same order would do something again.
func (p *Policy) right(what string, who func(*Policy) []string, x proof) (by string, err error) {
	if p.Version() == "" {
		return "", refuse("there is no policy to judge it by")
	}
	names := who(p)
	if len(names) > 0 && !slices.Contains(names, x.by) {
		return "", refuse("%q is not among those who may %s: %s", x.by, what, strings.Join(names, ", "))
	}
	x.needed = len(names) > 0 && !p.acceptUnsigned
	key, err := p.prove(x)
	switch {
	case err != nil:
		return "", err
	case key == "":
		return agent.Who(x.by, true), nil
	case x.signed.Before(x.at.Add(-maxAge)):
		return "", refuse("it was signed at %s, more than %s ago: sign it again", stamp(x.signed), maxAge)
	}
	return x.by, nil
}

// Identify returns who sent a message. Without a signature the name is only claimed; a signature that does not
// prove it is an error, a [*Refused]. At is when the message was taken.
func (p *Policy) Identify(session string, m agent.Message, at time.Time) (agent.Actor, error) {
	if m.Signature == "" {
		return agent.Actor{Name: m.From}, nil
	}
	if p.Version() == "" {
		return agent.Actor{}, refuse("there is no policy to judge a signature by")
	}
	if err := statement(m.From, "", m.Signature, ""); err != nil {
		return agent.Actor{}, err
	}
	_, err := p.prove(proof{
		by: m.From, signature: m.Signature, signed: m.Time, at: at,
		bytes: func() []byte { return approval.MessageBytes(session, m) },
	})
	if err != nil {
		return agent.Actor{}, err
	}
	return agent.Actor{Name: m.From, Signed: true}, nil
}
