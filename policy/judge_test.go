package policy_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

// A mutation changes one thing about a judgement of alice's valid signed approval at eleven past twelve.
type mutation struct {
	name string
	do   func(t *testing.T, j *policy.Judgement)
	why  string // "" counts
}

func judgement(t *testing.T, p *policy.Policy) policy.Judgement {
	t.Helper()
	r, v, terms := pending(t, p)
	return policy.Judgement{
		Scope: scope, Request: r, Decision: decide(t, r, agent.ChoiceApprove, "alice", "alice"), At: noon.Add(11 * time.Minute),
		Verdict: v, Terms: terms, Senders: []agent.Actor{{Name: "erin"}},
	}
}

func TestEveryChangeToAValidDecisionIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	const forged = "what it was made for differs"
	resign := func(who, with string) func(*testing.T, *policy.Judgement) {
		return func(t *testing.T, j *policy.Judgement) {
			j.Decision.Approver = who
			j.Decision = signed(t, j.Decision, with)
		}
	}
	field := func(do func(d *agent.ApprovalDecision)) func(*testing.T, *policy.Judgement) {
		return func(_ *testing.T, j *policy.Judgement) { do(&j.Decision) }
	}
	cases := []mutation{
		{"nothing", field(func(*agent.ApprovalDecision) {}), ""},
		{"her other key", resign("alice", "alice-2"), ""},
		{"ref, which is nobody's word", field(func(d *agent.ApprovalDecision) { d.Ref = "r" }), ""},

		{"id", field(func(d *agent.ApprovalDecision) { d.ID += "0" }), "another request"},
		{"digest", field(func(d *agent.ApprovalDecision) { d.Digest = agent.DigestOf(nil) }), "digest is not that"},
		{"no digest", field(func(d *agent.ApprovalDecision) { d.Digest = "" }), "digest is not that"},
		{"choice", field(func(d *agent.ApprovalDecision) { d.Choice = agent.ChoiceDecline }), forged},
		{"unknown choice", field(func(d *agent.ApprovalDecision) { d.Choice = "Approve" }), "not known"},
		{"approver", field(func(d *agent.ApprovalDecision) { d.Approver = "bob" }), "by another key"},
		{"approver not entitled", field(func(d *agent.ApprovalDecision) { d.Approver = "dan" }), "not among those"},
		{"nobody", field(func(d *agent.ApprovalDecision) { d.Approver = "" }), "who decides"},
		{"hidden name", field(func(d *agent.ApprovalDecision) { d.Approver = "alice\u200b" }), "all of them visible"},
		{"look-alike", field(func(d *agent.ApprovalDecision) { d.Approver = "\u0430lice" }), "all of them visible"},
		{"reason", field(func(d *agent.ApprovalDecision) { d.Reason = "" }), forged},
		{"args", field(func(d *agent.ApprovalDecision) { d.Args = `{"amount":1}` }), forged},
		{"time", field(func(d *agent.ApprovalDecision) { d.Time = d.Time.Add(time.Nanosecond) }), forged},
		{"no time", field(func(d *agent.ApprovalDecision) { d.Time = time.Time{} }), forged},
		{"no signature", field(func(d *agent.ApprovalDecision) { d.Signature = "" }), "has no signature"},
		{"broken signature", field(func(d *agent.ApprovalDecision) { d.Signature = "x" }), "no SSH signature"},

		{"other session", func(_ *testing.T, j *policy.Judgement) { j.Scope.Session = "s2" }, forged},
		{"other life", func(_ *testing.T, j *policy.Judgement) { j.Scope.Life = "ffffffff" }, forged},
		{"other action", func(_ *testing.T, j *policy.Judgement) { j.Request.Action = agent.DigestOf(nil) }, "digest is not that"},
		{"late", func(_ *testing.T, j *policy.Judgement) { j.At = j.Request.ExpiresAt.Add(1) }, "it is late"},
		{"no server time", func(_ *testing.T, j *policy.Judgement) { j.At = time.Time{} }, "not known when"},
		{"twice", func(_ *testing.T, j *policy.Judgement) {
			j.Given = []agent.Decided{{ApprovalDecision: j.Decision}}
		}, "has approved it already"},
		{"denied now", func(_ *testing.T, j *policy.Judgement) {
			j.Verdict = agent.Verdict{Decision: agent.DecisionDeny, Rule: "stop"}
		}, "denies the action (stop)"},
		{"not entitled now", func(_ *testing.T, j *policy.Judgement) {
			terms := *j.Terms
			terms.By, j.Terms = []string{"bob"}, &terms
		}, "not among those"},
		{"sender", func(_ *testing.T, j *policy.Judgement) {
			terms := *j.Terms
			terms.NotSender, j.Terms = true, &terms
			j.Senders = []agent.Actor{{Name: "bob", Signed: true}, {Name: "Alice", Signed: true}}
		}, "sent the message"},
		{"unproven sender", func(_ *testing.T, j *policy.Judgement) {
			terms := *j.Terms
			terms.NotSender, j.Terms = true, &terms
		}, "nothing proves who sent"},

		{"escalation, early", resign("carol", "carol"), "only from 2026-11-29T13:00:00Z"},
		{"escalation, in time", func(t *testing.T, j *policy.Judgement) {
			resign("carol", "carol")(t, j)
			j.At = noon.Add(time.Hour)
		}, ""},
		{"expired key", func(t *testing.T, j *policy.Judgement) {
			resign("carol", "carol-old")(t, j)
			j.At = noon.Add(time.Hour)
		}, "expired at 2026-11-29T11:00:00Z"},
		{"revoked key", func(t *testing.T, j *policy.Judgement) {
			resign("carol", "carol-lost")(t, j)
			j.At = noon.Add(time.Hour)
		}, "is revoked"},
		{"another's key", resign("alice", "bob"), "by another key"},
		{"stranger's key", resign("alice", "mallory"), "by another key"},
		{"signed without a time", func(t *testing.T, j *policy.Judgement) {
			j.Decision.Time = time.Time{}
			j.Decision = signed(t, j.Decision, "alice")
		}, "has no time"},
		{"signed before the request", func(t *testing.T, j *policy.Judgement) {
			j.Decision.Time = noon.Add(-6 * time.Minute)
			j.Decision = signed(t, j.Decision, "alice")
		}, "before the request's"},
		{"signed in the future", func(t *testing.T, j *policy.Judgement) {
			j.Decision.Time = j.At.Add(6 * time.Minute)
			j.Decision = signed(t, j.Decision, "alice")
		}, "after the server's"},
		{"another kind of statement", func(t *testing.T, j *policy.Judgement) {
			j.Decision.Signature = sign(t, "alice", approval.SettlementBytes(scope, agent.Settlement{Key: j.Decision.ID, Approver: "alice"}))
		}, forged},
		{"long reason", field(func(d *agent.ApprovalDecision) { d.Reason = strings.Repeat("x", agent.MaxReason+1) }), "its reason has"},
		{"long signature", field(func(d *agent.ApprovalDecision) { d.Signature = strings.Repeat("x", agent.MaxSignature+1) }), "its signature has"},
		{"long id", field(func(d *agent.ApprovalDecision) { d.ID = strings.Repeat("x", 600) }), "its id has"},
		{"long args", field(func(d *agent.ApprovalDecision) { d.Args = strings.Repeat("x", agent.MaxDecision+1) }), "its arguments have"},
		{"long ref", field(func(d *agent.ApprovalDecision) { d.Ref = strings.Repeat("x", 65) }), "its ref has"},
		{"decline with arguments", func(t *testing.T, j *policy.Judgement) {
			j.Decision.Choice, j.Decision.Args = agent.ChoiceDecline, "{}"
			j.Decision = signed(t, j.Decision, "alice")
		}, "only an approval"},
	}
	p := mustNew(t, shop(t))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := judgement(t, p)
			c.do(t, &j)
			got, err := p.Judge(j)
			why := refusal(t, err)
			if c.why == "" && (why != "" || got.Claimed || got.Key == "" || !got.At.Equal(j.At) || got.Approver != j.Decision.Approver) {
				t.Fatalf("%+v, %q", got, why)
			}
			if c.why != "" && (!strings.Contains(why, c.why) || got.Approver != "") {
				t.Fatalf("%q does not say %q", why, c.why)
			}
		})
	}
}

