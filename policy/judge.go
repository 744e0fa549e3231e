package policy

import (
	"errors"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

var errStub = errors.New("policy: not built yet")

// A Judgement is a decision to judge, with what it is judged by.
type Judgement struct {
	Scope    agent.Scope
	Request  agent.ApprovalRequest
	Decision agent.ApprovalDecision
	At       time.Time       // when the server took the signal
	Given    []agent.Decided // approvals of the same request that were accepted before
	Senders  []agent.Actor   // of the turn's messages
	// Verdict and Terms are those of the policy in force on the request's action.
	Verdict agent.Verdict
	Terms   *agent.Terms
}

// Judge says whether a decision counts. Its error says why not, as a [*Refused].
func (p *Policy) Judge(j Judgement) (agent.Decided, error) { return agent.Decided{}, errStub }

// Satisfied says whether a grant still authorises its action: each of its decisions is judged again, at its own
// time, under the policy in force, whose verdict and terms on the action are given. Its error says why not.
func (p *Policy) Satisfied(
	s agent.Scope, g agent.Grant, inForce agent.Verdict, terms *agent.Terms, senders []agent.Actor,
) error {
	return errStub
}

// JudgeSettlement says whether a person's settlement counts, and by whom it is: "alice" or "alice (claimed)".
func (p *Policy) JudgeSettlement(s agent.Scope, x agent.Settlement, at time.Time) (by string, err error) {
	return "", errStub
}

// JudgeCompensate says whether an order to compensate counts, and by whom it is.
func (p *Policy) JudgeCompensate(s agent.Scope, c agent.Compensate, at time.Time) (by string, err error) {
	return "", errStub
}

// Identify returns who sent a message. Without a signature the name is only claimed; a signature that is not
// From's is an error.
func (p *Policy) Identify(session string, m agent.Message, at time.Time) (agent.Actor, error) {
	if m.Signature != "" {
		return agent.Actor{}, errStub
	}
	return agent.Actor{Name: m.From}, nil
}
