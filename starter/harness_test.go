package starter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"holdfast": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, tools()...)) },
	})
}

func TestScriptsWithoutAServer(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/offline",
		Cmds:  commands(),
		Setup: func(env *testscript.Env) error { return cleanEnv(env, "127.0.0.1:1", "http://127.0.0.1:1/v1") },
	})
}

func TestScriptsOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	p := startParts(t)
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/server",
		Cmds: commands(),
		Setup: func(env *testscript.Env) error {
			if err := cleanEnv(env, p.server.Address(), p.model.URL()); err != nil {
				return err
			}
			env.Setenv("STORE", p.store)
			return os.WriteFile(filepath.Join(env.WorkDir, "holdfast.yaml"), p.config, 0o600)
		},
	})
}

// parts are what the scripts on a real server share.
type parts struct {
	server *devserver.Server
	model  *modeltest.Server
	store  string
	config []byte
}

func startParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{model: modeltest.ForTest(t, modeltest.Config{Func: script})}
	var err error
	if p.server, err = devserver.Start(context.Background(), devserver.Options{Headless: true}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p.store = filepath.Join(dir, "store")
	p.config = fmt.Appendf(nil, testConfig, p.store, p.model.URL())
	cfg, err := worker.Parse("holdfast.yaml", dir, p.config)
	if err != nil {
		t.Fatal(err)
	}
	stop := runWorker(t, cfg, p.server.Address(), tools()...)
	// The scripts run as parallel subtests: this comes after the last of them.
	t.Cleanup(func() {
		stop()
		_ = p.server.Stop()
	})
	return p
}

const testConfig = `
serial: 1
store: {url: "file://%s"}
models:
  scripted: {base_url: "%s"}
agents:
  helper:
    instructions: Help.
    model: scripted
    tools: [note, slow, pay]
  short:
    instructions: Help.
    model: scripted
    tools: [note]
    limits: {steps: 2, wait: 5m}
policy: {rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell}
worker: {stop_timeout: 1s}
`

// tools are a harmless one, one that takes until it is cancelled, and one whose outcome is never known.
func tools() []tool.Tool {
	type text struct {
		Text string `json:"text"`
	}
	note, err1 := tool.New(tool.Spec{Name: "note", Class: agent.ClassIdempotent},
		func(_ context.Context, _ tool.Call, in text) (string, error) { return "noted " + in.Text, nil })
	slow, err2 := tool.New(tool.Spec{Name: "slow", Class: agent.ClassRead, Timeout: time.Minute},
		func(ctx context.Context, _ tool.Call, _ text) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
	pay, err3 := tool.New(tool.Spec{Name: "pay", Class: agent.ClassOnce},
		func(context.Context, tool.Call, text) (string, error) {
			return "", tool.Ambiguous(errors.New("the line went dead"))
		})
	if err := errors.Join(err1, err2, err3); err != nil {
		panic(err)
	}
	return []tool.Tool{note, slow, pay}
}

// script is the model: what the user says decides.
func script(r modeltest.Request) modeltest.Step {
	said, results := r.User(), len(r.Results())
	switch {
	case strings.HasPrefix(said, "fail"):
		return modeltest.Fail(400, "invalid_request_error", "this cannot be asked")
	case strings.HasPrefix(said, "down"):
		return modeltest.Fail(503, "server_error", "down for a while")
	case strings.HasPrefix(said, "refuse"):
		return modeltest.Step{Message: []byte(`{"role":"assistant","content":null,"refusal":"I will not"}`), Finish: "stop"}
	case strings.HasPrefix(said, "slow") && results == 0:
		return want("slow", "x")
	case strings.HasPrefix(said, "pay") && results == 0:
		return want("pay", "x")
	case strings.HasPrefix(said, "note") && results == 0:
		return want("note", strings.TrimPrefix(said, "note "))
	case strings.HasPrefix(said, "loop"):
		return want("note", strconv.Itoa(results))
	case strings.HasPrefix(said, "escape"):
		return modeltest.Say("red\x1b[31m\ttab\nnext")
	}
	return modeltest.Say("You said: " + said)
}

func want(name, text string) modeltest.Step {
	return modeltest.Want(modeltest.Call{ID: "call_" + text, Name: name, Args: `{"text":"` + text + `"}`})
}

// cleanEnv gives a script an environment of its own.
func cleanEnv(env *testscript.Env, address, model string) error {
	temporal, err := devserver.Find(context.Background(), "")
	if err != nil {
		return err
	}
	env.Setenv("TEMPORAL_ADDRESS", address)
	env.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(env.WorkDir, "none.toml"))
	env.Setenv("HOLDFAST_TEMPORAL", temporal)
	env.Setenv("MODEL_URL", model)
	env.Setenv("NO_COLOR", "1")
	env.Setenv("TZ", "UTC")
	return nil
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "until": until, "until-ok": untilOK, "takeport": takePort, "fill": fill,
	}
}

// exits CODE COMMAND... runs a command and checks its exit code; its output is there for stdout and stderr.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit interface{ ExitCode() int }
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// until FILE PATTERN waits for a file to contain what matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: until FILE PATTERN")
	}
	pattern := regexp.MustCompile(args[1])
	deadline := time.Now().Add(90 * time.Second)
	for {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && pattern.Match(b) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never had %q: %s, %v", args[0], args[1], b, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilOK COMMAND... runs a command until it succeeds.
func untilOK(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until-ok COMMAND...")
	}
	deadline := time.Now().Add(90 * time.Second)
	for {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v: %s", err, ts.ReadFile("stderr"))
		}
	}
}

// takePort NAME listens on a free port until the script ends and puts its number into a variable.
func takePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: takeport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

var variable = regexp.MustCompile(`\$\{[A-Z_]+\}`)

// fill FILE puts variables into a file.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	text := variable.ReplaceAllStringFunc(ts.ReadFile(args[0]), func(v string) string { return ts.Getenv(v[2 : len(v)-1]) })
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