func TestADecisionNamesTheKeyThatProvesIt(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	j := judgement(t, p)
	got, err := p.Judge(j)
	if want := ssh.FingerprintSHA256(signer(t, "alice").PublicKey()); err != nil || got.Key != want {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestWhoMayDeclineAndWithdraw(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	deny := agent.Verdict{Decision: agent.DecisionDeny}
	cases := []struct {
		name, who, with string
		choice          agent.Choice
		do              func(*policy.Judgement)
		why             string
	}{
		{"decline", "bob", "bob", agent.ChoiceDecline, nil, ""},
		{"decline of what policy denies by now", "bob", "bob", agent.ChoiceDecline, func(j *policy.Judgement) { j.Verdict = deny }, ""},
		{"decline after an own approval", "alice", "alice", agent.ChoiceDecline, func(j *policy.Judgement) {
			j.Given = []agent.Decided{{ApprovalDecision: agent.ApprovalDecision{Approver: "alice"}}}
		}, ""},
		{"decline by others", "carol", "carol", agent.ChoiceDecline, nil, "only from"},
		{"unsigned decline", "bob", "", agent.ChoiceDecline, nil, "has no signature"},
		{"cancel by an approver", "bob", "bob", agent.ChoiceCancel, nil, ""},
		{"cancel by the sender", "carol", "carol", agent.ChoiceCancel, func(j *policy.Judgement) {
			j.Senders = []agent.Actor{{Name: "carol"}}
		}, ""},
		{"cancel by the sender, not proven", "carol", "", agent.ChoiceCancel, func(j *policy.Judgement) {
			j.Senders = []agent.Actor{{Name: "carol"}}
		}, "has no signature"},
		{"cancel by others", "carol", "carol", agent.ChoiceCancel, nil, "only from"},
	}
	for _, c := range cases {
		j := judgement(t, p)
		j.Decision = decide(t, j.Request, c.choice, c.who, c.with)
		if c.do != nil {
			c.do(&j)
		}
		_, err := p.Judge(j)
		if why := refusal(t, err); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, want %q", c.name, why, c.why)
		}
	}
}

func TestAClaimedNameCountsWhereNothingHangsOnIt(t *testing.T) {
	t.Parallel()
	open := policy.Config{Approvers: everybody(t)}
	listed := shop(t)
	listed.AcceptUnsigned = true
	for name, c := range map[string]struct {
		config policy.Config
		who    string
		with   string
		why    string
	}{
		"anybody may, unsigned":          {open, "zoe", "", ""},
		"anybody may, signed":            {open, "alice", "alice", ""},
		"anybody may, a false signature": {open, "alice", "bob", "by another key"},
		"a signature nobody can prove":   {open, "zoe", "bob", "no approver"},
		"unsigned: accept":               {listed, "alice", "", ""},
		"unsigned: accept, not listed":   {listed, "zoe", "", "not among"},
		"unsigned: accept, false":        {listed, "alice", "bob", "by another key"},
	} {
		p := mustNew(t, c.config)
		r, v, terms := pending(t, p)
		got, err := p.Judge(policy.Judgement{
			Scope: scope, Request: r, Decision: decide(t, r, agent.ChoiceApprove, c.who, c.with), At: noon.Add(time.Hour),
			Verdict: v, Terms: terms,
		})
		why := refusal(t, err)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
		if why == "" && (got.Claimed != (c.with == "") || (got.Key == "") != got.Claimed) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnUnsignedDecisionSentByHandNeedsNoTime(t *testing.T) {
	t.Parallel()
	p := mustNew(t, policy.Config{})
	r, v, terms := pending(t, p)
	d := agent.ApprovalDecision{ID: r.ID, Digest: r.Action, Choice: agent.ChoiceApprove, Approver: "me"}
	got, err := p.Judge(policy.Judgement{Scope: scope, Request: r, Decision: d, At: noon, Verdict: v, Terms: terms})
	if err != nil || !got.Claimed {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := (*policy.Policy)(nil).Judge(policy.Judgement{Request: r, Decision: d, At: noon}); err == nil {
		t.Fatal("judged by no policy")
	}
}
