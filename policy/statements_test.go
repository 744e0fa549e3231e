package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

func TestASettlementCountsByRightSignatureAndEvidence(t *testing.T) {
	t.Parallel()
	c := shop(t)
	c.Rights.Settle = []string{"finance"}
	strict := mustNew(t, c)
	open := mustNew(t, shop(t))
	c.AcceptUnsigned = true
	lax := mustNew(t, c)
	for _, x := range []struct {
		name string
		p    *policy.Policy
		with string // the key that signs, "" is none
		do   func(x *agent.Settlement)
		late func(s *agent.Scope, x *agent.Settlement)
		by   string
		why  string
	}{
		{"signed", strict, "alice", nil, nil, "alice", ""},
		{"unsigned", strict, "", nil, nil, "", "has no signature"},
		{"no right", strict, "carol", func(x *agent.Settlement) { x.Approver = "carol" }, nil, "", "may settle an effect: alice, bob"},
		{"anybody", open, "", func(x *agent.Settlement) { x.Approver = "zoe" }, nil, "zoe (claimed)", ""},
		{"anybody, signed", open, "carol", func(x *agent.Settlement) { x.Approver = "carol" }, nil, "carol", ""},
		{"anybody, false signature", open, "bob", nil, nil, "", "by another key"},
		{"unsigned: accept", lax, "", nil, nil, "alice (claimed)", ""},
		{"revoked", open, "carol-lost", func(x *agent.Settlement) { x.Approver = "carol" }, nil, "", "is revoked"},
		{"expired", open, "carol-old", func(x *agent.Settlement) { x.Approver = "carol" }, nil, "", "expired at"},
		{"no name", open, "", func(x *agent.Settlement) { x.Approver = "" }, nil, "", "who decides"},
		{"no evidence", strict, "alice", func(x *agent.Settlement) { x.Evidence = " \n" }, nil, "", "no evidence"},
		{"long evidence", strict, "alice", func(x *agent.Settlement) { x.Evidence = strings.Repeat("x", agent.MaxEvidence+1) }, nil, "", "its evidence has"},
		{"uncertain", strict, "alice", func(x *agent.Settlement) { x.Outcome = agent.StateUncertain }, nil, "", "use committed or failed"},
		{"no outcome", strict, "alice", func(x *agent.Settlement) { x.Outcome = "" }, nil, "", "use committed or failed"},
		{"old", strict, "alice", func(x *agent.Settlement) { x.Time = noon.Add(-2 * time.Hour) }, nil, "", "sign it again"},
		{"future", strict, "alice", func(x *agent.Settlement) { x.Time = noon.Add(time.Hour) }, nil, "", "after the server's"},
		{"no time", strict, "alice", func(x *agent.Settlement) { x.Time = time.Time{} }, nil, "", "has no time"},
		{"key changed", strict, "alice", nil, func(_ *agent.Scope, x *agent.Settlement) { x.Key += "0" }, "", "differs"},
		{"outcome changed", strict, "alice", nil, func(_ *agent.Scope, x *agent.Settlement) { x.Outcome = agent.StateFailed }, "", "differs"},
		{"evidence changed", strict, "alice", nil, func(_ *agent.Scope, x *agent.Settlement) { x.Evidence = "y" }, "", "differs"},
		{"approver changed", strict, "alice", nil, func(_ *agent.Scope, x *agent.Settlement) { x.Approver = "bob" }, "", "by another key"},
		{"time changed", strict, "alice", nil, func(_ *agent.Scope, x *agent.Settlement) { x.Time = x.Time.Add(1) }, "", "differs"},
		{"session changed", strict, "alice", nil, func(s *agent.Scope, _ *agent.Settlement) { s.Session = "s2" }, "", "differs"},
		{"no policy", nil, "alice", nil, nil, "", "no policy"},
	} {
		s, in := scope, agent.Settlement{
			Key: "k", Outcome: agent.StateCommitted, Evidence: "it is in the books", Approver: "alice", Time: noon,
		}
		if x.do != nil {
			x.do(&in)
		}
		if x.with != "" {
			in.Signature = sign(t, x.with, approval.SettlementBytes(s, in))
		}
		if x.late != nil {
			x.late(&s, &in)
		}
		by, err := x.p.JudgeSettlement(s, in, noon.Add(time.Minute))
		if why := refusal(t, err); by != x.by || (why == "") != (x.why == "") || !strings.Contains(why, x.why) {
			t.Errorf("%s: by %q, %q", x.name, by, why)
		}
	}
}

