package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

func parseWith(env map[string]string, dir, text string) (*Config, error) {
	return parse("holdfast.yaml", dir, []byte(text), &references{lookup: func(name string) (string, bool) {
		s, ok := env[name]
		return s, ok
	}})
}

func problemsOf(t *testing.T, err error) []Problem {
	t.Helper()
	var e *ConfigError
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want a *ConfigError", err)
	}
	return e.Problems
}

const least = `
models:
  main: {base_url: "http://127.0.0.1:1/v1"}
agents:
  hello: {instructions: Say hello.}
`

func TestTheLeastFileHasDefaultsForEverythingElse(t *testing.T) {
	t.Parallel()
	c, err := parseWith(nil, "/etc/holdfast", least)
	if err != nil {
		t.Fatal(err)
	}
	if c.Serial != 1 || c.Store.URL != "file:///etc/holdfast/.holdfast/store" {
		t.Errorf("serial %d, store %q", c.Serial, c.Store.URL)
	}
	m := c.Models["main"]
	if m.Model != "main" || !m.Stream || m.Timeout.Attempt != 5*time.Minute || m.Temperature != nil {
		t.Errorf("model: %+v", m)
	}
	a := c.Agents["hello"]
	if a.Model != "main" {
		t.Errorf("the only model is the default one, got %q", a.Model)
	}
	if diff := cmp.Diff(agent.Limits{Steps: 100, Calls: 256, Faults: 5, Wait: agent.Duration(24 * time.Hour)}, a.Limits); diff != "" {
		t.Error(diff)
	}
	if c.Worker.TaskQueue != "holdfast" || c.Worker.Health != "" || c.Worker.StopTimeout != 30*time.Second {
		t.Errorf("worker: %+v", c.Worker)
	}
}

const whole = `
serial: 7
store:
  url: file://./store
  seal: env:SEAL
models:
  main:
    base_url: https://models.example/v1
    model: gpt-5
    key: file:key.txt
    prices: {input: 1.25, cached_input: 0.125, output: 10}
    limits: {concurrency: 4, output_tokens: 4096}
    timeouts: {attempt: 1m, call: 10m, idle: 20s, heartbeat: 10s}
    stream: false
    temperature: 0.2
tools:
  refund:
    description: Refund an order.
    effect: idempotent
    window: 48h
    timeout: 20s
    identity: [order]
    resource: order/{order}
    risk: high
    compensate: {tool: void, args: {refund: result.id}}
    absent_after: 2m
    parameters:
      type: object
      required: [order]
      properties:
        order: {type: integer, maximum: 123456789012345678901234567890}
        share: {type: number, minimum: 0.10, default: 1e400}
        note: {type: string, pattern: "^a<b$"}
    http:
      method: POST
      url: https://pay.example/orders/{order}/refund
      headers:
        Authorization: Bearer ${env:TOKEN}
        X-Team: ops
      query: [share]
      body: json
      allow_private: true
      max_result: 1MiB
      reconcile:
        method: GET
        url: https://pay.example/refunds/{key}
        query: [order]
        headers: {Accept: application/json}
        found: status == 200
        absent: status == 404
      observe: {url: "https://pay.example/orders/{order}"}
  files:
    mcp:
      command: [npx, files]
      env: {ROOT: /srv, FILES_TOKEN: env:TOKEN}
      max_result: 1MiB
      concurrency: 2
    trusted: true
    list_timeout: 5s
    tools:
      write_file:
        effect: idempotent
        window: 1h
        timeout: 5s
        identity: [path]
        resource: file/{path}
        risk: low
        irreversible: true
        absent_after: 1s
        reconcile: {tool: read_file, args: {path: args.path}, found: text == args.text, absent: error}
        observe: {tool: stat, args: {path: args.path}}
agents:
  support:
    instructions: file:prompt.md
    model: main
    tools: [refund, files.*, local_go]
    limits:
      {steps: 9, calls: 2, tokens: 1000, cost: 0.500001, effects: 5, time: 10m, faults: 3, wait: 1h, continue_after: 4,
       session: {steps: 90, tokens: 10000, cost: 5, effects: 50, time: 100m}}
    upgrade: pin
    policy:
      posture: ask
      rules:
      - {name: no-notes, when: tool == "refund" && has(args.note), then: deny}
policy:
  posture: plan
  rules:
  - name: small
    when: tool == "refund" && args.share < 0.5
    then: allow
  - name: large
    then: ask
    approval: {by: [finance], quorum: 2, expires: 1h, escalate: {after: 30m, to: [bob]}}
  approval: {by: [alice], quorum: 1, expires: 2h}
  approvers:
    alice:
      groups: [finance]
      keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOy7UPydo52Htle/gCNxRMdf6OS7SPX6hI6fuEHVVUZs alice@example.com"]
    bob:
      groups: [finance, boss]
      keys:
      - key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF5lKkHUbkT8yk2sWJOuJzDMuTrPbFhV1tITukdrWOHm bob@example.com
        expires: 2027-01-31
        revoked: true
  self_approval: false
  unsigned: accept
  duplicates: deny
  uncertain: tell
  on_failure: compensate
  upgrade: ask
  rights: {settle: [finance], compensate: [alice, bob], fork: [bob]}
limits: {result: 48KiB, cache: 1GiB}
worker:
  task_queue: team
  deployment: team-agents
  concurrency: 3
  health: 127.0.0.1:8080
  stop_timeout: 5s
  sticky_timeout: 2s
  tool_heartbeat: 3s
`

