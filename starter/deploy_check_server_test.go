package starter

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/worker"
)

// What a worker of build v1 has made is checked with the files of the next rollout, without any worker.
func TestDeployCheckOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	p := startCheckParts(t)
	cmds := commands()
	cmds["digests"] = sameButDigests
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/deploycheck",
		Cmds: cmds,
		Setup: func(env *testscript.Env) error {
			if err := cleanEnv(env, p.server.Address(), p.model.URL()); err != nil {
				return err
			}
			env.Setenv("STORE", p.store)
			return nil
		},
	})
}

var aDigest = regexp.MustCompile(`\b[0-9a-f]{16}\b`)

// sameButDigests FILE compares stdout with a file, whatever the digests are.
func sameButDigests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: digests FILE")
	}
	got := aDigest.ReplaceAllString(ts.ReadFile("stdout"), "DIGEST")
	if d := cmp.Diff(ts.ReadFile(args[0]), got); d != "" {
		ts.Fatalf("%s (-want +got):\n%s", args[0], d)
	}
}

// checkConfig has an agent for each way in which a session can meet a rollout. All have the same tools; policy lets
// wire wait for a person.
const checkConfig = `
serial: 5
store: {url: "file://%s"}
models:
  main: {model: large, base_url: "%s"}
tools:
  wire: {description: Sends money., parameters: {type: object, properties: {text: {type: string}}}, http: {url: "https://bank.example.com/wire"}}
  look: {description: Looks., effect: read, parameters: {type: object, properties: {text: {type: string}}, required: [text]}, http: {url: "https://bank.example.com/look/{text}"}}
agents:
  follower: {instructions: Help., model: main, tools: [wire, look]}
  pinned: {instructions: Help., model: main, tools: [wire, look], upgrade: pin}
  asker: {instructions: Help., model: main, tools: [wire, look], upgrade: ask}
worker: {stop_timeout: 1s}
`

// checkScript is the model: it asks for what the user names first.
func checkScript(r modeltest.Request) modeltest.Step {
	if name, text, ok := strings.Cut(r.User(), " "); ok && name == "wire" && len(r.Results()) == 0 {
		return want(name, text)
	}
	return modeltest.Say("You said: " + r.User())
}

func startCheckParts(t *testing.T) *parts {
	t.Helper()
	dir := t.TempDir()
	p := &parts{model: modeltest.ForTest(t, modeltest.Config{Func: checkScript}), store: filepath.Join(dir, "store")}
	var err error
	if p.server, err = devserver.Start(context.Background(), devserver.Options{Headless: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.server.Stop() }) // after the scripts, which run as parallel subtests
	cfg, err := worker.Parse("holdfast.yaml", dir, fmt.Appendf(nil, checkConfig, p.store, p.model.URL()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- worker.Options{
			Client: &client.Options{HostPort: p.server.Address()}, Health: "off", Build: "v1",
			Logger: slog.New(slog.DiscardHandler), Ready: func(worker.Status) { close(ready) },
		}.Run(ctx, cfg)
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("worker: %v", err)
	}
	for _, name := range []string{"follower", "pinned", "asker"} {
		for i, text := range []string{"hello", "hello", "wire 5"} {
			session, code := fmt.Sprintf("%s-%d", name, i+1), ExitDone
			if text == "wire 5" {
				code = ExitWaiting
			}
			var said strings.Builder
			if got := Main([]string{"run", name, text, "--session", session, "--address", p.server.Address()}, nil, &said, &said); got != code {
				t.Fatalf("run %s %s: exit code %d, want %d: %s", name, text, got, code, said.String())
			}
		}
	}
	cancel() // from here on there is no worker
	if err := <-done; err != nil {
		t.Errorf("worker: %v", err)
	}
	startForeign(t, p.server.Address())
	return p
}

// startForeign leaves an open session that other code has begun.
func startForeign(t *testing.T, address string) {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := sdkworker.New(c, "foreign", sdkworker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ agent.SessionInput) error { return workflow.Sleep(ctx, time.Hour) },
		workflow.RegisterOptions{Name: agent.WorkflowSession})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "foreign", TaskQueue: "foreign"}, agent.WorkflowSession, agent.SessionInput{Agent: "follower"})
	if err != nil {
		t.Fatal(err)
	}
	for it := c.GetWorkflowHistory(t.Context(), "foreign", "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
			return
		}
	}
	t.Fatal("the foreign session ended")
}