func TestAnOrderToCompensateCountsByRightAndSignature(t *testing.T) {
	t.Parallel()
	c := shop(t)
	c.Rights.Compensate = []string{"ops"}
	p := mustNew(t, c)
	order := func(do, late func(s *agent.Scope, o *agent.Compensate)) (string, string) {
		s, o := scope, agent.Compensate{Turn: 3, Keys: []string{"a", "b"}, Reason: "wrong order", Approver: "carol", Time: noon}
		if do != nil {
			do(&s, &o)
		}
		o.Signature = sign(t, "carol", approval.CompensateBytes(s, o))
		if late != nil {
			late(&s, &o)
		}
		by, err := p.JudgeCompensate(s, o, noon.Add(time.Minute))
		return by, refusal(t, err)
	}
	if by, why := order(nil, nil); by != "carol" || why != "" {
		t.Fatalf("%q, %q", by, why)
	}
	for want, do := range map[string]func(s *agent.Scope, o *agent.Compensate){
		"may order compensations": func(_ *agent.Scope, o *agent.Compensate) { o.Approver = "alice" },
		"sign it again":           func(_ *agent.Scope, o *agent.Compensate) { o.Time = noon.Add(-time.Hour) },
		"its reason has":          func(_ *agent.Scope, o *agent.Compensate) { o.Reason = strings.Repeat("x", agent.MaxReason+1) },
	} {
		if by, why := order(do, nil); by != "" || !strings.Contains(why, want) {
			t.Errorf("%q, %q does not say %q", by, why, want)
		}
	}
	for name, late := range map[string]func(s *agent.Scope, o *agent.Compensate){
		"turn":    func(_ *agent.Scope, o *agent.Compensate) { o.Turn = 4 },
		"keys":    func(_ *agent.Scope, o *agent.Compensate) { o.Keys = nil },
		"reason":  func(_ *agent.Scope, o *agent.Compensate) { o.Reason = "" },
		"session": func(s *agent.Scope, _ *agent.Compensate) { s.Life = "ffffffff" },
	} {
		if by, why := order(nil, late); by != "" || !strings.Contains(why, "differs") {
			t.Errorf("%s: %q, %q", name, by, why)
		}
	}
}

func TestAForkCountsByRightAndSignature(t *testing.T) {
	t.Parallel()
	c := shop(t)
	c.Rights.Fork = []string{"ops"}
	strict, open := mustNew(t, c), mustNew(t, shop(t))
	c.AcceptUnsigned = true
	lax := mustNew(t, c)
	type fork struct {
		session, agent string
		agent.Fork
	}
	for _, x := range []struct {
		name string
		p    *policy.Policy
		with string // the key that signs, "" is none
		do   func(f *fork)
		late func(f *fork)
		by   string
		why  string
	}{
		{"signed", strict, "carol", nil, nil, "carol", ""},
		{"unsigned", strict, "", nil, nil, "", "has no signature"},
		{"no right", strict, "alice", func(f *fork) { f.Approver = "alice" }, nil, "", "may fork a session: carol"},
		{"anybody", open, "", func(f *fork) { f.Approver = "zoe" }, nil, "zoe (claimed)", ""},
		{"anybody, signed", open, "alice", func(f *fork) { f.Approver = "alice" }, nil, "alice", ""},
		{"anybody, false signature", open, "bob", nil, nil, "", "by another key"},
		{"unsigned: accept", lax, "", nil, nil, "carol (claimed)", ""},
		{"unsigned: accept, no right", lax, "", func(f *fork) { f.Approver = "alice" }, nil, "", "may fork a session: carol"},
		{"revoked", strict, "carol-lost", nil, nil, "", "is revoked"},
		{"expired", strict, "carol-old", nil, nil, "", "expired at"},
		{"no name", open, "", func(f *fork) { f.Approver = "" }, nil, "", "who decides"},
		{"long reason", strict, "carol", func(f *fork) { f.Reason = strings.Repeat("x", agent.MaxReason+1) }, nil, "", "its reason has"},
		{"old", strict, "carol", func(f *fork) { f.Time = noon.Add(-2 * time.Hour) }, nil, "", "sign it again"},
		{"future", strict, "carol", func(f *fork) { f.Time = noon.Add(time.Hour) }, nil, "", "after the server's"},
		{"no time", strict, "carol", func(f *fork) { f.Time = time.Time{} }, nil, "", "has no time"},
		{"session changed", strict, "carol", nil, func(f *fork) { f.session = "s9" }, "", "differs"},
		{"agent changed", strict, "carol", nil, func(f *fork) { f.agent = "narrow" }, "", "differs"},
		{"source changed", strict, "carol", nil, func(f *fork) { f.From.Session = "s3" }, "", "differs"},
		{"source's life changed", strict, "carol", nil, func(f *fork) { f.From.Life = "ffffffff" }, "", "differs"},
		{"turn changed", strict, "carol", nil, func(f *fork) { f.Turn = 4 }, "", "differs"},
		{"reason changed", strict, "carol", nil, func(f *fork) { f.Reason = "" }, "", "differs"},
		{"time changed", strict, "carol", nil, func(f *fork) { f.Time = f.Time.Add(1) }, "", "differs"},
		{"approver changed", open, "carol", nil, func(f *fork) { f.Approver = "alice" }, "", "by another key"},
		{"no policy", nil, "carol", nil, nil, "", "no policy"},
	} {
		f := fork{"s2", "support", agent.Fork{From: scope, Turn: 3, Approver: "carol", Reason: "another try", Time: noon}}
		if x.do != nil {
			x.do(&f)
		}
		if x.with != "" {
			f.Signature = sign(t, x.with, approval.ForkBytes(f.session, f.agent, f.Fork))
		}
		if x.late != nil {
			x.late(&f)
		}
		by, err := x.p.JudgeFork(f.session, f.agent, f.Fork, noon.Add(time.Minute))
		if why := refusal(t, err); by != x.by || (why == "") != (x.why == "") || !strings.Contains(why, x.why) {
			t.Errorf("%s: by %q, %q", x.name, by, why)
		}
	}
}

