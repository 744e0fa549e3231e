package tool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// declaredMCP starts the hand-written server with its tool "twice" declared so.
func declaredMCP(t *testing.T, d Declaration, env ...string) *MCPServer {
	t.Helper()
	cfg := helper(t, "raw", env...)
	if d.Class == "" {
		d.Class = agent.ClassReconcilable
	}
	d.Timeout = 10 * time.Second
	cfg.Tools = map[string]Declaration{"twice": d}
	return startMCP(t, cfg)
}

func reconcileMCP(t *testing.T, m *MCPServer, name, args string) (Finding, Result, error) {
	t.Helper()
	r, ok := AsReconciler(toolOf(t, m, name))
	if !ok {
		t.Fatal("the tool cannot be asked")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return r.Reconcile(ctx, Call{Key: key, Args: args})
}

func TestAnotherToolOfTheServerSaysWhatBecameOfACall(t *testing.T) {
	t.Parallel()
	const absent = `error && text == "no such order"`
	for title, c := range map[string]struct {
		ask  MCPAsk
		want Finding
		text string // of the result, or of the error
	}{
		"found by its text":       {MCPAsk{Tool: "slow", Found: `text == "at last"`, Absent: absent}, Found, "at last"},
		"found by its body":       {MCPAsk{Tool: "number", Found: `body.n == 9007199254740993`, Absent: absent}, Found, `{"n":9007199254740993,"m":123456789012345678901234567890}`},
		"absent":                  {MCPAsk{Tool: "fail", Found: `!error`, Absent: absent}, Absent, ""},
		"neither":                 {MCPAsk{Tool: "slow", Found: `error`, Absent: absent}, Unknown, "at last: neither"},
		"cannot be told":          {MCPAsk{Tool: "slow", Found: `body.id == 1`, Absent: absent}, Unknown, "found cannot be told"},
		"refused by the protocol": {MCPAsk{Tool: "refuse", Found: `!error`, Absent: `error`}, Unknown, "amount is missing"},
		"no answer":               {MCPAsk{Tool: "die", Found: `!error`, Absent: `error`}, Unknown, "ended"},
		"garbage":                 {MCPAsk{Tool: "garbage", Found: `!error`, Absent: `error`}, Unknown, ""},
		"masked":                  {MCPAsk{Tool: "secret", Found: `text.contains("hunter22secret")`}, Found, "the token is [secret]"},
		"masked trouble":          {MCPAsk{Tool: "secret", Found: `error`}, Unknown, "the token is [secret]: neither"},
		"arguments and key": {MCPAsk{
			Tool: "echo", Args: map[string]string{"reference": "key", "amount": "args.amount", "what": `"order " + args.order`},
			Found: `body.arguments.reference == key && body.arguments.what == "order 42" && args.order == "42"`,
		}, Found, `"arguments":{"amount":123456789012345678901234567890.10,"reference":"` + key + `","what":"order 42"}`},
		"an argument that is not there": {MCPAsk{Tool: "echo", Args: map[string]string{"a": "args.none"}, Found: `true`}, Unknown, `argument "a"`},
		"the key only in the arguments": {MCPAsk{Tool: "echo", Found: `!text.contains("` + key + `") && !text.contains("` + MCPKey + `")`}, Found, `"name":"echo"`},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			m := declaredMCP(t, Declaration{Reconcile: &c.ask})
			got, r, err := reconcileMCP(t, m, "twice", `{"amount":123456789012345678901234567890.10,"order":"42"}`)
			text := string(r.Data)
			if err != nil {
				text = err.Error()
			}
			if got != c.want || (got == Unknown) != (err != nil) || !strings.Contains(text, c.text) {
				t.Errorf("%s, %q, %v; want %s and %q", got, r.Data, err, c.want, c.text)
			}
			if strings.Contains(text, "hunter22") {
				t.Errorf("a secret is shown: %s", text)
			}
		})
	}
}

func TestAnotherToolOfTheServerSaysWhatStateTheTargetIsIn(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct{ tool, want, err string }{
		"structured": {"number", `{"m":123456789012345678901234567890,"n":9007199254740993}`, ""},
		"text":       {"slow", "at last", ""},
		"masked":     {"secret", "the token is [secret]", ""},
		"an error":   {"fail", "", "which is no state"},
		"refused":    {"refuse", "", "amount is missing"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			m := declaredMCP(t, Declaration{Class: agent.ClassOnce, Observe: &MCPAsk{Tool: c.tool}})
			tool := toolOf(t, m, "twice")
			if _, ok := AsReconciler(tool); ok {
				t.Error("the tool says that it can be asked what became of a call")
			}
			o, ok := AsObserver(tool)
			if !ok {
				t.Fatal("the tool does not observe")
			}
			r, err := o.Observe(t.Context(), Call{Key: key, Args: `{}`})
			if string(r.Data) != c.want || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v", r.Data, err)
			}
		})
	}
}

