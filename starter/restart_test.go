package starter

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

// buffer can be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !strings.Contains(b.String(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never said %q: %s", text, b.String())
		}
	}
}

func TestFollowingSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	o := devserver.Options{Headless: true, DBFile: filepath.Join(t.TempDir(), "temporal.db")}
	server, err := devserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	_, port, _ := net.SplitHostPort(server.Address())
	o.Port, _ = strconv.Atoi(port)

	open := make(chan struct{})
	stop := workerWithGate(t, server.Address(), open)
	defer stop()

	var out, errs buffer
	app := &App{In: strings.NewReader(""), Out: &out, Err: &errs}
	root := NewRoot(app)
	root.SetArgs([]string{"run", "helper", "hello", "--address", server.Address(), "--session", "s", "--task-queue", "holdfast"})
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(t.Context()) }()
	errs.await(t, "tool gate")
	server.Kill()
	errs.await(t, "trying again")
	again, err := devserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Stop() })
	errs.await(t, "connected again")
	close(open)
	if err := <-done; err != nil {
		t.Fatalf("run: %v\n%s", err, errs.String())
	}
	if got := out.String(); got != "opened\n" {
		t.Errorf("answer = %q", got)
	}
	if n := strings.Count(errs.String(), "tool gate {"); n > 2 || strings.Count(errs.String(), "turn 1 started") != 1 {
		t.Errorf("an event was shown twice:\n%s", errs.String())
	}
}

// workerWithGate runs a worker whose one tool returns when the gate is open.
func workerWithGate(t *testing.T, address string, open <-chan struct{}) (stop func()) {
	t.Helper()
	model := modeltest.ForTest(t, modeltest.Config{Func: func(r modeltest.Request) modeltest.Step {
		if len(r.Results()) > 0 {
			return modeltest.Say("opened")
		}
		return modeltest.Want(modeltest.Call{ID: "c", Name: "gate", Args: "{}"})
	}})
	gate, err := tool.New(tool.Spec{Name: "gate", Class: agent.ClassRead, Timeout: time.Minute},
		func(ctx context.Context, _ tool.Call, _ struct{}) (string, error) {
			select {
			case <-open:
				return "open", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := worker.Parse("holdfast.yaml", t.TempDir(), fmt.Appendf(nil, `
store: {url: "file://%s"}
models: {m: {base_url: "%s"}}
agents: {helper: {instructions: Help., model: m, tools: [gate]}}
policy: {rules: [{name: everything, then: allow}]}
worker: {stop_timeout: 1s}
`, t.TempDir(), model.URL()))
	if err != nil {
		t.Fatal(err)
	}
	return runWorker(t, cfg, address, gate)
}

// runWorker runs a worker until stop is called, and returns when it polls.
func runWorker(t *testing.T, cfg *worker.Config, address string, tools ...tool.Tool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- worker.Options{
			Client: &client.Options{HostPort: address}, Health: "off",
			Logger: slog.New(slog.DiscardHandler), Ready: func(worker.Status) { close(ready) },
		}.Run(ctx, cfg, tools...)
	}()
	select {
	case <-ready:
	case err := <-done:
		cancel()
		t.Fatalf("worker: %v", err)
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("worker: %v", err)
		}
	}
}
