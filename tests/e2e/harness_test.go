package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/internal/payments/bank"
)

// patience bounds every wait in these tests. It is long because machines are slow, and nothing waits for
// it when all goes well.
const patience = 100 * time.Second

// parts are what all tests of the package share: one server, one binary.
var parts struct {
	binary string
	server *devserver.Server
}

// atOnce is how many tests run at a time unless -parallel says otherwise: they mostly wait, for time-outs and for
// workers that are gone, and not for a processor.
const atOnce = "6"

func TestMain(m *testing.M) {
	if path := os.Getenv(bankBooks); path != "" {
		if err := bank.Main(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "holdfast-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		parts.binary = filepath.Join(dir, "holdfast")
		build := exec.Command("go", "build", "-tags", "failpoint", "-o", parts.binary, "github.com/holdfast-run/holdfast")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "the worker does not build: %v\n%s", err, out)
			return 1
		}
		parts.server, err = devserver.Start(context.Background(), devserver.Options{
			// With the Web UI: decisions come from there too.
			// A frozen worker keeps what it polls for until its poll expires, a minute by default.
			Dynamic: []string{`matching.longPollExpirationInterval="5s"`},
		})
		if err != nil {
			fmt.Fprintf(os.Stderr, "these tests need the Temporal server: %v\n", err)
			return 1
		}
		defer parts.server.Stop()
		return m.Run()
	}())
}

// A rig is one test's world.
type rig struct {
	t      *testing.T
	dir    string
	addr   string
	queue  string
	client client.Client
	model  *modeltest.Server
	pay    *payments.Service
	payURL string
	log    *lockedBuffer
	points string // the failpoint log
	prefix string // of session ids: all tests share one server
}

// A setting changes a rig's configuration before its first worker starts.
type setting struct {
	model    modeltest.Config
	pay      payments.Config
	agent    string // further YAML of the agent, indented by four
	refund   string // effect class of the refund tool
	timeout  string // of the refund tool
	address  string // of another Temporal server
	heart    string // heartbeat time-outs
	tools    string // that the agent may use, as a YAML list
	toolsYML string // further YAML of tools, indented by two
	http     string // further members of the refund tool's http, as a flow mapping has them: ", observe: {...}"
	harm     string // further YAML of the refund tool, indented by four
	policy   string // a flow mapping; everything is allowed without it
}

func newRig(t *testing.T, s setting) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), addr: parts.server.Address(), log: &lockedBuffer{}}
	if s.address != "" {
		r.addr = s.address
	}
	r.queue = "e2e-" + strings.Map(func(c rune) rune {
		if c == '/' {
			return '-'
		}
		return c
	}, t.Name())
	r.prefix = string(agent.DigestOf([]byte(t.Name() + r.dir))[:8]) + "-"
	r.points = filepath.Join(r.dir, "points")
	var err error
	r.client, err = client.Dial(client.Options{HostPort: r.addr, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	r.model = modeltest.ForTest(t, s.model)
	r.pay, r.payURL = serve(t, s.pay)
	r.configure(s)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("workers said:\n%s", r.log.String())
		}
	})
	return r
}

// serve starts a payments service with books of its own.
func serve(t *testing.T, c payments.Config) (pay *payments.Service, url string) {
	t.Helper()
	c.Path = filepath.Join(t.TempDir(), "books")
	c.Orders = []payments.Order{
		{ID: "42", Item: "kettle", Status: "delivered", Total: 1990},
		{ID: "43", Item: "toaster", Status: "delivered", Total: 2990},
	}
	pay, err := payments.New(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(pay)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close(); _ = pay.Close() })
	return pay, web.URL
}