func TestAnAskedToolThatChangedOnTheServerIsNotAsked(t *testing.T) {
	t.Parallel()
	cfg := helper(t, "changes") // its "echo" has another description each time
	cfg.Tools = map[string]Declaration{"twice": {Class: agent.ClassReconcilable, Reconcile: &MCPAsk{Tool: "echo", Found: "true"}}}
	m := startMCP(t, cfg)
	wantMCPText(t, m, "changed", "changed")
	f, _, err := reconcileMCP(t, m, "twice", `{}`)
	if f != Unknown || err == nil || !strings.Contains(err.Error(), "tool changed on the server") {
		t.Errorf("%s, %v", f, err)
	}
}

func TestATrustedServersWordAloneMakesNothingReconcilable(t *testing.T) {
	t.Parallel()
	cfg := helper(t, "raw")
	cfg.Trusted = true
	m := startMCP(t, cfg)
	for _, tool := range m.Tools() {
		_, reconciles := AsReconciler(tool)
		_, observes := AsObserver(tool)
		_, cancels := AsCanceller(tool)
		if reconciles || observes || cancels {
			t.Errorf("%s: %t %t %t", tool.Spec().Name, reconciles, observes, cancels)
		}
	}
}

func TestBadAsksOfMCPToolsAreFoundBeforeTheServerStarts(t *testing.T) {
	t.Parallel()
	for want, tools := range map[string]map[string]Declaration{
		"asks the tool itself":       {"pay": {Class: "reconcilable", Reconcile: &MCPAsk{Tool: "pay", Found: "true"}}},
		"which is declared once":     {"pay": {Observe: &MCPAsk{Tool: "void"}}, "void": {Class: "once"}},
		"reconcile: found is empty":  {"pay": {Reconcile: &MCPAsk{Tool: "paid"}}},
		`reconcile: found: "errors"`: {"pay": {Reconcile: &MCPAsk{Tool: "paid", Found: "errors"}}},
		`observe: argument "a": "x"`: {"pay": {Observe: &MCPAsk{Tool: "paid", Args: map[string]string{"a": "x"}}}},
		"observe: found and absent":  {"pay": {Observe: &MCPAsk{Tool: "paid", Found: "true"}}},
		"it only reads, so nothing":  {"pay": {Class: "read", Reconcile: &MCPAsk{Tool: "paid", Found: "true"}}},
		"absent_after is the delay":  {"pay": {AbsentAfter: time.Second}},
	} {
		if _, err := checkMCP(MCPConfig{Name: "s", Command: []string{"x"}, Tools: tools}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestAnAskedToolThatTheServerDoesNotListIsAProblemOfTheAskingOneOnly(t *testing.T) {
	t.Parallel()
	m := declaredMCP(t, Declaration{Reconcile: &MCPAsk{Tool: "nowhere", Found: "true"}})
	for _, l := range m.Listing() {
		if want := l.Tool == "twice"; want != strings.Contains(l.Problem, `it asks "nowhere"`) {
			t.Errorf("%s: problem %q", l.Tool, l.Problem)
		}
	}
	wantMCPText(t, m, "pid", mustCall(t, m, "pid", `{}`))
}

// The real thing: a server from npm that somebody else wrote says whether it has what a call should have made.
func TestNPMServerMemoryCanBeAsked(t *testing.T) {
	t.Parallel()
	cfg := npmServer(t, "mcp-server-memory")
	cfg.Env = []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.json")}
	asked := &MCPAsk{
		Tool: "open_nodes", Args: map[string]string{"names": "[args.entities[0].name]"},
		Found:  "!error && body.entities.exists(e, e.name == args.entities[0].name)",
		Absent: "!error && body.entities.size() == 0",
	}
	cfg.Tools = map[string]Declaration{"create_entities": {
		Class: agent.ClassReconcilable, Reconcile: asked, AbsentAfter: time.Second, Risk: agent.RiskLow,
		Observe:    &MCPAsk{Tool: "open_nodes", Args: asked.Args},
		Compensate: &Compensation{Tool: MCPName("npm", "delete_entities"), Args: map[string]string{"entityNames": "[args.entities[0].name]"}},
	}}
	m := startMCP(t, cfg)
	const args = `{"entities":[{"entityType":"root","name":"holdfast","observations":["grips rock"]}]}`
	o, _ := AsObserver(toolOf(t, m, "create_entities"))
	before, err := o.Observe(t.Context(), Call{Key: key, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if f, _, err := reconcileMCP(t, m, "create_entities", args); f != Absent || err != nil {
		t.Errorf("before: %s, %v", f, err)
	}
	mustCall(t, m, "create_entities", args)
	f, r, err := reconcileMCP(t, m, "create_entities", args)
	if f != Found || err != nil || !strings.Contains(string(r.Data), "grips rock") {
		t.Errorf("after: %s, %q, %v", f, r.Data, err)
	}
	if after, err := o.Observe(t.Context(), Call{Key: key, Args: args}); err != nil || string(after.Data) == string(before.Data) {
		t.Errorf("the state is %q before and %q after, %v", before.Data, after.Data, err)
	}
	if _, err := os.Stat(strings.TrimPrefix(cfg.Env[0], "MEMORY_FILE_PATH=")); err != nil {
		t.Error(err)
	}
}
