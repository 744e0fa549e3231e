package approval

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// Rule versions of what people sign. They stand in the bytes, so that a signature over one kind of statement can
// never be taken for another.
const (
	decisionRule   = "holdfast-decision-1"
	settlementRule = "holdfast-settlement-1"
	compensateRule = "holdfast-compensate-1"
	messageRule    = "holdfast-message-1"
	forkRule       = "holdfast-fork-1"
)

// DecisionBytes returns what an approver signs: the RFC 8785 form of the decision. Session is the scope, so that a
// decision is good for one life of a session only.
func DecisionBytes(s agent.Scope, d agent.ApprovalDecision) []byte {
	return envelope(map[string]any{
		"rule": text(decisionRule), "session": text(s.String()), "id": text(d.ID), "digest": text(string(d.Digest)),
		"decision": text(string(d.Choice)), "approver": text(d.Approver), "reason": text(d.Reason),
		"args": text(d.Args), "time": moment(d.Time),
	})
}

// SettlementBytes returns what a person signs who settles an effect.
func SettlementBytes(s agent.Scope, x agent.Settlement) []byte {
	return envelope(map[string]any{
		"rule": text(settlementRule), "session": text(s.String()), "key": text(x.Key),
		"outcome": text(string(x.Outcome)), "evidence": text(x.Evidence), "approver": text(x.Approver),
		"time": moment(x.Time),
	})
}

// CompensateBytes returns what a person signs who orders compensations.
func CompensateBytes(s agent.Scope, c agent.Compensate) []byte {
	keys := make([]any, 0, len(c.Keys))
	for _, k := range c.Keys {
		keys = append(keys, text(k))
	}
	return envelope(map[string]any{
		"rule": text(compensateRule), "session": text(s.String()), "turn": c.Turn, "keys": keys,
		"reason": text(c.Reason), "approver": text(c.Approver), "time": moment(c.Time),
	})
}

// MessageBytes returns what the sender of a message signs. The session's life is not known to whoever starts it.
func MessageBytes(session string, m agent.Message) []byte {
	return envelope(map[string]any{
		"rule": text(messageRule), "session": text(session), "id": text(m.ID), "from": text(m.From),
		"text": text(string(agent.DigestOf([]byte(m.Text)))), "time": moment(m.Time),
	})
}

// ForkBytes returns what a person signs who forks a session: the id and the agent of the new session, and where it
// begins. The new session's life is not known to whoever starts it.
func ForkBytes(session, agentName string, f agent.Fork) []byte {
	return envelope(map[string]any{
		"rule": text(forkRule), "session": text(session), "agent": text(agentName), "from": text(f.From.String()),
		"turn": f.Turn, "approver": text(f.Approver), "reason": text(f.Reason), "time": moment(f.Time),
	})
}

// moment is a time as it is signed: RFC 3339 in UTC, to the nanosecond where there are any.
func moment(t time.Time) any { return text(t.UTC().Format(time.RFC3339Nano)) }