func (r *rig) configure(s setting) {
	r.t.Helper()
	or := func(v, d string) string {
		if v == "" {
			return d
		}
		return v
	}
	yaml := fmt.Sprintf(`serial: 1
store: {url: "file://%s/store"}
worker: {task_queue: %q, tool_heartbeat: %s, stop_timeout: 2s, sticky_timeout: 1s}
models:
  scripted:
    base_url: %q
    timeouts: {heartbeat: %s, attempt: 30s, call: 2m}
    prices: {input: 1, output: 4}
tools:
  lookup_order:
    description: Looks an order up.
    effect: read
    timeout: 5s
    parameters: {type: object, properties: {id: {type: string}}, required: [id], additionalProperties: false}
    http: {method: GET, url: "%s/orders/{id}"}
  refund:
    description: Refunds an order.
    effect: %s
    timeout: %s
    parameters:
      type: object
      properties: {order: {type: string}, amount: {type: string}}
      required: [order, amount]
      additionalProperties: false
    http: {method: POST, url: "%s/refunds"%s}
%s
%s
agents:
  support:
    instructions: You refund orders.
    model: scripted
    tools: %s
%s
policy: %s
`, r.dir, r.queue, or(s.heart, "2s"), r.model.URL(), or(s.heart, "2s"), r.payURL,
		or(s.refund, "idempotent"), or(s.timeout, "5s"), r.payURL, s.http, s.harm, s.toolsYML,
		or(s.tools, "[lookup_order, refund]"), s.agent,
		or(s.policy, "{rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell}"))
	if err := os.WriteFile(filepath.Join(r.dir, "holdfast.yaml"), []byte(yaml), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// A process is one worker.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// worker starts a worker with failpoints such as "tool.after_commit=kill", or none.
func (r *rig) worker(failpoints string) *process {
	r.t.Helper()
	return r.process(exec.Command(parts.binary, "worker", "--config", filepath.Join(r.dir, "holdfast.yaml")),
		"HOLDFAST_FAILPOINT="+failpoints, "HOLDFAST_FAILPOINT_LOG="+r.points)
}

// process starts a worker's command.
func (r *rig) process(cmd *exec.Cmd, env ...string) *process {
	r.t.Helper()
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), "TEMPORAL_ADDRESS="+r.addr, "TEMPORAL_NAMESPACE=default"), env...)
	cmd.Stdout, cmd.Stderr = r.log, r.log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.done) }()
	r.t.Cleanup(func() { p.kill() })
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// died waits for a worker that is to kill itself.
func (r *rig) died(p *process) {
	r.t.Helper()
	select {
	case <-p.done:
		if p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			r.t.Fatalf("the worker ended by itself: %v", p.cmd.ProcessState)
		}
	case <-time.After(patience):
		r.t.Fatal("the worker never came to its failpoint")
	}
}

func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// send gives a session a message, starting the session if need be. It returns without waiting for a worker.
func (r *rig) send(ctx context.Context, session string, m agent.Message) (agent.SendResult, error) {
	op := r.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: r.prefix + session, TaskQueue: r.queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, agent.WorkflowSession, agent.SessionInput{Agent: "support"})
	h, err := r.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: op,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: r.prefix + session, UpdateName: agent.UpdateSend, UpdateID: m.ID, Args: []any{m},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return agent.SendResult{}, err
	}
	var res agent.SendResult
	err = h.Get(ctx, &res)
	return res, err
}

// start sends the message in the background, so that a test can kill the worker meanwhile.
func (r *rig) start(session, text string) {
	r.t.Helper()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _ = r.send(ctx, session, agent.Message{ID: "m-" + session, Text: text})
	}()
}

// ended waits for the end of a turn.
func (r *rig) ended(session string, turn int) agent.TurnResult {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var res agent.TurnResult
	var err error
	r.eventually("the turn ends", func() bool {
		err = r.client.GetWorkflow(ctx, agent.TurnID(r.prefix+session, turn), "").Get(ctx, &res)
		return err == nil || !strings.Contains(err.Error(), "not found")
	})
	if err == nil {
		return res
	}
	res, ok := agent.ResultIn(err)
	if !ok {
		r.t.Fatalf("turn %d of %s: %v", turn, session, err)
	}
	return res
}

// view asks the session.
func (r *rig) view(session string) (v agent.SessionView, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q, err := r.client.QueryWorkflow(ctx, r.prefix+session, "", agent.QuerySession)
	if err != nil {
		return v, err
	}
	return v, q.Get(&v)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
