package policy_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

// FuzzArguments proves that no arguments make a rule that forbids them pass: what it does not match exactly, or
// cannot evaluate, is never allowed by it.
func FuzzArguments(f *testing.F) {
	limit := mustNew(f, policy.Config{Rules: []policy.Rule{
		{Name: "limit", When: `args.n > 100`, Then: agent.DecisionDeny},
		{Name: "listed", When: `args.l.exists(x, x == 7) || 7 in args.l`, Then: agent.DecisionDeny},
		{Name: "rest", Then: agent.DecisionAllow},
	}})
	for _, args := range []string{
		`{}`, `{"n":1,"l":[]}`, `{"n":100.00000000000001,"l":[7.0]}`, `{"n":1e400,"l":[]}`, `{"n":18446744073709551617,"l":[[7]]}`,
		`{"n":"5","l":{"7":7}}`, `{"n":null,"l":null}`, `{"n":-1e-400,"l":[70e-1]}`, `{"n":[],"l":"7"}`, `{"l":[1,{"x":[7]}],"n":1}`,
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := approval.Canonical([]byte(raw))
		if err != nil {
			return
		}
		r := call("support", "pay", agent.ClassOnce, args)
		v, terms := limit.Decide(r)
		again, _ := limit.Decide(r)
		if v != again || (terms != nil) != (v.Decision == agent.DecisionAsk) {
			t.Fatalf("%+v, then %+v, %+v", v, again, terms)
		}
		if e := limit.Explain(r); e.Verdict != v || len(e.String()) > 1<<14 {
			t.Fatalf("%+v explained as %+v", v, e.Verdict)
		}
		if v.Decision == agent.DecisionAllow && !small(args) {
			t.Fatalf("%s is allowed", args)
		}
	})
}

// FuzzCondition proves that no condition makes New or Decide panic, and that one which is accepted decides.
func FuzzCondition(f *testing.F) {
	for _, when := range []string{
		`args.a > 1`, `args.a.b.c[0] == args["x"]`, `args.re.matches(tool)`, `[1, args.a].exists(x, x > 1)`, `args == args`,
		`1 / 0 == 1`, `args.a.format([args.b]) == ""`, `{"a": args.a}.a == 1`, `type(args.a) == int`, `timestamp(args.a) > timestamp(0)`,
		`size(args) > 1 ? args.a : false`, `tool ==`, `"\xff"`, `args.map(k, args[k]).size() == 1`, `has(args.a.b)`, `b"x" == b"y"`,
	} {
		f.Add(when, `{"a":{"b":[1.5,18446744073709551617]},"re":"(a*)*","x":null}`)
	}
	f.Fuzz(func(t *testing.T, when, raw string) {
		if when == "" {
			return
		}
		p, err := policy.New(policy.Config{Rules: []policy.Rule{{Name: "r", When: when, Then: agent.DecisionDeny}}})
		if err != nil {
			return
		}
		args, err := approval.Canonical([]byte(raw))
		if err != nil {
			return
		}
		r := call("support", "pay", agent.ClassRead, args)
		v, _ := p.Decide(r)
		if e := p.Explain(r); e.Verdict != v || (v.Decision == agent.DecisionDeny) != (v.Rule == "r") {
			t.Fatalf("%+v, explained as %+v", v, e.Verdict)
		}
	})
}

// FuzzDecision proves that no change of a signed decision is accepted as that person's word.
func FuzzDecision(f *testing.F) {
	p := mustNew(f, shop(f))
	r, v, terms := pending(f, p)
	good := decide(f, r, agent.ChoiceApprove, "alice", "alice")
	f.Add(good.ID, string(good.Digest), string(good.Choice), good.Approver, good.Reason, good.Args, good.Signature)
	f.Add(good.ID, string(good.Digest), "cancel", "alice", "", "", "")
	f.Add(good.ID, string(good.Digest), "approve", "bob", "seen", "{}", good.Signature)
	f.Add("\xff", "\xfe", "", "\u202e", "\x00", "[", "-----BEGIN SSH SIGNATURE-----")
	f.Fuzz(func(t *testing.T, id, digest, choice, approver, reason, args, sig string) {
		d := agent.ApprovalDecision{
			ID: id, Digest: agent.Digest(digest), Choice: agent.Choice(choice), Approver: approver, Reason: reason, Args: args,
			Time: good.Time, Signature: sig,
		}
		_, err := p.Judge(policy.Judgement{Scope: scope, Request: r, Decision: d, At: good.Time, Verdict: v, Terms: terms})
		d.Signature = good.Signature
		if err == nil && d != good {
			t.Fatalf("%+v counts", d)
		}
		if err != nil && (refusal(t, err) == "" || len(err.Error()) > 2000) {
			t.Fatalf("%d bytes", len(err.Error()))
		}
	})
}

// small says by other means than the policy's that the limit and the list do not forbid the arguments.
func small(args string) bool {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var in struct {
		N json.Number `json:"n"`
		L []any       `json:"l"`
	}
	if d.Decode(&in) != nil || in.N == "" {
		return false
	}
	n, _, err := big.ParseFloat(string(in.N), 10, 10_000, big.ToZero)
	if err != nil || n.Cmp(big.NewFloat(100)) > 0 {
		return false
	}
	return !slices.ContainsFunc(in.L, func(x any) bool {
		v, ok := x.(json.Number)
		return ok && approval.NumberValue(string(v)) == "7e0"
	})
}