func TestEveryFieldOfTheFileArrives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key.txt"), "sk-from-file\n")
	write(t, filepath.Join(dir, "prompt.md"), "# Support\nBe kind.\n")
	c, err := parseWith(map[string]string{"SEAL": "seal-value", "TOKEN": "token-value"}, dir, whole)
	if err != nil {
		t.Fatal(err)
	}
	temperature := float32(0.2)
	schema := `{"type":"object","required":["order"],"properties":{` +
		`"order":{"type":"integer","maximum":123456789012345678901234567890},` +
		`"share":{"type":"number","minimum":0.10,"default":1e400},` +
		`"note":{"type":"string","pattern":"^a<b$"}}}`
	secretValue := func(written, resolved string) Value { return Value{written, resolved, true} }
	literal := func(s string) Value { return Value{written: s, resolved: s} }
	want := &Config{
		Serial: 7,
		Store:  Store{URL: "file://" + dir + "/store", Seal: secretValue("env:SEAL", "seal-value")},
		Models: map[string]Model{"main": {
			BaseURL: "https://models.example/v1", Model: "gpt-5", Key: secretValue("file:key.txt", "sk-from-file"),
			Prices: Prices{1.25, 0.125, 10}, Limits: ModelLimits{4, 4096},
			Timeout:     ModelTimeouts{time.Minute, 10 * time.Minute, 20 * time.Second, 10 * time.Second},
			Temperature: &temperature,
		}},
		Tools: map[string]Tool{
			"refund": {
				Description: "Refund an order.", Effect: agent.ClassIdempotent, Window: 48 * time.Hour,
				Timeout: 20 * time.Second, Parameters: []byte(schema), Identity: []string{"order"},
				Resource: "order/{order}", ListTimeout: time.Minute,
				Harm: Harm{
					Risk:        agent.RiskHigh,
					Compensate:  &tool.Compensation{Tool: "void", Args: map[string]string{"refund": "result.id"}},
					AbsentAfter: 2 * time.Minute,
				},
				HTTP: &HTTP{
					Method: "POST", URL: "https://pay.example/orders/{order}/refund",
					Headers: map[string]Value{
						"Authorization": secretValue("Bearer ${env:TOKEN}", "Bearer token-value"),
						"X-Team":        literal("ops"),
					},
					Query: []string{"share"}, Body: "json", AllowPrivate: true, MaxResult: 1 << 20,
					Reconcile: &HTTPAsk{
						Method: "GET", URL: "https://pay.example/refunds/{key}", Query: []string{"order"},
						Headers: map[string]Value{"Accept": literal("application/json")},
						Found:   "status == 200", Absent: "status == 404",
					},
					Observe: &HTTPAsk{Method: "GET", URL: "https://pay.example/orders/{order}"},
				},
			},
			"files": {
				MCP: &MCP{
					Command:   []string{"npx", "files"},
					Env:       map[string]Value{"ROOT": literal("/srv"), "FILES_TOKEN": secretValue("env:TOKEN", "token-value")},
					MaxResult: 1 << 20, Concurrency: 2,
				},
				Trusted: true, ListTimeout: 5 * time.Second,
				Tools: map[string]Declaration{"write_file": {
					Effect: agent.ClassIdempotent, Window: time.Hour, Timeout: 5 * time.Second,
					Identity: []string{"path"}, Resource: "file/{path}",
					Harm: Harm{Risk: agent.RiskLow, Irreversible: true, AbsentAfter: time.Second},
					Reconcile: &tool.MCPAsk{
						Tool: "read_file", Args: map[string]string{"path": "args.path"}, Found: "text == args.text", Absent: "error",
					},
					Observe: &tool.MCPAsk{Tool: "stat", Args: map[string]string{"path": "args.path"}},
				}},
			},
		},
		Agents: map[string]Agent{"support": {
			Instructions: "# Support\nBe kind.", Model: "main", Tools: []string{"refund", "files.*", "local_go"},
			Limits: agent.Limits{
				Steps: 9, Calls: 2, Tokens: 1000, Micros: 500001, Effects: 5, Time: agent.Duration(10 * time.Minute),
				Faults: 3, Wait: agent.Duration(time.Hour), ContinueAfter: 4,
				Session: &agent.Budget{
					Steps: 90, Tokens: 10000, Micros: 5000000, Effects: 50, Time: agent.Duration(100 * time.Minute),
				},
			},
			Upgrade: agent.UpgradePin,
			Policy: policy.Layer{
				Posture: policy.PostureAsk,
				Rules:   []policy.Rule{{Name: "no-notes", When: `tool == "refund" && has(args.note)`, Then: agent.DecisionDeny}},
			},
		}},
		Policy: policy.Config{
			Posture: policy.PosturePlan,
			Rules: []policy.Rule{
				{Name: "small", When: `tool == "refund" && args.share < 0.5`, Then: agent.DecisionAllow},
				{Name: "large", Then: agent.DecisionAsk, Approval: policy.Asking{
					By: []string{"finance"}, Quorum: 2, Expires: time.Hour,
					Escalate: &policy.Escalation{After: 30 * time.Minute, To: []string{"bob"}},
				}},
			},
			Approval: policy.Asking{By: []string{"alice"}, Quorum: 1, Expires: 2 * time.Hour},
			Approvers: map[string]policy.Approver{
				"alice": {Groups: []string{"finance"}, Keys: []policy.Key{{Key: publicKey(t, alice), Comment: "alice@example.com"}}},
				"bob": {Groups: []string{"finance", "boss"}, Keys: []policy.Key{{
					Key: publicKey(t, bob), Comment: "bob@example.com",
					Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), Revoked: true,
				}}},
			},
			SelfApproval: new(bool), AcceptUnsigned: true,
			Duplicates: policy.RepeatDeny, Uncertain: policy.DoubtTell, OnFailure: agent.UnwindCompensate,
			Rights: policy.Rights{Settle: []string{"finance"}, Compensate: []string{"alice", "bob"}, Fork: []string{"bob"}},
		},
		Upgrade: agent.UpgradeAsk,
		Limits:  Limits{Result: 48 << 10, Cache: 1 << 30},
		Worker:  Worker{"team", "team-agents", 3, "127.0.0.1:8080", 5 * time.Second, 2 * time.Second, 3 * time.Second},
	}
	opts := cmp.Options{
		cmp.Comparer(func(a, b Value) bool { return a == b }),
		cmp.FilterPath(func(p cmp.Path) bool {
			return strings.HasSuffix(p.String(), "source") || strings.HasSuffix(p.String(), "mask")
		}, cmp.Ignore()),
	}
	if diff := cmp.Diff(want, c, opts, cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
}

