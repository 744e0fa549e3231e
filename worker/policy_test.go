package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

func TestProblemsOfThePolicyHaveTheirPlaceAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := parseWith(nil, "/etc", `models: {main: {base_url: "http://127.0.0.1:1/v1"}}
agents:
  hello:
    instructions: Hi.
    policy:
      rules:
      - {name: own, when: args.n + , then: deny}
policy:
  rules:
  - name: one
    when: tool = "x"
    then: allow
  - name: one
    when: 1 + 1
    then: ask
    approval: {by: [nobody]}
  - {name: none, when: 'true'}
  approvers:
    alice: {keys: ['`+alice+`']}
    bob: {keys: ['`+alice+`']}
`)
	var got []string
	for _, p := range problemsOf(t, err) {
		got = append(got, fmt.Sprintf("%d:%d", p.Line, p.Column))
		if p.File != "holdfast.yaml" || p.Excerpt == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, want := range []string{"7:", "11:16", "13:11", "14:11", "16:21", "17:5", "20:"} {
		found := false
		for _, g := range got {
			found = found || strings.HasPrefix(g, want)
		}
		if !found {
			t.Errorf("no problem at %s among %v:\n%v", want, got, err)
		}
	}
	for _, want := range []string{`rule "one": `, `rule "own": `, `"nobody"`, "has the same key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// A part of the policy that cannot be read says so once: what it leaves out is not complained about as well.
func TestAMistypedWordOfThePolicyIsOneProblem(t *testing.T) {
	t.Parallel()
	_, err := parseWith(nil, "/etc", least+"policy: {rules: [{name: a, then: alow}]}\n")
	if got := problemsOf(t, err); len(got) != 1 {
		t.Errorf("problems: %v", got)
	}
}

func TestThePolicyIsReadWithoutASecretAndWithoutOtherFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	write(t, path, `models: {main: {key: env:HOLDFAST_TEST_NOT_SET}}
tools:
  pay:
    description: Pays.
    parameters: {type: object, properties: {n: {type: integer}}, required: [n]}
    http: {url: "https://pay.example/x", headers: {Authorization: "Bearer ${env:HOLDFAST_TEST_NOT_SET}"}}
agents: {a: {instructions: 'file:no-such-file', tools: [pay]}}
policy: {rules: [{name: small, when: args.n < 5, then: allow}]}
`)
	c, err := LoadPolicy(path)
	if err != nil {
		t.Fatal(err)
	}
	r := c.CheckPolicy()
	want := []VerdictReport{{Agent: "a", Tool: "pay", Can: []policy.Possible{{Decision: agent.DecisionAllow, Rule: "small"}, {Decision: agent.DecisionAsk, Rule: "no-rule"}}}}
	if diff := cmp.Diff(want, r.Policy.Verdicts); diff != "" || !r.OK() {
		t.Error(diff, r.Problems)
	}
	answer, err := ExplainPolicy(t.Context(), path, Question{Tool: "pay", Args: `{"n":7}`})
	if err != nil {
		t.Fatal(err)
	}
	if v := answer.Verdict; v.Decision != agent.DecisionAsk || v.Rule != policy.RuleNoRule || answer.Agent != "a" {
		t.Errorf("answer: %+v", answer)
	}
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "read it with Load") {
		t.Errorf("it could be run: %v", err)
	}
}

