package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

// granted is a grant of what alice and bob approved.
func granted(t *testing.T, p *policy.Policy) (agent.Grant, agent.Verdict, *agent.Terms) {
	t.Helper()
	r, v, terms := pending(t, p)
	g := agent.Grant{
		ID: r.ID, Action: r.Action, Requested: r.RequestedAt, Expires: r.ExpiresAt, Escalates: r.EscalatesAt, Terms: r.Terms,
	}
	for _, who := range []string{"alice", "bob"} {
		d := decide(t, r, agent.ChoiceApprove, who, who)
		g.Decisions = append(g.Decisions, agent.Decided{ApprovalDecision: d, At: noon.Add(11 * time.Minute)})
	}
	return g, v, terms
}

func TestAGrantIsJudgedAgainByThePolicyInForce(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		config func(c *policy.Config)
		grant  func(t *testing.T, g *agent.Grant)
		why    string
	}{
		{"nothing changed", nil, nil, ""},
		{"another rule changed", func(c *policy.Config) { c.Rules[0].When = "false" }, nil, ""},
		{"a lower quorum", func(c *policy.Config) { c.Rules[2].Approval.Quorum = 1 }, nil, ""},
		{"a person more", func(c *policy.Config) {
			c.Rules[2].Approval.By = []string{"finance", "carol"}
			c.Rules[2].Approval.Escalate.To = []string{"finance"}
		}, nil, ""},
		{"denied", func(c *policy.Config) { c.Rules[2].Then, c.Rules[2].Approval = agent.DecisionDeny, policy.Asking{} }, nil, "denies the action (large)"},
		{"a key revoked", func(c *policy.Config) {
			c.Approvers["bob"].Keys[0].Revoked = true
			c.Rules[2].Approval.By = []string{"finance", "carol"}
		}, nil, "is revoked"},
		{"a key gone", func(c *policy.Config) {
			c.Approvers["bob"] = policy.Approver{Groups: []string{"finance"}, Keys: []policy.Key{key(t, "bob-2")}}
		}, nil, "by another key"},
		{"a key that expired later", func(c *policy.Config) { c.Approvers["bob"].Keys[0].Expires = noon.Add(12 * time.Minute) }, nil, ""},
		{"a key that had expired", func(c *policy.Config) { c.Approvers["bob"].Keys[0].Expires = noon.Add(11 * time.Minute) }, nil, "expired at"},
		{"a right lost", func(c *policy.Config) { c.Rules[2].Approval.By = []string{"alice", "carol"} }, nil, `"bob" is not among`},
		{"a higher quorum", func(c *policy.Config) { c.Rules[2].Approval.Quorum = 3 }, nil, "3 different people must approve it and 2 did"},

		{"one person twice, with two keys", nil, func(t *testing.T, g *agent.Grant) {
			g.Decisions[1] = g.Decisions[0]
			d := g.Decisions[1].ApprovalDecision
			d.Time = d.Time.Add(time.Second)
			g.Decisions[1].ApprovalDecision = signed(t, d, "alice-2")
		}, "2 different people must approve it and 1 did"},
		{"one decision only", nil, func(_ *testing.T, g *agent.Grant) { g.Decisions = g.Decisions[:1] }, "2 different people"},
		{"no decision", nil, func(_ *testing.T, g *agent.Grant) { g.Decisions = nil }, "2 different people"},
		{"another action", nil, func(_ *testing.T, g *agent.Grant) { g.Action = agent.DigestOf(nil) }, "for another action"},
		{"another ask", nil, func(_ *testing.T, g *agent.Grant) { g.ID += "1" }, "for another action"},
		{"a decline", nil, func(t *testing.T, g *agent.Grant) {
			d := g.Decisions[1].ApprovalDecision
			d.Choice = agent.ChoiceDecline
			g.Decisions[1].ApprovalDecision = signed(t, d, "bob")
		}, "is no approval"},
		{"late", nil, func(_ *testing.T, g *agent.Grant) { g.Decisions[1].At = g.Expires.Add(1) }, "was late"},
		{"no server time", nil, func(_ *testing.T, g *agent.Grant) { g.Decisions[1].At = time.Time{} }, "not known when"},
		{"signature taken off", nil, func(_ *testing.T, g *agent.Grant) { g.Decisions[1].Signature, g.Decisions[1].Claimed = "", true }, "has no signature"},
		{"reason changed", nil, func(_ *testing.T, g *agent.Grant) { g.Decisions[1].Reason = "x" }, "differs"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, _, _ := granted(t, mustNew(t, shop(t)))
			config := shop(t)
			if c.config != nil {
				c.config(&config)
			}
			if c.grant != nil {
				c.grant(t, &g)
			}
			p := mustNew(t, config)
			v, terms := p.Decide(call("support", "refund", agent.ClassOnce, `{"amount":250}`))
			why := refusal(t, p.Satisfied(scope, g, v, terms, []agent.Actor{{Name: "erin"}}))
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Fatalf("%q, want %q", why, c.why)
			}
		})
	}
}

func TestAnEditCountsForTheActionThatItMade(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	g, v, terms := granted(t, p)
	first := g.Decisions[0].ApprovalDecision
	first.Digest, first.ID, first.Args = agent.DigestOf([]byte("proposed")), strings.Replace(first.ID, "/1.1/", "/1.1/f", 1), `{"amount":250}`
	first.Time = noon.Add(-time.Hour) // the request that it was for is older
	g.Decisions[0].ApprovalDecision = signed(t, first, "alice")
	g.Proposed = first.Digest
	if err := p.Satisfied(scope, g, v, terms, nil); err != nil {
		t.Error(err)
	}
	first.ID = strings.Replace(first.ID, "/1.1/", "/1.2/", 1)
	g.Decisions[0].ApprovalDecision = signed(t, first, "alice")
	if why := refusal(t, p.Satisfied(scope, g, v, terms, nil)); !strings.Contains(why, "another action") {
		t.Errorf("an edit of another call: %q", why)
	}
	g.Decisions[0].Args = ""
	if why := refusal(t, p.Satisfied(scope, g, v, terms, nil)); !strings.Contains(why, "another action") {
		t.Errorf("an approval of the proposed action: %q", why)
	}
}

func TestAGrantWithoutTermsInForceIsJudgedByItsOwn(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	g, _, _ := granted(t, p)
	allow := agent.Verdict{Decision: agent.DecisionAllow}
	if err := p.Satisfied(scope, g, allow, nil, nil); err != nil {
		t.Error(err)
	}
	g.Decisions = g.Decisions[:1]
	if why := refusal(t, p.Satisfied(scope, g, allow, nil, nil)); !strings.Contains(why, "2 different people") {
		t.Errorf("%q", why)
	}
}