// Public keys of people.
const (
	alice = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOy7UPydo52Htle/gCNxRMdf6OS7SPX6hI6fuEHVVUZs alice@example.com"
	bob   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF5lKkHUbkT8yk2sWJOuJzDMuTrPbFhV1tITukdrWOHm bob@example.com"
)

func publicKey(t *testing.T, line string) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAllProblemsAreReportedAtOnceInTheFilesOrder(t *testing.T) {
	t.Parallel()
	_, err := parseWith(nil, "/etc", `serial: -1
models:
  main:
    modle: gpt
    key: env:NO_SUCH_KEY
    stream: "yes"
tools:
  pay:
    effect: twice
    http: {method: post}
  pay:
    http: {url: "https://x.example"}
agents:
  hello:
    instructions: Hi.
    model: mian
    tools: [pay, pay, files.read]
`)
	var got []string
	for _, p := range problemsOf(t, err) {
		first, _, _ := strings.Cut(p.Message, ";")
		got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, first))
	}
	want := []string{
		"1:9 serial is a number",
		`4:5 unknown field "modle" in models.main`,
		"5:10 models.main.key needs the environment variable NO_SUCH_KEY, which is not set",
		"6:13 models.main.stream is text",
		"9:5 tools.pay has no description",
		`9:13 tools.pay.effect is "twice"`,
		"10:11 http has no url",
		`10:20 http.method is "post"`,
		`11:3 "pay" is given twice, first in line 8`,
		`16:12 agents.hello names the model "mian", which models does not have`,
		`17:18 agents.hello lists the tool "pay" twice, first at position 1`,
		`17:23 "files.read" names a tool of the MCP server "files", which tools does not have`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAProblemShowsItsLineAndWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := parseWith(nil, "/etc", strings.Replace(least, "instructions", "instrutions", 1))
	want := `holdfast.yaml:5:10: agents.hello has no instructions; write what it is for, or file:prompt.md
    5 |   hello: {instrutions: Say hello.}
      |          ^
holdfast.yaml:5:11: unknown field "instrutions" in agents.hello; did you mean "instructions"? known here: instructions, limits, model, policy, tools, upgrade
    5 |   hello: {instrutions: Say hello.}
      |           ^`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestNoProblemPrintsASecret(t *testing.T) {
	t.Parallel()
	const hidden = "sk-hidden-value"
	for name, text := range map[string]string{
		"literal key":          "models: {main: {key: sk-hidden-value}}",
		"literal key, block":   "models:\n  main:\n    key: sk-hidden-value\n",
		"mistyped key":         "models:\n  main:\n    api_keys: sk-hidden-value\n",
		"literal header":       least + "tools: {a: {http: {headers: {Authorization: Bearer sk-hidden-value}}}}",
		"seal":                 least + "store: {seal: sk-hidden-value}",
		"unclosed quote":       "models:\n  main:\n    key: 'sk-hidden-value\n",
		"flow with neighbour":  "models: {main: {key: sk-hidden-value, stream: 7}}",
		"resolved, wrong form": least + "tools: {a: {http: {url: 'x', headers: {'b d': 'env:HIDDEN'}}}}",
	} {
		_, err := parseWith(map[string]string{"HIDDEN": hidden}, "/etc", text)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: the error shows the secret:\n%v", name, err)
		}
	}
}