func TestAServerIsStartedOnlyForAQuestionAboutItsTool(t *testing.T) {
	t.Parallel()
	yaml, starts := mcpYAML(t)
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	write(t, path, strings.Replace(least, "{ins", "{tools: [files.act, clock], ins", 1)+"tools: {files: "+yaml+"}\n")
	ask := func(name string) (*Answer, error) {
		return ExplainPolicy(t.Context(), path, Question{Tool: name}, goTool(t, "clock"))
	}
	if a, err := ask("clock"); err != nil || a.Verdict.Decision != agent.DecisionAllow || starts() != 0 {
		t.Fatalf("%v, %v, %d starts", a, err, starts())
	}
	for _, name := range []string{"files.act", "files__act"} {
		before := starts()
		a, err := ask(name)
		if err != nil || a.Verdict.Decision != agent.DecisionAsk || a.Tool != "files__act" || starts() != before+1 {
			t.Errorf("%s: %v, %v, %d starts", name, a, err, starts())
		}
	}
	// Listed by no agent, and the only agent is the one that would ask.
	if a, err := ask("files.look"); err != nil || a.Verdict.Rule != policy.RuleNotListed {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := ask("files.lok"); err == nil || !strings.Contains(err.Error(), "there is no tool") {
		t.Error(err)
	}
}

func TestAQuestionThatCannotBeAnsweredSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	write(t, path, `models: {main: {base_url: "http://127.0.0.1:1/v1"}}
agents: {one: {instructions: x, tools: [clock]}, two: {instructions: x, tools: [clock]}}
tools: {files: {mcp: {command: [/no/such/program]}}}
`)
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{Tool: "clok"}, `there is no tool "clok"; did you mean "clock"? there are: clock, files.*`},
		{Question{Tool: "clock"}, "several agents list the tool \"clock\"; name one with --agent: one, two"},
		{Question{Tool: "clock", Agent: "tow"}, `there is no agent "tow"; did you mean "two"?`},
		{Question{Tool: "clock", Agent: "one", Args: "[1]"}, "the arguments: "},
		{Question{Tool: "clock", Agent: "one", Args: `{"a":1,"a":2}`}, "the arguments: "},
		{Question{Tool: "files.read"}, "/no/such/program"},
	} {
		_, err := ExplainPolicy(t.Context(), path, tt.q, goTool(t, "clock"))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.q, err)
		}
	}
}

