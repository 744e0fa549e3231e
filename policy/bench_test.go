package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

// twenty is a policy of twenty rules of which the last one matches, so that every condition is evaluated.
func twenty(b *testing.B) *policy.Policy {
	b.Helper()
	c := policy.Config{Approvers: everybody(b)}
	for i := range 19 {
		c.Rules = append(c.Rules, policy.Rule{
			Name: fmt.Sprintf("r%d", i), Then: agent.DecisionDeny,
			When: fmt.Sprintf(`tool == "refund" && args.amount > %d && risk == "high" || resource.startsWith("customer %d/")`, i, i),
		})
	}
	c.Rules = append(c.Rules, policy.Rule{
		Name: "last", When: `effect == "once" && args.lines.all(l, l.price < 100)`, Then: agent.DecisionAsk,
		Approval: policy.Asking{By: []string{"finance"}, Quorum: 2},
	})
	return mustNew(b, c)
}

// BenchmarkDecide is to make at least 5,000 decisions a second on one core: at most 200,000 ns each.
func BenchmarkDecide(b *testing.B) {
	p := twenty(b)
	r := call("support", "refund", agent.ClassOnce,
		`{"amount":250,"lines":[{"name":"tea","price":3.5},{"name":"pot","price":20}],"order":"A-42","reason":"broken"}`)
	b.ReportAllocs()
	for b.Loop() {
		if v, _ := p.Decide(r); v.Rule != "last" {
			b.Fatalf("%+v", v)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

// BenchmarkHostileArguments is the time that arguments can take at most: one condition uses up its cost limit.
func BenchmarkHostileArguments(b *testing.B) {
	for name, when := range map[string]string{
		"loops":   `args.a.all(x, args.a.all(y, x == y))`,
		"regexp":  `args.s.matches("(x+x+)+y")`,
		"search":  `args.s.contains(args.t)`,
		"concat":  `args.a.map(x, args.s + args.s).size() > 3`,
		"reverse": `args.a.all(x, args.s.reverse() != "")`,
		"equal":   `args.a.all(x, args.a == args.a)`,
		"in":      `args.a.all(x, !("y" in args.a))`,
		"size":    `args.a.all(x, args.s.size() > 3)`,
		"format":  `args.a.all(x, "%s".format([args.a]) != "")`,
		"convert": `args.a.all(x, bytes(args.s) != b"")`,
		"sort":    `args.a.all(x, args.s < args.t || args.s == args.s)`,
	} {
		b.Run(name, func(b *testing.B) {
			p := mustNew(b, policy.Config{Rules: []policy.Rule{{Name: "r", When: when, Then: agent.DecisionDeny}}})
			long := strings.Repeat("x", 200_000)
			r := call("support", "pay", agent.ClassOnce,
				`{"a":[`+strings.Repeat("1,", 100_000)+`1],"s":"`+long+`","t":"`+long[:100_000]+`y"}`)
			for b.Loop() {
				p.Decide(r)
			}
		})
	}
}