func TestAValuePrintsAsItStandsInTheFile(t *testing.T) {
	t.Parallel()
	m := Model{Key: Value{written: "env:KEY", resolved: "sk-hidden", secret: true}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, m); strings.Contains(got, "sk-hidden") {
			t.Errorf("%s shows the secret: %s", verb, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"empty", "", "the file is empty"},
		{"comments only", "# nothing\n", "the file is empty"},
		{"text", "hello", "the file is text; want a mapping"},
		{"list", "- a\n- b\n", "the file is a list; want a mapping"},
		{"two documents", least + "---\nserial: 1\n", "a second document begins here"},
		{"anchor", "models: &m {main: {}}\n", "anchors, aliases and tags are not supported"},
		{"merge", "models:\n  <<: {a: {}}\n", "a key must be text"},
		{"number as key", "models: {1: {}}\n", "a key must be text"},
		{"not UTF-8", "models: \xff", "not UTF-8"},
		{"too large", least + strings.Repeat("#", MaxFile), "larger than"},
		{"bare duration", least + "worker: {stop_timeout: 30}", `want a duration with its unit, such as "30s"`},
		{"negative duration", least + "worker: {stop_timeout: -3s}", "want a duration such as"},
		{"endless duration", least + "worker: {stop_timeout: 99999h}", "at most a year"},
		{"bare size", least + "limits: {result: 1000}", "want a size with its unit"},
		{"huge size", least + "limits: {cache: 999999999999GiB}", "want a size such as"},
		{"result too small", least + "limits: {result: 1B}", "want 256B to 1MiB"},
		{"fraction as count", least + "worker: {concurrency: 1.5}", "want a whole number"},
		{"octal count", least + "worker: {concurrency: 010}", "want a whole number"},
		{"no concurrency", least + "worker: {concurrency: 0}", "at least one activity"},
		{"health without port", least + "worker: {health: localhost}", `write "127.0.0.1:8080"`},
		{"store of another kind", least + "store: {url: 'ftp://x'}", `"ftp" is no kind of store`},
		{"store without a scheme", least + "store: {url: ./x}", `"./x" is no kind of store`},
		{"store with a host", least + "store: {url: 'file://data/x'}", "would name a host"},
		{"default server without key", strings.Replace(least, "base_url: \"http://127.0.0.1:1/v1\"", "model: gpt-5", 1), "add key: env:OPENAI_API_KEY"},
		{"literal key", strings.Replace(least, "base_url", "key: sk-123456, base_url", 1), "use env:NAME"},
		{"bad env name", strings.Replace(least, "base_url", "key: 'env:A B', base_url", 1), "cannot name an environment variable"},
		{"short secret", strings.Replace(least, "base_url", "key: env:SHORT, base_url", 1), "could not be masked"},
		{"missing key file", strings.Replace(least, "base_url", "key: 'file:/no/such', base_url", 1), `needs the file "/no/such": there is no such file`},
		{"password in URL", strings.Replace(least, "127.0.0.1", "u:p@127.0.0.1", 1), "holds a user name or password"},
		{"call below attempt", strings.Replace(least, "base_url", "timeouts: {call: 1s}, base_url", 1), "raise it"},
		{"hot", strings.Replace(least, "base_url", "temperature: 3, base_url", 1), "from 0 to 2"},
		{"reserved name", strings.Replace(least, "hello:", "holdfast-x:", 1), "are reserved"},
		{"odd name", strings.Replace(least, "hello:", "'a b':", 1), "cannot be a name"},
		{"no instructions", strings.Replace(least, "instructions: Say hello.", "", 1), "has no instructions"},
		{"all tools", strings.Replace(least, "{ins", "{tools: ['*'], ins", 1), "is too much"},
		{"tool that is a server", withServer("files"), `write "files.*" for all`},
		{"server without tool", withServer("files."), "names no tool after the dot"},
		{"too exact cost", strings.Replace(least, "{ins", "{limits: {cost: 0.0000001}, ins", 1), "at most six decimals"},
		{"no steps", strings.Replace(least, "{ins", "{limits: {steps: 0}, ins", 1), "must be at least 1"},
		{"tool that is nothing", least + "tools: {a: {description: x}}", "neither http nor mcp"},
		{"tool that is both", least + "tools: {a: {http: {url: 'http://x'}, mcp: {command: [x]}}}", "both http and mcp"},
		{"URL without scheme", least + "tools: {a: {description: x, http: {url: 'x.example'}}}", "does not begin with http"},
		{"window without effect", least + "tools: {a: {description: x, window: 1h, http: {url: 'http://x'}}}", "only effect: idempotent has a window"},
		{"own header", least + "tools: {a: {description: x, http: {url: 'http://x', headers: {idempotency-key: x}}}}", "is set by Holdfast"},
		{"header twice", least + "tools: {a: {description: x, http: {url: 'http://x', headers: {x-a: x, X-A: y}}}}", "given twice"},
		{"literal authorization", least + "tools: {a: {description: x, http: {url: 'http://x', headers: {Authorization: Basic abc}}}}", "is written out"},
		{"schema of text", least + "tools: {a: {description: x, parameters: {type: string}, http: {url: 'http://x'}}}", "begin with type: object"},
		{"schema with infinity", least + "tools: {a: {description: x, parameters: {type: object, x: .inf}, http: {url: 'http://x'}}}", "no number that JSON knows"},
		{"schema with octal", least + "tools: {a: {description: x, parameters: {type: object, x: 0x10}, http: {url: 'http://x'}}}", "which JSON cannot write"},
		{"server reached twice", least + "tools: {a: {mcp: {command: [x], url: 'http://x'}}}", "both command and url"},
		{"server not reached", least + "tools: {a: {mcp: {}}}", "neither command nor url"},
		{"env for a URL", least + "tools: {a: {mcp: {url: 'http://x', env: {A: b}}}}", "env belongs to a server that is started by command"},
		{"long server name", least + "tools: {a23456789012345678901234567890123: {mcp: {command: [x]}}}", "shorten"},
		{"server asked afterwards", least + "tools: {a: {mcp: {command: [x]}, tools: {b: {effect: reconcilable}}}}", "needs reconcile, which says how to ask"},
		{"asked afterwards", withTool("effect: reconcilable, http: {url: 'http://x'}"), "needs http.reconcile, which says how to ask"},
		{"a read asked afterwards", withTool("effect: read, http: {url: 'http://x', reconcile: {url: 'http://x', found: 'true', absent: 'false'}}"), "remove http.reconcile"},
		{"asked with POST", withTool("http: {url: 'http://x', observe: {method: POST, url: 'http://x'}}"), "is sent with GET"},
		{"asked nowhere", withTool("http: {url: 'http://x', observe: {query: [a]}}"), "tools.a.http.observe has no url"},
		{"never found", withTool("http: {url: 'http://x', reconcile: {url: 'http://x', absent: 'true'}}"), "has no found"},
		{"observed and found", withTool("http: {url: 'http://x', observe: {url: 'http://x', found: 'true'}}"), "neither found nor absent"},
		{"a server's tool asks nothing", least + "tools: {a: {mcp: {command: [x]}, tools: {b: {observe: {args: {}}}}}}", "names no tool"},
		{"absence without asking", withTool("absent_after: 1m, http: {url: 'http://x'}"), "there is no reconcile"},
		{"undone and not", withTool("irreversible: true, compensate: {tool: b}, http: {url: 'http://x'}"), "remove one"},
		{"a read undone", withTool("effect: read, irreversible: true, http: {url: 'http://x'}"), "nothing to undo"},
		{"undone by nothing", withTool("compensate: {args: {}}, http: {url: 'http://x'}"), "compensate names no tool"},
		{"risk of a server", least + "tools: {a: {risk: low, mcp: {command: [x]}}}", "risk belongs to an HTTP tool"},
		{"unknown risk", withTool("risk: some, http: {url: 'http://x'}"), `tools.a.risk is "some"; want low, medium or high`},
		{"unknown posture", least + "policy: {posture: yolo}", "want plan (reads only), ask (every effect asks) or auto (the rules decide)"},
		{"unknown verdict", least + "policy: {rules: [{name: a, then: permit}]}", "want allow, ask (a person decides) or deny"},
		{"unsigned", least + "policy: {unsigned: maybe}", "want refuse or accept"},
		{"nobody", least + "policy: {approval: {by: []}}", "policy.approval.by names nobody"},
		{"forks by nobody", least + "policy: {rights: {fork: []}}", "policy.rights.fork names nobody"},
		{"forks by strangers", least + "policy: {rights: {fork: [nobody]}}", `"nobody"`},
		{"quorum of none", least + "policy: {approval: {quorum: 0}}", "policy.approval.quorum must be at least 1"},
		{"expired at once", least + "policy: {approval: {expires: 0s}}", "want at least 1s"},
		{"no key", least + "policy: {approvers: {a: {keys: [{revoked: true}]}}}", "policy.approvers.a.keys.0 has no key"},
		{"private key", least + "policy: {approvers: {a: {keys: ['-----BEGIN OPENSSH PRIVATE KEY-----']}}}", "is no SSH public key"},
		{"key that ends at no time", least + "policy: {approvers: {a: {keys: [{key: '" + alice + "', expires: soon}]}}}", "want a date such as"},
		{"unknown upgrade", strings.Replace(least, "{ins", "{upgrade: keep, ins", 1), "agents.hello.upgrade is \"keep\"; want follow (the new definition at the next turn), pin (the old one) or ask (people decide at the next turn)"},
		{"unknown upgrade of all", least + "policy: {upgrade: never}", `policy.upgrade is "never"; want follow`},
		{"upgrade that is no word", least + "policy: {upgrade: [pin]}", "policy.upgrade is a list; want text"},
		{"upgrade given twice", least + "policy:\n  upgrade: pin\n  upgrade: ask\n", `"upgrade" is given twice, first in line 7`},
		{"deployment with a dot", least + "worker: {deployment: a.b}", `"a.b" cannot name a deployment`},
		{"deployment that is off", least + "worker: {deployment: 'off'}", "leave it out for none"},
		{"long deployment", least + "worker: {deployment: " + strings.Repeat("a", 64) + "}", "1 to 63 letters"},
		{"deployment that is a number", least + "worker: {deployment: 7}", "put it in quotes"},
		{"store with a query", least + "store: {url: 'file:///a?b'}", "is a path only"},
		{"effect of a server", least + "tools: {a: {effect: read, mcp: {command: [x]}}}", "effect belongs to an HTTP tool"},
		{"deep", "tools: " + strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100), "nested deeper"},
		{"deep without end", strings.Repeat("[", MaxFile), "nested deeper"},
		{"deep block", strings.Repeat("- ", MaxFile/2), "more than 20000 words"},
		{"many entries", strings.Repeat("a:\n", MaxFile/3), "more than 20000 words"},
		{"deep schema", least + "tools: {t: {parameters: " + strings.Repeat("{a: ", 60) + "1" + strings.Repeat("}", 60) + "}}", "neither http nor mcp"},
		{"deep schema block", least + "tools:\n  t:\n    parameters:\n" + deepBlock(100), "nested deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseWith(map[string]string{"SHORT": "abc"}, "/etc", tt.text)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error does not say %q:\n%v", tt.want, err)
			}
		})
	}
}