func TestACheckSaysWhatThePolicyIsAndWhatIsSeldomMeant(t *testing.T) {
	t.Parallel()
	r := check(t, nil, strings.Replace(least, "{ins", "{tools: [pay, wipe, look], policy: {posture: plan}, ins", 1)+`
tools:
  pay:
    description: Pays.
    risk: high
    compensate: {tool: refund, args: {n: args.n}}
    http:
      url: "http://127.0.0.1:1/pay"
      reconcile: {url: "http://127.0.0.1:1/{key}", found: status == 200, absent: status == 404}
  refund: {description: Refunds., http: {url: "http://127.0.0.1:1/refund"}}
  wipe: {description: Wipes., irreversible: true, http: {url: "http://127.0.0.1:1/wipe"}}
  look: {description: Looks., effect: read, http: {url: "http://127.0.0.1:1/"}}
policy:
  rules:
  - {name: small, when: tool == "pya" && args.n < 5, then: allow}
  - {name: large, when: 'tool in ["pay", "wipe"]', then: ask, approval: {by: [finance], escalate: {after: 90m, to: [bob]}}}
  approvers:
    alice: {groups: [finance], keys: ['`+alice+`']}
    bob: {keys: [{key: '`+bob+`', expires: 2020-01-01}]}
  unsigned: accept
`)
	if !r.OK() {
		t.Fatal(r.Problems)
	}
	text := printed(t, r)
	for _, want := range []string{
		"posture auto", "posture      plan for agent hello",
		"alice  finance  SHA256:V0NL+kblML4ohKMoEnwl4OglpZk77M25tDobo87jUFw  ssh-ed25519, alice@example.com",
		"until 2020-01-01T00:00:00Z, EXPIRED",
		"1 of finance, within 24h, after 1h30m also bob",
		"hello  pay   deny (posture-plan)", "hello  look  allow (no-rule)",
		"once (not declared), high risk", "undone by refund", "irreversible",
		"hint: unsigned: accept",
		"hint: a condition of small that cannot be evaluated asks by the default approval, and anybody may give that",
		"hint: every call of hello: pay, hello: wipe is denied",
		`hint: rule small speaks of the tool "pya", which there is not; did you mean "pay"?`,
		"hint: pay says how to ask what became of a call and its effect is once",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestWhatUndoesAnEffectMustBeATool(t *testing.T) {
	t.Parallel()
	r := check(t, nil, least+`tools:
  pay: {description: x, compensate: {tool: refnd}, http: {url: "http://127.0.0.1:1/"}}
  pay2: {description: x, compensate: {tool: pay2}, http: {url: "http://127.0.0.1:1/"}}
  pay3: {description: x, compensate: {tool: look}, http: {url: "http://127.0.0.1:1/"}}
  pay4: {description: x, compensate: {tool: refund}, http: {url: "http://127.0.0.1:1/"}}
  refund: {description: x, http: {url: "http://127.0.0.1:1/"}}
  look: {description: x, effect: read, http: {url: "http://127.0.0.1:1/"}}
`)
	want := []string{`"refnd", which there is not; did you mean "refund"?`, "which is itself", "which only reads"}
	if len(r.Problems) != len(want) {
		t.Fatal(r.Problems)
	}
	for i, w := range want {
		if p := r.Problems[i]; p.Line != 7+i || p.Column < 40 || !strings.Contains(p.Message, w) {
			t.Errorf("problem %v does not say %q", p, w)
		}
	}
}

func TestAChangedPolicyDecidesNext(t *testing.T) {
	t.Parallel()
	rule := func(then string) string {
		return strings.Replace(least, "{ins", "{tools: [pay], ins", 1) +
			"tools: {pay: {description: x, http: {url: 'http://127.0.0.1:1/'}}}\n" +
			"policy: {rules: [{name: r, then: " + then + "}]}\n"
	}
	b := startLive(t, withSerial("1", rule("allow")))
	decide := func() agent.Verdict {
		s := b.snapshot()
		v, _ := s.Policy.Decide(policy.Request{Agent: s.Agents["hello"], Tool: "pay", Class: agent.ClassOnce, Args: "{}"})
		return v
	}
	first := decide()
	b.write(withSerial("1", rule("deny")))
	b.looks()
	if got := decide(); got != first || got.Decision != agent.DecisionAllow {
		t.Errorf("without a higher serial: %+v", got)
	}
	b.write(withSerial("2", rule("deny")))
	b.looks()
	if got := decide(); got.Decision != agent.DecisionDeny || got.Policy == first.Policy {
		t.Errorf("with a higher serial: %+v after %+v: %s", got, first, b.log)
	}
	b.write(withSerial("3", strings.Replace(rule("allow"), "name: r", "name: r, when: wrong", 1)))
	b.looks()
	if got := decide(); got.Decision != agent.DecisionDeny || !strings.Contains(b.log.String(), "stays in force") {
		t.Errorf("after a broken one: %+v: %s", got, b.log)
	}
}

func TestAToolsAskingReachesTheTool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompt.md"), []byte("Hi."), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "key.txt"), "sk-from-file\n")
	c, err := parseWith(map[string]string{"SEAL": "seal-value", "TOKEN": "token-value"}, dir, whole)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Tools["refund"].httpConfig("refund")
	if got.Risk != agent.RiskHigh || got.Compensate.Tool != "void" || got.AbsentAfter.String() != "2m0s" {
		t.Errorf("harm: %+v", got)
	}
	want := &tool.HTTPAsk{
		URL: "https://pay.example/refunds/{key}", Query: []string{"order"}, Headers: map[string]string{"Accept": "application/json"},
		HeaderRefs: map[string]string{}, Found: "status == 200", Absent: "status == 404",
	}
	if diff := cmp.Diff(want, got.Reconcile); diff != "" {
		t.Error(diff)
	}
	file := c.Tools["files"].mcpConfig("files").Tools["write_file"]
	if !file.Irreversible || file.Risk != agent.RiskLow || file.Reconcile.Tool != "read_file" || file.Observe.Tool != "stat" {
		t.Errorf("declaration: %+v", file)
	}
}

func TestProblemsOfWhatAToolAsksHaveTheirPlace(t *testing.T) {
	t.Parallel()
	r := check(t, nil, least+`tools:
  pay:
    description: x
    effect: reconcilable
    http:
      url: "http://127.0.0.1:1/"
      reconcile:
        url: "http://127.0.0.1:1/{key}"
        found: status ==
          wrong
  look:
    description: x
    http: {url: "http://127.0.0.1:1/", observe: {url: "http://127.0.0.1:1/{ky}"}}
  undo:
    description: x
    compensate: {tool: pay, args: {n: 'args.n + ''x'' + wrong.n'}}
    http: {url: "http://127.0.0.1:1/"}
  files:
    mcp: {command: [/no/such/program]}
    tools:
      act: {effect: reconcilable, reconcile: {tool: look, found: text == wrong}}
`)
	var got []string
	for _, p := range r.Problems {
		got = append(got, fmt.Sprintf("%d:%d", p.Line, p.Column))
		if strings.Contains(p.Message, "line 1, column") {
			t.Errorf("two places in one: %v", p)
		}
	}
	if diff := cmp.Diff([]string{"15:11", "18:49", "21:57", "26:74"}, got); diff != "" {
		t.Error(diff, r.Problems)
	}
}
