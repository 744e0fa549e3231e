package policy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

func TestTheStrictestLayerDecides(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	const large = `{"amount":250,"currency":"EUR"}`
	for _, c := range []struct {
		agent, tool string
		class       agent.Class
		args        string
		want        agent.Decision
		rule        string
	}{
		{"support", "refund", agent.ClassOnce, `{"amount":99.5}`, agent.DecisionAllow, "small"},
		{"support", "refund", agent.ClassOnce, large, agent.DecisionAsk, "large"},
		{"support", "drop_table", agent.ClassRead, "", agent.DecisionDeny, "no-drop"},
		{"support", "get", agent.ClassRead, "", agent.DecisionAllow, policy.RuleNoRule},
		{"support", "mail", agent.ClassIdempotent, "", agent.DecisionAsk, policy.RuleNoRule},
		{"support", "mail", "", "", agent.DecisionAsk, policy.RuleNoRule},
		{"careful", "refund", agent.ClassOnce, `{"amount":1}`, agent.DecisionAsk, policy.RulePostureAsk},
		{"careful", "refund", agent.ClassOnce, large, agent.DecisionAsk, policy.RulePostureAsk},
		{"careful", "drop_table", agent.ClassOnce, "", agent.DecisionDeny, "no-drop"},
		{"careful", "get", agent.ClassRead, "", agent.DecisionAllow, policy.RuleNoRule},
		{"reader", "refund", agent.ClassOnce, `{"amount":1}`, agent.DecisionDeny, policy.RulePosturePlan},
		{"reader", "get", agent.ClassRead, "", agent.DecisionAllow, policy.RuleNoRule},
		{"narrow", "refund", agent.ClassOnce, `{"amount":1,"currency":"USD"}`, agent.DecisionDeny, "narrow/euros"},
		{"narrow", "refund", agent.ClassOnce, large, agent.DecisionAsk, "large"},
		{"narrow", "refund", agent.ClassOnce, `{"amount":1}`, agent.DecisionDeny, "narrow/euros"}, // no currency: an error
		{"support", "refund", agent.ClassOnce, `{"amount": 1}`, agent.DecisionDeny, policy.RuleBadArguments},
		{"support", "refund", agent.ClassOnce, `{"amount":1,"amount":2}`, agent.DecisionDeny, policy.RuleBadArguments},
	} {
		v, terms := p.Decide(call(c.agent, c.tool, c.class, c.args))
		if want := (agent.Verdict{Decision: c.want, Rule: c.rule, Policy: p.Version().Short()}); v != want {
			t.Errorf("%s %s %s: %+v, want %+v", c.agent, c.tool, c.args, v, want)
		}
		if (terms != nil) != (c.want == agent.DecisionAsk) {
			t.Errorf("%s %s %s: terms %+v", c.agent, c.tool, c.args, terms)
		}
	}
}

func TestOnlyWhatTheAgentListsIsAllowed(t *testing.T) {
	t.Parallel()
	p := mustNew(t, policy.Config{Rules: []policy.Rule{{Name: "all", Then: agent.DecisionAllow}}})
	r := call("support", "pay", agent.ClassOnce, "")
	for _, name := range []string{"p\u0430y", "Pay", "", "pay ", "refund"} {
		r.Tool = name
		if v, _ := p.Decide(r); v.Decision != agent.DecisionDeny || v.Rule != policy.RuleNotListed {
			t.Errorf("%q: %+v", name, v)
		}
	}
	for _, none := range []*policy.Policy{nil, {}} {
		v, terms := none.Decide(call("support", "pay", agent.ClassRead, ""))
		if v != (agent.Verdict{Decision: agent.DecisionDeny, Rule: policy.RuleNoPolicy}) || terms != nil {
			t.Errorf("%+v", v)
		}
		if none.Duplicates() != policy.RepeatAsk || none.Uncertain() != policy.DoubtWait || none.OnFailure() != agent.UnwindKeep {
			t.Error("no policy is not the default")
		}
	}
}

func TestTheRuleThatAsksSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	no := false
	c := shop(t)
	c.Approval = policy.Asking{By: []string{"ops"}, Expires: 2 * time.Hour}
	c.Agents["support"] = policy.Layer{Rules: []policy.Rule{
		{Name: "a", When: `args.n == 1`, Then: agent.DecisionAsk, Approval: policy.Asking{By: []string{"bob", "carol"}}},
		{Name: "b", When: `args.n == 2`, Then: agent.DecisionAsk, Approval: policy.Asking{Quorum: 1, Expires: time.Hour}},
		{Name: "c", When: `args.n == 3`, Then: agent.DecisionAsk, Approval: policy.Asking{
			By: []string{"alice", "carol"}, Escalate: &policy.Escalation{After: 30 * time.Minute, To: []string{"bob"}},
		}},
		{Name: "d", When: `args.n == 4`, Then: agent.DecisionAsk, Approval: policy.Asking{By: []string{"ops"}}},
		{Name: "e", When: `args.n == 5`, Then: agent.DecisionAsk, Approval: policy.Asking{By: []string{"finance", "ops"}, Quorum: 3}},
		{Name: "rest", Then: agent.DecisionAllow},
	}}
	strict := c
	strict.SelfApproval = &no
	p, q := mustNew(t, c), mustNew(t, strict)
	hour := agent.Duration(time.Hour)
	finance := []string{"alice", "bob"}
	for _, x := range []struct {
		name string
		p    *policy.Policy
		tool string
		args string
		want *agent.Terms
		rule string
	}{
		{"defaults", p, "mail", `{"n":9}`, &agent.Terms{By: []string{"carol"}, Quorum: 1, Signed: true, Expires: 2 * hour}, policy.RuleNoRule},
		{"of the operator's rule", p, "refund", `{"amount":250,"n":9}`, &agent.Terms{
			By: finance, Quorum: 2, Signed: true, Expires: 4 * hour, EscalateAfter: hour, EscalateTo: []string{"carol"},
		}, "large"},
		{"of the agent's rule", p, "mail", `{"n":1}`, &agent.Terms{By: []string{"bob", "carol"}, Quorum: 1, Signed: true, Expires: 2 * hour}, policy.RuleNoRule},
		{"of both: who is in both, the larger quorum", p, "refund", `{"amount":250,"n":1}`, &agent.Terms{
			By: []string{"bob"}, Quorum: 2, Signed: true, Expires: 2 * hour, EscalateAfter: hour, EscalateTo: []string{"carol"},
		}, "large"},
		{"of both: the earlier end, who is the operator's", p, "refund", `{"amount":250,"n":2}`, &agent.Terms{
			By: finance, Quorum: 2, Signed: true, Expires: hour, EscalateAfter: hour, EscalateTo: []string{"carol"},
		}, "large"},
		{"of both: the later escalation", p, "refund", `{"amount":250,"n":3}`, &agent.Terms{
			By: []string{"alice"}, Quorum: 2, Signed: true, Expires: 2 * hour, EscalateAfter: hour, EscalateTo: []string{"bob", "carol"},
		}, "large"},
		{"of both: the agent's larger quorum", p, "refund", `{"amount":250,"n":5}`, &agent.Terms{
			By: finance, Quorum: 3, Signed: true, Expires: 2 * hour, EscalateAfter: hour, EscalateTo: []string{"carol"},
		}, "large"},
		{"nobody in both", p, "refund", `{"amount":250,"n":4}`, nil, policy.RuleNobody},
		{"sender without signature", q, "mail", `{"n":9}`, nil, policy.RuleUnsigned},
	} {
		r := call("support", x.tool, agent.ClassOnce, x.args)
		r.Senders = []agent.Actor{{Name: "erin"}}
		v, got := x.p.Decide(r)
		if x.want != nil {
			x.want.Risk = r.Risk
		}
		if diff := cmp.Diff(x.want, got); diff != "" || v.Rule != x.rule || (got == nil) != (v.Decision == agent.DecisionDeny) {
			t.Errorf("%s: %+v %s", x.name, v, diff)
		}
	}
	r := call("support", "mail", agent.ClassOnce, `{"n":1}`)
	for who, want := range map[string]string{"alice": "support/a", "bob": policy.RuleNoRule} {
		r.Senders = []agent.Actor{{Name: who, Signed: true}}
		if v, terms := q.Decide(r); v.Rule != want || !terms.NotSender || !terms.Signed {
			t.Errorf("%s: %+v %+v", who, v, terms)
		}
	}
	r.Senders = []agent.Actor{{Name: "bob", Signed: true}, {Name: "carol", Signed: true}}
	if v, _ := q.Decide(r); v.Decision != agent.DecisionDeny || v.Rule != policy.RuleNobody {
		t.Errorf("all who may approve sent a message: %+v", v)
	}
	r.Senders = nil // no message led to it
	if v, _ := q.Decide(r); v.Decision != agent.DecisionAsk {
		t.Errorf("%+v", v)
	}
}

