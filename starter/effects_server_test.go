package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

func TestEffectsOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	p := startEffectParts(t)
	cmds := commands()
	maps.Copy(cmds, map[string]func(*testscript.TestScript, bool, []string){"save": save, "agree": agree})
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/effects",
		Cmds: cmds,
		Setup: func(env *testscript.Env) error {
			if err := cleanEnv(env, p.server.Address(), p.model.URL()); err != nil {
				return err
			}
			env.Setenv("KEYS", p.store)
			return os.WriteFile(filepath.Join(env.WorkDir, "holdfast.yaml"), p.config, 0o600)
		},
	})
}

const effectConfig = `
serial: 1
store: {url: "file://%s"}
models:
  scripted: {base_url: "%s"}
agents:
  helper: {instructions: Help., model: scripted, tools: [order, unorder, pay, slow, seal]}
  hasty: {instructions: Help., model: scripted, tools: [order, unorder, pay], limits: {wait: 1s, effects: 1}}
policy:
  approvers:
    alice: {keys: ["%s"]}
  rules:
  - {name: hard, when: 'tool == "order" && args.id.startsWith("ask")', then: ask, approval: {expires: 1h}}
  - {name: easy, then: allow}
  duplicates: allow
  on_failure: compensate
  rights: {compensate: [alice]}
worker: {stop_timeout: 1s}
`

func startEffectParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{store: t.TempDir(), model: modeltest.ForTest(t, modeltest.Config{Func: effectScript})}
	var err error
	if p.server, err = devserver.Start(context.Background(), devserver.Options{Headless: true}); err != nil {
		t.Fatal(err)
	}
	p.config = fmt.Appendf(nil, effectConfig, filepath.Join(p.store, "store"), p.model.URL(), makeKey(t, p.store, "alice"))
	cfg, err := worker.Parse("holdfast.yaml", p.store, p.config)
	if err != nil {
		t.Fatal(err)
	}
	stop := runWorker(t, cfg, p.server.Address(), effectTools(t)...)
	t.Cleanup(func() {
		stop()
		_ = p.server.Stop()
	})
	startLonely(t, p.server.Address())
	return p
}

// effectTools are one that can be undone, unless the order is called bad, one that cannot, one whose outcome is
// never known, and one that can be stopped.
func effectTools(t *testing.T) []tool.Tool {
	t.Helper()
	type order struct {
		ID string `json:"id"`
	}
	stopped := make(chan struct{})
	var errs []error
	add := func(spec tool.Spec, fn func(context.Context, tool.Call, order) (string, error), opts ...tool.Option) tool.Tool {
		made, err := tool.New(spec, fn, opts...)
		errs = append(errs, err)
		return made
	}
	out := []tool.Tool{
		add(tool.Spec{Name: "order", Class: agent.ClassIdempotent, Compensate: &tool.Compensation{Tool: "unorder", Args: map[string]string{"id": "args.id"}}},
			func(_ context.Context, _ tool.Call, in order) (string, error) { return "ordered " + in.ID, nil }),
		add(tool.Spec{Name: "unorder", Class: agent.ClassIdempotent}, func(_ context.Context, _ tool.Call, in order) (string, error) {
			if strings.HasSuffix(in.ID, "bad") {
				return "", tool.Failed(errors.New("the shop is closed"))
			}
			return "no " + in.ID, nil
		}),
		add(tool.Spec{Name: "seal", Class: agent.ClassIdempotent, Irreversible: true},
			func(context.Context, tool.Call, order) (string, error) { return "sealed", nil }),
		add(tool.Spec{Name: "pay", Class: agent.ClassOnce}, func(context.Context, tool.Call, order) (string, error) {
			return "", tool.Ambiguous(errors.New("the line went dead"))
		}),
		add(tool.Spec{Name: "slow", Class: agent.ClassIdempotent, Timeout: time.Minute}, func(context.Context, tool.Call, order) (string, error) {
			<-stopped
			return "", tool.NotSent(errors.New("stopped before it began"))
		}, tool.WithCancel(func(context.Context, tool.Call) error { close(stopped); return nil })),
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return out
}

// effectScript is the model: each word that the user says is a tool, perhaps an
// argument's name, and the argument; after "break" it fails.
func effectScript(r modeltest.Request) modeltest.Step {
	if len(r.Results()) > 0 {
		if strings.Contains(r.User(), "break") {
			return modeltest.Fail(400, "invalid_request_error", "this cannot be asked")
		}
		return modeltest.Say("The results: " + fmt.Sprint(r.Results()))
	}
	var calls []modeltest.Call
	for i, what := range strings.Fields(r.User()) {
		name, id, ok := strings.Cut(what, ":")
		if !ok {
			continue
		}
		name, field, other := strings.Cut(name, ".")
		if !other {
			field = "id"
		}
		args, _ := json.Marshal(map[string]string{field: id})
		calls = append(calls, modeltest.Call{ID: fmt.Sprintf("call_%d", i), Name: name, Args: string(args)})
	}
	if len(calls) == 0 {
		return modeltest.Say("what?")
	}
	return modeltest.Want(calls...)
}

// startLonely starts a session whose turn no worker will ever take up, with what it says of itself.
func startLonely(t *testing.T, address string) {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for id, kind := range map[string]string{"lonely": agent.WorkflowSession, agent.TurnID("lonely", 1): agent.WorkflowTurn} {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: id, TaskQueue: "nobody",
			TypedSearchAttributes: temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyKeyword(agent.AttributeAttention).ValueSet(agent.AttentionApproval),
				temporal.NewSearchAttributeKeyInt64(agent.AttributeApprovals).ValueSet(2),
			),
		}, kind, agent.SessionInput{})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A checkpoint that no build can read makes its worker fail on it again and again.
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: agent.TurnID("jammed", 1), TaskQueue: agent.TaskQueue},
		agent.WorkflowTurn, agent.TurnInput{Turn: 1, Checkpoint: &agent.Checkpoint{Schema: 999}})
	if err != nil {
		t.Fatal(err)
	}
}
