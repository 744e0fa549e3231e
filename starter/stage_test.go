package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

// A stage is one task queue of a server, with workers of several builds one after the other.
type stage struct {
	t      *testing.T
	server *devserver.Server
	queue  string
	config *worker.Config
	file   string
	client client.Client
	paid   atomic.Int32
	tools  []tool.Tool
}

const stageConfig = `
serial: 1
store: {url: "file://%s"}
models: {m: {base_url: "%s"}}
agents:
  helper: {instructions: Help., model: m, tools: [pay], limits: {continue_after: 1}}
  asker: {instructions: Help., model: m, tools: [pay]}
  careful: {instructions: Help., model: m, tools: [pay], upgrade: pin}
policy: {rules: [{name: asks, when: 'agent == "asker" && tool == "pay"', then: ask}, {name: everything, then: allow}]}
worker: {stop_timeout: 1s, task_queue: "%s", sticky_timeout: 1s}
`

func startServer(t *testing.T) *devserver.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	server, err := devserver.Start(context.Background(), devserver.Options{Headless: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

func newStage(t *testing.T, server *devserver.Server, queue string) *stage {
	t.Helper()
	s := &stage{t: t, server: server, queue: queue}
	model := modeltest.ForTest(t, modeltest.Config{Func: func(r modeltest.Request) modeltest.Step {
		if strings.HasPrefix(r.User(), "pay") && len(r.Results()) == 0 {
			return modeltest.Want(modeltest.Call{ID: "c", Name: "pay", Args: `{"order":"42"}`})
		}
		return modeltest.Say(fmt.Sprintf("heard %q, %d results", r.User(), len(r.Results())))
	}})
	pay, err := tool.New(tool.Spec{Name: "pay", Class: agent.ClassOnce}, func(context.Context, tool.Call, struct {
		Order string `json:"order"`
	},
	) (string, error) {
		return fmt.Sprintf("paid %d times", s.paid.Add(1)), nil
	})
	dir := t.TempDir()
	s.tools, s.file = []tool.Tool{pay}, filepath.Join(dir, "holdfast.yaml")
	text := fmt.Appendf(nil, stageConfig, filepath.Join(dir, "store"), model.URL(), queue)
	var err2, err3 error
	s.config, err2 = worker.Parse(s.file, dir, text)
	s.client, err3 = client.Dial(client.Options{HostPort: server.Address()})
	if err := errors.Join(err, err2, err3, writeFile(s.file, text)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// worker runs one until stop is called.
func (s *stage) worker(o worker.Options, with ...interceptor.ClientInterceptor) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	o.Client, o.Health = &client.Options{HostPort: s.server.Address(), Interceptors: with}, "off"
	o.Logger, o.Ready = slog.New(slog.DiscardHandler), func(worker.Status) { close(ready) }
	go func() { done <- o.Run(ctx, s.config, s.tools...) }()
	select {
	case <-ready:
	case err := <-done:
		cancel()
		s.t.Fatalf("worker: %v", err)
	}
	var once atomic.Bool
	stop = func() {
		if once.Swap(true) {
			return
		}
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("worker: %v", err)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// holdfast runs a command and returns what it printed on both and its exit code.
func (s *stage) holdfast(args ...string) (out, errs string, code int) {
	var o, e buffer // what a command says late comes from another goroutine
	args = append(args, "--address", s.server.Address(), "--config", s.file)
	code = Main(args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func (s *stage) ok(args ...string) string {
	s.t.Helper()
	out, errs, code := s.holdfast(args...)
	if code != ExitDone {
		s.t.Fatalf("holdfast %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

// json runs a command with -o json and decodes its last line.
func (s *stage) json(to any, args ...string) {
	s.t.Helper()
	lines := strings.Split(strings.TrimSpace(s.ok(append(args, "-o", "json")...)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), to); err != nil {
		s.t.Fatal(err)
	}
}

// end runs a command that follows a turn and returns how it ended.
func (s *stage) end(args ...string) (e turnEnd) {
	s.t.Helper()
	var r struct {
		turnEnd
		Cursor string `json:"cursor"`
	}
	out, errs, _ := s.holdfast(append(args, "-o", "json")...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		s.t.Fatalf("holdfast %s: %v: %s", strings.Join(args, " "), err, errs)
	}
	return r.turnEnd
}

// fails runs a command that is to end with a code and to say something.
func (s *stage) fails(code int, says string, args ...string) {
	s.t.Helper()
	_, errs, got := s.holdfast(args...)
	if got != code || !strings.Contains(errs, says) {
		s.t.Errorf("holdfast %s: exit code %d, want %d: %s\nwant %q in it", strings.Join(args, " "), got, code, errs, says)
	}
}

func (s *stage) await(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			out, _, _ := s.holdfast("attention")
			s.t.Fatalf("never: %s; attention says: %s", what, out)
		}
	}
}

// matter awaits one thing that needs a person.
func (s *stage) matter(kind, place string) (found matter) {
	s.t.Helper()
	s.await(kind+" of "+place, func() bool {
		var all struct{ Attention []matter }
		out, _, _ := s.holdfast("attention", "-o", "json")
		_ = json.Unmarshal([]byte(out), &all)
		for _, m := range all.Attention {
			if m.Kind == kind && (address{session: m.Session, turn: m.Turn}).String() == place {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// conn is the connection that commands have.
func (s *stage) conn() *conn {
	return &conn{Client: s.client, address: s.server.Address(), namespace: client.DefaultNamespace, payloads: converter.GetDefaultDataConverter()}
}

// A spoiler makes a worker behave like one of another build, as long as it is on.
type spoiler struct {
	interceptor.InterceptorBase
	// checkpoint changes what a run hands on; timer starts one before anything else in a turn.
	checkpoint func(*agent.Checkpoint)
	timer      bool
}

func (s *spoiler) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &spoiledIn{interceptor.WorkflowInboundInterceptorBase{Next: next}, s}
}

type spoiledIn struct {
	interceptor.WorkflowInboundInterceptorBase
	s *spoiler
}

func (i *spoiledIn) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&spoiledOut{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.s})
}

func (i *spoiledIn) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if i.s.timer && workflow.GetInfo(ctx).WorkflowType.Name == agent.WorkflowTurn {
		workflow.NewTimer(ctx, time.Hour)
	}
	return i.Next.ExecuteWorkflow(ctx, in)
}

type spoiledOut struct {
	interceptor.WorkflowOutboundInterceptorBase
	s *spoiler
}

func (o *spoiledOut) NewContinueAsNewError(ctx workflow.Context, fn any, args ...any) error {
	if o.s.checkpoint != nil {
		switch in := args[0].(type) {
		case agent.TurnInput:
			in.Checkpoint = o.spoilt(in.Checkpoint)
			args = []any{in}
		case agent.SessionInput:
			in.Checkpoint = o.spoilt(in.Checkpoint)
			args = []any{in}
		}
	}
	return o.Next.NewContinueAsNewError(ctx, fn, args...)
}

func (o *spoiledOut) spoilt(c *agent.Checkpoint) *agent.Checkpoint {
	bad := *c
	o.s.checkpoint(&bad)
	return &bad
}

func (s *stage) setCurrent(deployment, build string) error {
	_, err := s.client.WorkerDeploymentClient().GetHandle(deployment).SetCurrentVersion(s.t.Context(),
		client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build, IgnoreMissingTaskQueues: true})
	return err
}