func deepBlock(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", 6+i) + "a:\n")
	}
	return b.String()
}

func withTool(fields string) string { return least + "tools: {a: {description: x, " + fields + "}}" }

func withServer(tool string) string {
	return strings.Replace(least, "{ins", "{tools: ["+tool+"], ins", 1) + "tools: {files: {mcp: {command: [x]}}}\n"
}

func TestLoadStoreNeedsNoKeyOfAModel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	write(t, path, "store: {url: file://./data}\nmodels: {main: {key: env:HOLDFAST_TEST_NOT_SET}}\nagents: {a: {instructions: 'file:no-such-file'}}\n")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "HOLDFAST_TEST_NOT_SET") {
		t.Errorf("Load: %v", err)
	}
	c, err := LoadStore(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "file://" + filepath.Join(filepath.Dir(path), "data"); c.Store.URL != want {
		t.Errorf("store is %q, want %q", c.Store.URL, want)
	}
}

func TestAMissingFileSaysSo(t *testing.T) {
	t.Parallel()
	_, err := Load(filepath.Join(t.TempDir(), "holdfast.yaml"))
	if err == nil || !strings.Contains(err.Error(), "there is no such file; name another") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		least, whole, "", "a", "a: [", "a: {b: 1, c: [1, 2]}\n? x\n: y", "a: &x 1\nb: *x\n<<: *x", "a: |\n  b\n c",
		"{? {? ", "0::", "*-0", ">\n>", "true :", "10.:", "models: {main: {key: env:}}", "\ufeffserial: 1", "a:\n\t- b",
		"tools: {t: {parameters: {a: 1e9999999999, b: .5, c: +1, d: 0o7, e: ~}}}", "serial: 99999999999999999999",
		"models: {main: {key: 'file:/'}}", "agents: {a: {instructions: 'file:'}}", "- - - - a", "!!map {a: b}",
		"limits: {result: 1 KiB}", "worker: {health: ':99999'}",
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		// Files are out of the fuzzer's reach: only the form of a reference is tested here.
		if strings.Contains(string(b), "file:/") || strings.Contains(string(b), "..") {
			t.Skip()
		}
		c, err := parseWith(map[string]string{"SEAL": "seal-value", "TOKEN": "token-value"}, dir, string(b))
		if err == nil {
			if len(c.Models) == 0 || len(c.Agents) == 0 {
				t.Error("accepted without models or agents")
			}
			return
		}
		for _, p := range problemsOf(t, err) {
			if p.Message == "" || strings.Count(p.Excerpt, "\n") > 1 {
				t.Errorf("problem %+v", p)
			}
		}
	})
}