// Approvals wait across a deploy, and turns record the version that decided: one that changes for nothing is drift.
func TestAPolicyThatNamesNobodyWhoForksHasTheVersionOfBefore(t *testing.T) {
	t.Parallel()
	c := shop(t)
	if v := mustNew(t, c).Version(); v != "c8e1d2465f5c2315a3857d674bc04e3dd722dd8a72a5dc392ca3324e5a032955" {
		t.Errorf("version %q", v)
	}
	c.Rights.Settle = []string{"ops"}
	if v := mustNew(t, c).Version(); v != "e01b26c0836aeb2565faa0fa4e5c4ad233a0e9e7e402aced577afdde32dc5ed8" {
		t.Errorf("version %q", v)
	}
}

func TestAMessageIsFromWhoeverProvesIt(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	for _, x := range []struct {
		name, from, with string
		late             func(session *string, m *agent.Message)
		want             agent.Actor
		why              string
	}{
		{"signed", "alice", "alice", nil, agent.Actor{Name: "alice", Signed: true}, ""},
		{"unsigned", "alice", "", nil, agent.Actor{Name: "alice"}, ""},
		{"nobody", "", "", nil, agent.Actor{}, ""},
		{"another's", "alice", "bob", nil, agent.Actor{}, "by another key"},
		{"unknown", "zoe", "zoe", nil, agent.Actor{}, "no approver"},
		{"signed by nobody", "", "alice", nil, agent.Actor{}, "who decides"},
		{"revoked", "carol", "carol-lost", nil, agent.Actor{}, "is revoked"},
		{"text", "alice", "alice", func(_ *string, m *agent.Message) { m.Text += "!" }, agent.Actor{}, "differs"},
		{"id", "alice", "alice", func(_ *string, m *agent.Message) { m.ID += "!" }, agent.Actor{}, "differs"},
		{"time", "alice", "alice", func(_ *string, m *agent.Message) { m.Time = m.Time.Add(1) }, agent.Actor{}, "differs"},
		{"session", "alice", "alice", func(s *string, _ *agent.Message) { *s = "s2" }, agent.Actor{}, "differs"},
		{"taken up a week later", "alice", "alice", nil, agent.Actor{Name: "alice", Signed: true}, ""},
	} {
		session, m := "s1", agent.Message{ID: "m", Text: "refund it", From: x.from, Time: noon}
		if x.with != "" {
			m.Signature = sign(t, x.with, approval.MessageBytes(session, m))
		}
		if x.late != nil {
			x.late(&session, &m)
		}
		at := noon.Add(time.Second)
		if x.name == "taken up a week later" {
			at = noon.Add(7 * 24 * time.Hour)
		}
		got, err := p.Identify(session, m, at)
		if why := refusal(t, err); got != x.want || (why == "") != (x.why == "") || !strings.Contains(why, x.why) {
			t.Errorf("%s: %+v, %q", x.name, got, why)
		}
	}
}
