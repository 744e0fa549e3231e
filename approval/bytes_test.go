package approval_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// differ fails when two of the statements are the same bytes: a signature over one would be one over the other.
func differ(t *testing.T, statements map[string][]byte) {
	t.Helper()
	seen := map[string]string{}
	for name, b := range statements {
		if other, twice := seen[string(b)]; twice {
			t.Errorf("%q and %q are the same bytes: %s", name, other, b)
		}
		if seen[string(b)] = name; !json.Valid(b) {
			t.Errorf("%q is not JSON: %s", name, b)
		}
	}
}

func TestEveryFieldOfAStatementIsSigned(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	scope := agent.Scope{Session: "s", Life: "00000001"}
	all := map[string][]byte{}
	decision := func(name string, do func(s *agent.Scope, d *agent.ApprovalDecision)) {
		s, d := scope, agent.ApprovalDecision{
			ID: "i", Digest: "d", Choice: "approve", Approver: "a", Reason: "r", Args: "{}", Time: at,
		}
		do(&s, &d)
		all["decision "+name] = approval.DecisionBytes(s, d)
	}
	decision("", func(*agent.Scope, *agent.ApprovalDecision) {})
	decision("session", func(s *agent.Scope, _ *agent.ApprovalDecision) { s.Session = "t" })
	decision("life", func(s *agent.Scope, _ *agent.ApprovalDecision) { s.Life = "00000002" })
	decision("id", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.ID = "j" })
	decision("digest", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Digest = "e" })
	decision("choice", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Choice = "decline" })
	decision("approver", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Approver = "b" })
	decision("approver, not UTF-8", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Approver = "\xff" })
	decision("approver, also not", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Approver = "\xfe" })
	decision("approver, its replacement", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Approver = "\ufffd" })
	decision("reason", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Reason = "" })
	decision("args", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Args = "{ }" })
	decision("time", func(_ *agent.Scope, d *agent.ApprovalDecision) { d.Time = at.Add(1) })

	settlement := func(name string, do func(s *agent.Scope, x *agent.Settlement)) {
		s, x := scope, agent.Settlement{Key: "k", Outcome: "committed", Evidence: "e", Approver: "a", Time: at}
		do(&s, &x)
		all["settlement "+name] = approval.SettlementBytes(s, x)
	}
	settlement("", func(*agent.Scope, *agent.Settlement) {})
	settlement("session", func(s *agent.Scope, _ *agent.Settlement) { s.Session = "t" })
	settlement("key", func(_ *agent.Scope, x *agent.Settlement) { x.Key = "l" })
	settlement("outcome", func(_ *agent.Scope, x *agent.Settlement) { x.Outcome = "failed" })
	settlement("evidence", func(_ *agent.Scope, x *agent.Settlement) { x.Evidence = "f" })
	settlement("approver", func(_ *agent.Scope, x *agent.Settlement) { x.Approver = "b" })
	settlement("time", func(_ *agent.Scope, x *agent.Settlement) { x.Time = at.Add(time.Hour) })

	compensate := func(name string, do func(s *agent.Scope, c *agent.Compensate)) {
		s, c := scope, agent.Compensate{Turn: 1, Keys: []string{"k", "l"}, Reason: "r", Approver: "a", Time: at}
		do(&s, &c)
		all["compensate "+name] = approval.CompensateBytes(s, c)
	}
	compensate("", func(*agent.Scope, *agent.Compensate) {})
	compensate("session", func(s *agent.Scope, _ *agent.Compensate) { s.Life = "00000002" })
	compensate("turn", func(_ *agent.Scope, c *agent.Compensate) { c.Turn = 2 })
	compensate("keys", func(_ *agent.Scope, c *agent.Compensate) { c.Keys = []string{"kl"} })
	compensate("no keys", func(_ *agent.Scope, c *agent.Compensate) { c.Keys = nil })
	compensate("reason", func(_ *agent.Scope, c *agent.Compensate) { c.Reason = "" })
	compensate("approver", func(_ *agent.Scope, c *agent.Compensate) { c.Approver = "b" })
	compensate("time", func(_ *agent.Scope, c *agent.Compensate) { c.Time = at.Add(1) })

	message := func(name string, do func(s *string, m *agent.Message)) {
		s, m := "s", agent.Message{ID: "i", Text: "t", From: "a", Time: at}
		do(&s, &m)
		all["message "+name] = approval.MessageBytes(s, m)
	}
	message("", func(*string, *agent.Message) {})
	message("session", func(s *string, _ *agent.Message) { *s = "t" })
	message("id", func(_ *string, m *agent.Message) { m.ID = "j" })
	message("text", func(_ *string, m *agent.Message) { m.Text = "u" })
	message("from", func(_ *string, m *agent.Message) { m.From = "b" })
	message("time", func(_ *string, m *agent.Message) { m.Time = at.Add(1) })

	fork := func(name string, do func(s, a *string, f *agent.Fork)) {
		s, a, f := "s", "a", agent.Fork{From: scope, Turn: 1, Approver: "a", Reason: "r", Time: at}
		do(&s, &a, &f)
		all["fork "+name] = approval.ForkBytes(s, a, f)
	}
	fork("", func(_, _ *string, _ *agent.Fork) {})
	fork("session", func(s, _ *string, _ *agent.Fork) { *s = "t" })
	fork("agent", func(_, a *string, _ *agent.Fork) { *a = "b" })
	fork("agent, not UTF-8", func(_, a *string, _ *agent.Fork) { *a = "\xff" })
	fork("from", func(_, _ *string, f *agent.Fork) { f.From.Session = "t" })
	fork("from's life", func(_, _ *string, f *agent.Fork) { f.From.Life = "00000002" })
	fork("turn", func(_, _ *string, f *agent.Fork) { f.Turn = 2 })
	fork("approver", func(_, _ *string, f *agent.Fork) { f.Approver = "b" })
	fork("reason", func(_, _ *string, f *agent.Fork) { f.Reason = "" })
	fork("time", func(_, _ *string, f *agent.Fork) { f.Time = at.Add(1) })
	differ(t, all)
}

func TestWhatIsSignedDoesNotDependOnTheTimeZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 12, 0, 0, 500, time.UTC)
	a := approval.DecisionBytes(agent.Scope{}, agent.ApprovalDecision{Time: at})
	b := approval.DecisionBytes(agent.Scope{}, agent.ApprovalDecision{Time: at.In(time.FixedZone("x", 3600))})
	const want = `{"approver":"","args":"","decision":"","digest":"","id":"","reason":"","rule":"holdfast-decision-1","session":"~",` +
		`"time":"2026-11-29T12:00:00.0000005Z"}`
	if string(a) != want || string(b) != want {
		t.Fatalf("%s\n%s", a, b)
	}
}
