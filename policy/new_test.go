package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

// wrong returns what is wrong with a configuration, a line for each: path, rule, position, text.
func wrong(t *testing.T, c policy.Config) []string {
	t.Helper()
	p, err := policy.New(c)
	if err == nil {
		return nil
	}
	if p != nil {
		t.Error("a wrong policy is returned")
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	var out []string
	for _, one := range joined.Unwrap() {
		var e *policy.RuleError
		if !errors.As(one, &e) {
			t.Fatalf("%T: %v", one, one)
		}
		out = append(out, fmt.Sprintf("%s %s %d:%d %s", e.Path, e.Rule, e.Line, e.Column, e.Text))
	}
	return out
}

func TestNewSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	no := false
	then := agent.DecisionAllow
	rules := func(rs ...policy.Rule) policy.Config { return policy.Config{Rules: rs} }
	when := func(s string) policy.Config { return rules(policy.Rule{Name: "r", When: s, Then: then}) }
	asks := func(a policy.Asking) policy.Config {
		c := rules(policy.Rule{Name: "r", Then: agent.DecisionAsk, Approval: a})
		c.Approvers = everybody(t)
		return c
	}
	for name, x := range map[string]struct {
		config policy.Config
		want   []string // each begins so
	}{
		"nothing":        {policy.Config{}, nil},
		"all of it":      {shop(t), nil},
		"not CEL":        {when("tool =="), []string{"rules/0/when r 1:8 Syntax error"}},
		"no variable":    {when("tool == 'x' &&\n  arg.amount > 5"), []string{"rules/0/when r 2:3 undeclared reference to 'arg'"}},
		"wrong type":     {when("tool > 5"), []string{"rules/0/when r 1:6 found no matching overload"}},
		"not a truth":    {when("tool"), []string{"rules/0/when r 1:1 this is a string"}},
		"bad regexp":     {when(`tool.matches("(")`), []string{"rules/0/when r 1:14 invalid matches argument"}},
		"args whole":     {when(`args == {"a": 1}`), []string{"rules/0/when r 1:1 args cannot be used as a whole"}},
		"args in list":   {when(`[args].size() > 0`), []string{"rules/0/when r 1:2 args cannot be used as a whole"}},
		"huge double":    {when(`args.n > 1e16`), []string{"rules/0/when r 1:10 a double of this size is not exact"}},
		"growing text":   {when(`args.a.replace("x", args.b) == ""`), []string{"rules/0/when r 1:15 what replace looks for or puts in"}},
		"model's regexp": {when(`matches(args.a, args.b)`), []string{"rules/0/when r 1:8 what matches looks for"}},
		"big regexp":     {when("args.a.matches(\"(a{1,1000}){1,2}\")"), []string{"rules/0/when r 1:16 invalid matches argument"}},
		"long":           {when(strings.Repeat(" ", 5000) + "true"), []string{"rules/0/when r 0:0 a condition of 5004 bytes"}},
		"not UTF-8":      {when("tool == '\xff'"), []string{"rules/0/when r 0:0 the condition is not UTF-8"}},
		"deep":           {when(strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000)), []string{"rules/0/when r "}},

		"no then":       {rules(policy.Rule{Name: "r", When: "true"}), []string{"rules/0/then r 0:0 it does not say what to do"}},
		"unknown then":  {rules(policy.Rule{Name: "r", Then: "maybe"}), []string{`rules/0/then r 0:0 "maybe" is not known`}},
		"no name":       {rules(policy.Rule{Then: then}), []string{"rules/0/name  0:0 a rule's name has"}},
		"a taken name":  {rules(policy.Rule{Name: "no-rule", Then: then}), []string{"rules/0/name no-rule 0:0 this name is taken"}},
		"twice a name":  {rules(policy.Rule{Name: "r", When: "true", Then: then}, policy.Rule{Name: "r", Then: then}), []string{"rules/1/name r 0:0 another rule"}},
		"never reached": {rules(policy.Rule{Name: "r", Then: then}, policy.Rule{Name: "s", Then: then}), []string{`rules/1 s 0:0 this rule is never reached: rule "r"`}},
		"too many":      {rules(make([]policy.Rule, 201)...), []string{"rules  0:0 201 rules"}},
		"approval of an allow": {
			rules(policy.Rule{Name: "r", Then: then, Approval: policy.Asking{Quorum: 1}}),
			[]string{"rules/0/approval r 0:0 only a rule with then: ask"},
		},
		"an agent's": {
			policy.Config{Agents: map[string]policy.Layer{"a": {Posture: "wild", Rules: []policy.Rule{{Name: "r", When: "1", Then: then}}}}},
			[]string{`agents/a/posture  0:0 "wild" is not known`, "agents/a/rules/0/when r 1:1 this is a int"},
		},
		"words": {
			policy.Config{Posture: "x", Duplicates: "x", Uncertain: "x", OnFailure: "x"},
			[]string{"posture  0:0 ", "duplicates  0:0 ", "uncertain  0:0 ", "on_failure  0:0 "},
		},

		"unknown person":    {asks(policy.Asking{By: []string{"alice", "zoe"}}), []string{`rules/0/approval/by/1 r 0:0 "zoe" is no approver and no group`}},
		"person, no key":    {asks(policy.Asking{By: []string{"dan", "alice"}}), []string{`rules/0/approval/by/0 r 0:0 approver "dan" has no key`}},
		"quorum too large":  {asks(policy.Asking{By: []string{"finance"}, Quorum: 3}), []string{"rules/0/approval r 0:0 3 approvals are needed and 2"}},
		"quorum of anybody": {asks(policy.Asking{Quorum: 4}), []string{"rules/0/approval r 0:0 4 approvals are needed and 3"}},
		"negative":          {asks(policy.Asking{Quorum: -1, Expires: -1}), []string{"rules/0/approval/quorum r 0:0 ", "rules/0/approval/expires r 0:0 "}},
		"escalates late": {
			asks(policy.Asking{By: []string{"alice"}, Expires: time.Hour, Escalate: &policy.Escalation{After: time.Hour, To: []string{"bob"}}}),
			[]string{"rules/0/approval/escalate/after r 0:0 it would expire"},
		},
		"escalates from anybody": {
			asks(policy.Asking{Escalate: &policy.Escalation{After: time.Hour, To: []string{"bob"}}}),
			[]string{"rules/0/approval/escalate r 0:0 anybody may decide"},
		},
		"escalates to nobody": {
			asks(policy.Asking{By: []string{"alice"}, Escalate: &policy.Escalation{}}),
			[]string{"rules/0/approval/escalate/after r 0:0 ", "rules/0/approval/escalate/to r 0:0 nobody"},
		},
		"no keys at all": {
			policy.Config{
				Approvers:    map[string]policy.Approver{"dan": {Groups: []string{"g"}}},
				SelfApproval: &no, Approval: policy.Asking{By: []string{"g"}},
				Rights: policy.Rights{Settle: []string{"g"}, Compensate: []string{"x"}, Fork: []string{"y", "dan"}},
			},
			[]string{
				"self_approval  0:0 false means nothing", "approval  0:0 1 approvals are needed and 0",
				"rights/settle  0:0 none of them has a key", `rights/compensate/0  0:0 "x" is no approver`,
				`rights/fork/0  0:0 "y" is no approver`, `rights/fork/1  0:0 approver "dan" has no key`,
			},
		},
		"no keys, and unsigned accepted": {
			policy.Config{
				Approvers: map[string]policy.Approver{"dan": {Groups: []string{"g"}}}, SelfApproval: &no, AcceptUnsigned: true,
				Approval: policy.Asking{By: []string{"dan"}, Quorum: 1}, Rights: policy.Rights{Settle: []string{"g"}},
			}, nil,
		},
		"one key, two people": {
			policy.Config{Approvers: map[string]policy.Approver{"a": {Keys: []policy.Key{key(t, "k")}}, "b": {Keys: []policy.Key{key(t, "l"), key(t, "k")}}}},
			[]string{`approvers/b/keys/1  0:0 approver "a" has the same key`},
		},
		"people": {
			policy.Config{Approvers: map[string]policy.Approver{
				"Al": {}, "al": {Groups: []string{"Al", ""}, Keys: []policy.Key{{}}}, "x\u200b": {},
			}},
			[]string{
				`approvers/al  0:0 approver "Al" differs from it only in case`, `approvers/al/groups/0  0:0 "Al" cannot be a group`,
				`approvers/al/groups/1  0:0 "" cannot be a group`, "approvers/al/keys/0  0:0 there is no key", "approvers/x\u200b  0:0 a name has",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := wrong(t, x.config)
			for i := range got {
				if i < len(x.want) && strings.HasPrefix(got[i], x.want[i]) {
					got[i] = x.want[i]
				}
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARuleErrorSaysItsPlace(t *testing.T) {
	t.Parallel()
	e := &policy.RuleError{Path: "rules/2/when", Rule: "large", Line: 1, Column: 8, Text: "a mistake"}
	if got := e.Error(); got != `policy rules/2/when (rule "large"), line 1, column 8: a mistake` {
		t.Error(got)
	}
}
