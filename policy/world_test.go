package policy_test

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
	"github.com/holdfast-run/holdfast/policy"
)

// signer returns the key that has that name in these tests, always the same.
func signer(t testing.TB, name string) ssh.Signer {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(t testing.TB, name string) policy.Key {
	t.Helper()
	return policy.Key{Key: signer(t, name).PublicKey()}
}

func sign(t testing.TB, name string, b []byte) string {
	t.Helper()
	armored, err := signature.Sign(signer(t, name), b)
	if err != nil {
		t.Fatal(err)
	}
	return armored
}

func mustNew(t testing.TB, c policy.Config) *policy.Policy {
	t.Helper()
	p, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everybody has alice and bob in finance, carol in ops with an old, a revoked and a good key, dan without any.
func everybody(t testing.TB) map[string]policy.Approver {
	t.Helper()
	old, lost := key(t, "carol-old"), key(t, "carol-lost")
	old.Expires, lost.Revoked = noon.Add(-time.Hour), true
	return map[string]policy.Approver{
		"alice": {Groups: []string{"finance"}, Keys: []policy.Key{key(t, "alice"), key(t, "alice-2")}},
		"bob":   {Groups: []string{"finance"}, Keys: []policy.Key{key(t, "bob")}},
		"carol": {Groups: []string{"ops"}, Keys: []policy.Key{old, lost, key(t, "carol")}},
		"dan":   {},
	}
}

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// shop is the policy that most tests decide by.
func shop(t testing.TB) policy.Config {
	t.Helper()
	return policy.Config{
		Approvers: everybody(t),
		Rules: []policy.Rule{
			{Name: "no-drop", When: `tool.startsWith("drop")`, Then: agent.DecisionDeny},
			{Name: "small", When: `tool == "refund" && args.amount <= 100`, Then: agent.DecisionAllow},
			{
				Name: "large", When: `tool == "refund" && args.amount > 100`, Then: agent.DecisionAsk,
				Approval: policy.Asking{
					By: []string{"finance"}, Quorum: 2, Expires: 4 * time.Hour,
					Escalate: &policy.Escalation{After: time.Hour, To: []string{"carol"}},
				},
			},
			{Name: "vip", When: `resource == "customer 1" || actor == "alice"`, Then: agent.DecisionAllow},
		},
		Agents: map[string]policy.Layer{
			"careful": {Posture: policy.PostureAsk},
			"reader":  {Posture: policy.PosturePlan},
			"narrow":  {Rules: []policy.Rule{{Name: "euros", When: `args.currency != "EUR"`, Then: agent.DecisionDeny}}},
		},
	}
}

// call is a request of a tool that the agent lists.
func call(agentName, tool string, class agent.Class, args string) policy.Request {
	return policy.Request{
		Agent: agent.Definition{Name: agentName, Tools: []agent.ToolRef{{Name: tool}}}, Tool: tool, Class: class,
		Risk: agent.RiskMedium, Args: args, Scope: scope,
	}
}

var scope = agent.Scope{Session: "s1", Life: "0a1b2c3d"}

// pending is a request that alice, bob and, from one o'clock, carol may decide.
func pending(t testing.TB, p *policy.Policy) (agent.ApprovalRequest, agent.Verdict, *agent.Terms) {
	t.Helper()
	r := call("support", "refund", agent.ClassOnce, `{"amount":250}`)
	v, terms := p.Decide(r)
	if v.Decision != agent.DecisionAsk {
		t.Fatalf("%+v", v)
	}
	place := agent.Place{Turn: 1, Step: 1, Call: 1}
	action := approval.Action{Tool: r.Tool, Args: r.Args, Place: place}.Digest()
	k := agent.ActionKey(scope, place, action)
	return agent.ApprovalRequest{
		ID: agent.ApprovalID(k, 1), Key: k, Ask: 1, Tool: r.Tool, Args: r.Args, Action: action, Place: place,
		Verdict: v, Terms: *terms, RequestedAt: noon, ExpiresAt: noon.Add(terms.Expires.Std()),
		EscalatesAt: noon.Add(terms.EscalateAfter.Std()),
	}, v, terms
}

// decide is a decision at ten past twelve, signed with a key.
func decide(t testing.TB, r agent.ApprovalRequest, choice agent.Choice, who, with string) agent.ApprovalDecision {
	t.Helper()
	d := agent.ApprovalDecision{
		ID: r.ID, Digest: r.Action, Choice: choice, Approver: who, Reason: "seen", Time: noon.Add(10 * time.Minute),
	}
	return signed(t, d, with)
}

func signed(t testing.TB, d agent.ApprovalDecision, with string) agent.ApprovalDecision {
	t.Helper()
	d.Signature = ""
	if with != "" {
		d.Signature = sign(t, with, approval.DecisionBytes(scope, d))
	}
	return d
}

// refusal returns why, and fails when the error is of another kind.
func refusal(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var r *policy.Refused
	if !errors.As(err, &r) {
		t.Fatalf("%T: %v", err, err)
	}
	return err.Error()
}