func TestTheActorIsWhoProvedIt(t *testing.T) {
	t.Parallel()
	c := shop(t)
	p := mustNew(t, c)
	c.AcceptUnsigned = true
	q := mustNew(t, c)
	r := call("support", "mail", agent.ClassOnce, "")
	for _, x := range []struct {
		p       *policy.Policy
		senders []agent.Actor
		rule    string
	}{
		{p, []agent.Actor{{Name: "alice", Signed: true}}, "vip"},
		{p, []agent.Actor{{Name: "alice"}}, policy.RuleNoRule},
		{p, []agent.Actor{{Name: "bob", Signed: true}, {Name: "alice", Signed: true}}, policy.RuleNoRule},
		{p, nil, policy.RuleNoRule},
		{q, []agent.Actor{{Name: "alice"}}, "vip"},
	} {
		r.Senders = x.senders
		if v, _ := x.p.Decide(r); v.Rule != x.rule {
			t.Errorf("%+v: %+v", x.senders, v)
		}
	}
}

func TestAConditionThatFailsIsNeverNoMatch(t *testing.T) {
	t.Parallel()
	for then, want := range map[agent.Decision]agent.Decision{
		agent.DecisionDeny: agent.DecisionDeny, agent.DecisionAsk: agent.DecisionAsk, agent.DecisionAllow: agent.DecisionAsk,
	} {
		for when, args := range map[string]string{
			`args.missing == 1`:                    `{}`,
			`args.amount > 100`:                    `{"amount":"many"}`,
			`args.ok`:                              `{"ok":"yes"}`,
			`args.amount > 5`:                      `{"amount":18446744073709551617}`, // no type holds it
			`args.amount < 1.5`:                    `{"amount":0.10000000000000000001}`,
			`args.n in [1, 2]`:                     `{"n":123456789012345678901234567890123}`,
			`1 in args.list`:                       `{"list":[18446744073709551617]}`,
			`args.list == [1]`:                     `{"list":[18446744073709551617]}`,
			`args.o == {"n": 1}`:                   `{"o":{"n":18446744073709551617}}`,
			`args.n * 9223372036854775807 > 0`:     `{"n":2}`,
			`args.list.exists(x, x == 1)`:          `{"list":["a",18446744073709551617]}`,
			`args.a.all(x, args.a.all(y, x == y))`: `{"a":[` + strings.Repeat("1,", 2000) + `1]}`,
			`int(args.s) > 3`:                      `{"s":"x"}`,
			`args.list[5] == 1`:                    `{"list":[1]}`,
			`timestamp(args.s) < timestamp("2026-01-01T00:00:00Z")`: `{"s":"soon"}`,
		} {
			p := mustNew(t, policy.Config{Rules: []policy.Rule{{Name: "r", When: when, Then: then}}})
			r := call("support", "pay", agent.ClassRead, args)
			v, _ := p.Decide(r)
			if v.Decision != want || v.Rule != "r" {
				t.Errorf("%s of %.60s: %+v, want %s", when, args, v, want)
			}
			seen := p.Explain(r).Layers[2].Rules[0]
			if seen.Result != policy.Failed || seen.Error == "" || len(seen.Error) > 2000 {
				t.Errorf("%s of %.60s: %+v", when, args, seen)
			}
		}
	}
}

func TestNumbersCompareByTheirExactValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when, args string
		want       bool
	}{
		{`args.n == 9007199254740993`, `{"n":9007199254740993}`, true},
		{`args.n == 9007199254740992`, `{"n":9007199254740993}`, false},
		{`args.n > 9007199254740992`, `{"n":9007199254740993}`, true},
		{`args.n == 18446744073709551615u`, `{"n":18446744073709551615}`, true},
		{`args.n > 9223372036854775807`, `{"n":9223372036854775808}`, true},
		{`args.n == 1`, `{"n":1.0}`, true},
		{`args.n == 1`, `{"n":10e-1}`, true},
		{`args.n == 1000`, `{"n":1e3}`, true},
		{`args.n == 0`, `{"n":-0.0}`, true},
		{`args.n < 0`, `{"n":-1e30}`, true},
		{`args.n > 100`, `{"n":1e30}`, true},
		{`args.n > 100`, `{"n":100.01}`, true},
		{`args.n <= 100.01`, `{"n":100.01}`, true},
		{`args.n > 100.0`, `{"n":101}`, true},
		{`args.n <= 0.1`, `{"n":0.1000000000000001}`, false},
		{`args.n == 12345.6789`, `{"n":12345.6789}`, true},
		{`args.n in [1, 2.5]`, `{"n":2.50}`, true},
		{`args.l == [1, 2]`, `{"l":[1.0,2e0]}`, true},
		{`args.l.map(x, x * 2) == [2, 4]`, `{"l":[1,2]}`, true},
		{`args.o.p[0].q == 7`, `{"o":{"p":[{"q":7}]}}`, true},
		{`has(args.x) && args.x > 1`, `{"y":1}`, false},
		{`"x" in args && size(args) == 1`, `{"x":null}`, true},
		{`args.x == null`, `{"x":null}`, true},
		{`args["a b"].lowerAscii() == "x"`, `{"a b":"X"}`, true},
	} {
		p := mustNew(t, policy.Config{Rules: []policy.Rule{{Name: "r", When: c.when, Then: agent.DecisionDeny}}})
		e := p.Explain(call("support", "pay", agent.ClassRead, c.args))
		if got := e.Layers[2].Rules[0]; got.Result != map[bool]string{true: policy.Matched, false: policy.NoMatch}[c.want] {
			t.Errorf("%s of %s: %+v", c.when, c.args, got)
		}
	}
}

