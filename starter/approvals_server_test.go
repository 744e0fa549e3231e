package starter

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

func TestApprovalsOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	p := startApprovalParts(t)
	silent := startSilent(t, p.server.Address())
	cmds := commands()
	maps.Copy(cmds, map[string]func(*testscript.TestScript, bool, []string){"save": save})
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/approvals",
		Cmds: cmds,
		Setup: func(env *testscript.Env) error {
			if err := cleanEnv(env, p.server.Address(), p.model.URL()); err != nil {
				return err
			}
			env.Setenv("SILENT", silent)
			env.Setenv("KEYS", p.store)
			return os.WriteFile(filepath.Join(env.WorkDir, "holdfast.yaml"), p.config, 0o600)
		},
	})
}

const approvalConfig = `
serial: 1
store: {url: "file://%s"}
models:
  scripted: {base_url: "%s"}
agents:
  helper:
    instructions: Help.
    model: scripted
    tools: [refund]
policy:
  on_failure: ask
  approvers:
    alice: {keys: ["%s"]}
    bob: {keys: ["%s"]}
  rights: {fork: [alice]}
  rules:
  - {name: alice-asked, when: 'actor == "alice"', then: allow}
  - {name: two-people, when: 'args.order == "two"', then: ask, approval: {by: [alice, bob], quorum: 2}}
  - {name: soon, when: 'args.order == "soon"', then: ask, approval: {expires: 1s}}
  - {name: never, when: 'args.order == "never"', then: deny}
worker: {stop_timeout: 1s}
`

// startApprovalParts starts a server, and a worker whose policy knows two people. Their keys are in the store's
// folder.
func startApprovalParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{store: t.TempDir(), model: modeltest.ForTest(t, modeltest.Config{Func: refundScript})}
	var err error
	if p.server, err = devserver.Start(context.Background(), devserver.Options{Headless: true}); err != nil {
		t.Fatal(err)
	}
	p.config = fmt.Appendf(nil, approvalConfig, filepath.Join(p.store, "store"), p.model.URL(), makeKey(t, p.store, "alice"), makeKey(t, p.store, "bob"))
	cfg, err := worker.Parse("holdfast.yaml", p.store, p.config)
	if err != nil {
		t.Fatal(err)
	}
	type refund struct {
		Order  string  `json:"order"`
		Amount float64 `json:"amount,omitempty"`
		Note   string  `json:"note,omitempty"`
	}
	spec := tool.Spec{Name: "refund", Class: agent.ClassIdempotent, Resource: "order/{order}", Risk: agent.RiskHigh}
	back := tool.Spec{Name: "charge", Class: agent.ClassIdempotent}
	spec.Compensate = &tool.Compensation{Tool: "charge", Args: map[string]string{"order": "args.order"}}
	give, err1 := tool.New(spec, func(_ context.Context, _ tool.Call, in refund) (string, error) {
		return fmt.Sprintf("gave %g for %s", in.Amount, in.Order), nil
	})
	take, err2 := tool.New(back, func(context.Context, tool.Call, refund) (string, error) { return "taken back", nil })
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	stop := runWorker(t, cfg, p.server.Address(), give, take)
	t.Cleanup(func() {
		stop()
		_ = p.server.Stop()
	})
	return p
}

// makeKey puts a person's private key into a file and returns the public one.
func makeKey(t *testing.T, dir, name string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, name)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := ssh.MarshalPrivateKeyWithPassphrase(private, name, []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	line := ssh.MarshalAuthorizedKey(key)
	for suffix, b := range map[string][]byte{"": pem.EncodeToMemory(block), ".secret": pem.EncodeToMemory(secret), ".pub": line} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serveKey(t, filepath.Join(dir, name+".sock"), private)
	return strings.TrimSpace(string(line))
}

// serveKey is an ssh-agent with one key.
func serveKey(t *testing.T, socket string, key ed25519.PrivateKey) {
	t.Helper()
	ring := sshagent.NewKeyring()
	if err := ring.Add(sshagent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = sshagent.ServeAgent(ring, c) // ends with the connection
				_ = c.Close()
			}()
		}
	}()
}

// refundScript is the model: it asks for a refund with each line of what the user says as its arguments.
func refundScript(r modeltest.Request) modeltest.Step {
	lines := strings.Split(strings.TrimSpace(r.User()), "\n")
	if results := r.Results(); len(results) > 0 {
		if strings.Contains(lines[0], "fail") {
			return modeltest.Fail(400, "invalid_request_error", "this cannot be asked")
		}
		return modeltest.Say(fmt.Sprintf("the tool said: %v", results))
	}
	var calls []modeltest.Call
	for i, args := range lines {
		if !json.Valid([]byte(args)) {
			return modeltest.Say("what?")
		}
		calls = append(calls, modeltest.Call{ID: fmt.Sprintf("call_%d", i), Name: "refund", Args: args})
	}
	return modeltest.Want(calls...)
}

// startSilent starts a session and a turn on a task queue that nobody polls, and returns the id of a request
// that could wait there.
func startSilent(t *testing.T, address string) string {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	session, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "silent", TaskQueue: "nobody"}, agent.WorkflowSession, agent.SessionInput{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: agent.TurnID("silent", 1), TaskQueue: "nobody",
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(agent.AttributeAgent).ValueSet("helper"),
			temporal.NewSearchAttributeKeyInt64(agent.AttributeApprovals).ValueSet(2),
			temporal.NewSearchAttributeKeyTime(agent.AttributeExpires).ValueSet(time.Now().Add(90*time.Minute)),
		),
	}, agent.WorkflowTurn, agent.TurnInput{})
	if err != nil {
		t.Fatal(err)
	}
	scope := agent.NewScope("silent", session.GetRunID())
	return agent.ApprovalID(agent.ActionKey(scope, agent.Place{Turn: 1, Step: 1, Call: 1}, agent.DigestOf(nil)), 1)
}

// save NAME PATTERN puts what the pattern's group matches in stdout into a variable.
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: save NAME PATTERN")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("%q is not in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], m[1])
}