func TestVersionsDifferWhenAnythingThatDecidesDoes(t *testing.T) {
	t.Parallel()
	no, yes := false, true
	seen := map[agent.Digest]string{}
	for name, do := range map[string]func(c *policy.Config){
		"nothing":        func(*policy.Config) {},
		"posture":        func(c *policy.Config) { c.Posture = policy.PostureAsk },
		"rule's name":    func(c *policy.Config) { c.Rules[0].Name = "x" },
		"condition":      func(c *policy.Config) { c.Rules[0].When += " " },
		"then":           func(c *policy.Config) { c.Rules[0].Then = agent.DecisionAllow },
		"order":          func(c *policy.Config) { c.Rules[0], c.Rules[1] = c.Rules[1], c.Rules[0] },
		"quorum":         func(c *policy.Config) { c.Rules[2].Approval.Quorum = 1 },
		"expires":        func(c *policy.Config) { c.Rules[2].Approval.Expires = 5 * time.Hour },
		"by":             func(c *policy.Config) { c.Rules[2].Approval.By = []string{"finance", "carol"} },
		"escalate after": func(c *policy.Config) { c.Rules[2].Approval.Escalate.After = time.Minute },
		"escalate to":    func(c *policy.Config) { c.Rules[2].Approval.Escalate.To = []string{"carol", "alice"} },
		"default":        func(c *policy.Config) { c.Approval.Expires = time.Hour },
		"agent":          func(c *policy.Config) { c.Agents["other"] = policy.Layer{Posture: policy.PostureAsk} },
		"agent's rule":   func(c *policy.Config) { c.Agents["narrow"].Rules[0].When = "true" },
		"approver":       func(c *policy.Config) { c.Approvers["zoe"] = policy.Approver{Keys: []policy.Key{key(t, "zoe")}} },
		"key":            func(c *policy.Config) { c.Approvers["bob"].Keys[0].Key = key(t, "bob-2").Key },
		"revoked":        func(c *policy.Config) { c.Approvers["alice"].Keys[1].Revoked = true },
		"expiry":         func(c *policy.Config) { c.Approvers["bob"].Keys[0].Expires = noon },
		"self approval":  func(c *policy.Config) { c.SelfApproval = &no },
		"unsigned":       func(c *policy.Config) { c.AcceptUnsigned = true },
		"duplicates":     func(c *policy.Config) { c.Duplicates = policy.RepeatDeny },
		"uncertain":      func(c *policy.Config) { c.Uncertain = policy.DoubtTell },
		"on failure":     func(c *policy.Config) { c.OnFailure = agent.UnwindAsk },
		"settle":         func(c *policy.Config) { c.Rights.Settle = []string{"ops"} },
		"compensate":     func(c *policy.Config) { c.Rights.Compensate = []string{"ops"} },
		"fork":           func(c *policy.Config) { c.Rights.Fork = []string{"ops"} },
	} {
		c := shop(t)
		do(&c)
		v := mustNew(t, c).Version()
		if other, twice := seen[v]; twice || !v.Valid() {
			t.Errorf("%q and %q have the same version %q", name, other, v)
		}
		seen[v] = name
	}
	c := shop(t)
	c.Posture, c.SelfApproval, c.Duplicates, c.Approval.Quorum = policy.PostureAuto, &yes, policy.RepeatAsk, 1
	c.Approvers["bob"].Keys[0].Comment = "at home"
	if seen[mustNew(t, c).Version()] != "nothing" {
		t.Error("a default that is written out, or a comment, changes the version")
	}
}

func TestDecideIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p := mustNew(t, shop(t))
	want, _ := p.Decide(call("support", "refund", agent.ClassOnce, `{"amount":250}`))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				if v, terms := p.Decide(call("support", "refund", agent.ClassOnce, `{"amount":250}`)); v != want || len(terms.By) != 2 {
					t.Errorf("%+v %+v", v, terms)
				}
			}
		})
	}
	group.Wait()
}

// What a model writes as a text and a condition converts may be a number that no limit is above or below.
func TestATextThatIsNoNumberIsNeverBelowALimit(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"double(args.n) > 10.0", "!(double(args.n) <= 10.0)", "double(args.n) * 2.0 > 10.0", "args.l.exists(n, double(n) > 10.0)",
		"double(args.n) - double(args.n) > 0.0", "double(args.n) in [11.0]", "double(args.n) == 11.0", "double(args.n) / double(args.z) > 1.0",
	} {
		p := mustNew(t, policy.Config{Rules: []policy.Rule{
			{Name: "limit", When: when, Then: agent.DecisionDeny}, {Name: "rest", Then: agent.DecisionAllow},
		}})
		for _, n := range []string{"NaN", "nan", "-NaN", "+nan", "Inf", "-Infinity", "+inf", "1e999", "-1e999"} {
			v, _ := p.Decide(call("support", "refund", agent.ClassOnce, fmt.Sprintf(`{"l":[%q],"n":%[1]q,"z":"0"}`, n)))
			if v.Decision != agent.DecisionDeny {
				t.Errorf("%s: of %q it says %+v", when, n, v)
			}
		}
	}
}
