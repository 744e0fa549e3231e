package histories

import (
	"bytes"
	"cmp"
	"context"
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
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

const (
	patience = 90 * time.Second
	// apiKey is what the worker shows the scripted model; no history may hold it.
	apiKey = "key-that-no-history-may-hold"
)

// A stage is where a scene is played: a task queue, workers and an outside world of its own.
type stage struct {
	t      *testing.T
	scene  scene
	dir    string
	binary string
	addr   string
	client client.Client
	model  *modeltest.Server
	said   *lockedBuffer
	pay    *payments.Service
	payURL string
	worker *os.Process // the latest one
	stop   func()      // kills it
	// instructions are the agent's, build that of the next worker in a deployment, queueOf the session whose task
	// queue is polled, each if it is not as usual.
	instructions, build, queueOf string
}

func newStage(t *testing.T, sc scene, binary, addr string) *stage {
	t.Helper()
	s := &stage{t: t, scene: sc, dir: t.TempDir(), binary: binary, addr: addr, said: &lockedBuffer{}}
	var err error
	s.client, err = client.Dial(client.Options{HostPort: addr, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.model = modeltest.ForTest(t, modeltest.Config{Func: sc.model})
	sc.pay.Path = filepath.Join(s.dir, "books")
	sc.pay.Orders = []payments.Order{{ID: "42", Item: "kettle", Status: "delivered", Total: 1990}}
	pay, err := payments.New(sc.pay)
	if err != nil {
		t.Fatal(err)
	}
	s.pay = pay
	web := httptest.NewServer(pay)
	t.Cleanup(func() { web.Close(); pay.Close() })
	s.payURL = web.URL
	s.configure(2)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("workers said:\n%s", s.said.String())
		}
	})
	return s
}

func (s *stage) configure(serial int) {
	s.t.Helper()
	class, timeout := cmp.Or(s.scene.refund, "idempotent"), "5s"
	if s.scene.dies != "" || s.scene.holds != "" {
		timeout = "1s" // a later attempt waits for as long as an earlier one may take
	}
	yaml := fmt.Sprintf(`serial: %d
store: {url: "file://./store"}
worker: {task_queue: %q, tool_heartbeat: 2s, stop_timeout: 2s, sticky_timeout: 1s}
models:
  scripted:
    base_url: %q
    key: env:RECORDED_KEY
    timeouts: {heartbeat: 2s, attempt: 90s, call: 2m}
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
    http: {method: POST, url: "%s/refunds"}
    compensate: {tool: take_back, args: {refund: result.refund}}
  take_back:
    description: Takes a refund back.
    effect: idempotent
    timeout: 5s
    parameters: {type: object, properties: {refund: {type: string}}, required: [refund], additionalProperties: false}
    http: {method: POST, url: "%s/refunds/{refund}/%s"}
agents:
  support:
    instructions: %s
    model: scripted
    tools: [lookup_order, refund]
%s
policy: {%s}
`, serial, s.queue(), s.model.URL(), s.payURL, class, timeout, s.payURL, s.payURL, cmp.Or(s.scene.undo, "void"),
		cmp.Or(s.instructions, "You refund orders."), s.scene.agent, s.policy())
	if err := os.WriteFile(filepath.Join(s.dir, "holdfast.yaml"), []byte(yaml), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) queue() string { return "histories-" + cmp.Or(s.queueOf, s.scene.session) }

// work starts a worker and returns a channel that closes when it is dead.
func (s *stage) work(failpoints string) <-chan struct{} {
	s.t.Helper()
	args := []string{"worker", "--config", filepath.Join(s.dir, "holdfast.yaml")}
	if s.scene.deployment != "" {
		args = append(args, "--deployment", s.scene.deployment, "--build-id", cmp.Or(s.build, "first"))
	}
	cmd := exec.Command(s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.addr, "TEMPORAL_NAMESPACE=default",
		"HOLDFAST_FAILPOINT="+failpoints, "RECORDED_KEY="+apiKey)
	cmd.Stdout, cmd.Stderr = s.said, s.said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	dead := make(chan struct{})
	go func() { _ = cmd.Wait(); close(dead) }()
	s.worker = cmd.Process
	s.stop = func() { _ = cmd.Process.Signal(syscall.SIGKILL); <-dead }
	s.t.Cleanup(s.stop)
	return dead
}

// perform plays the scene to its end: the session is closed.
func (s *stage) perform() {
	s.t.Helper()
	switch {
	case s.scene.holds != "":
		s.work(s.scene.holds + ":1=file:" + s.door())
	case s.scene.dies == "":
		s.work("")
	default:
		dead := s.work(s.scene.dies + ":1=kill")
		go func() {
			<-dead
			if s.t.Context().Err() == nil {
				s.work("")
			}
		}()
	}
	s.scene.play(s)
	s.over(s.id(0))
}

// id returns the workflow id of a turn, of the session for 0, or of the n-th late compensation of turn 1 for -n.
func (s *stage) id(turn int) string {
	switch {
	case turn == 0:
		return s.scene.session
	case turn < 0:
		return agent.UndoID(s.scene.session, 1, -turn)
	}
	return agent.TurnID(s.scene.session, turn)
}

// send gives the session its n-th message, starting it if need be.
func (s *stage) send(n int) { s.deliver(n, false) }

// steer gives the running turn a message.
func (s *stage) steer(n int) { s.deliver(n, true) }

func (s *stage) deliver(n int, now bool) {
	s.t.Helper()
	s.give(agent.Message{ID: fmt.Sprintf("message-%d", n), Text: fmt.Sprintf("Message %d: refund order 42.", n), From: "user", Now: now})
}

func (s *stage) give(m agent.Message) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	name := "support"
	if s.scene.session == "nobody" {
		name = "nobody"
	}
	start := s.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: s.scene.session, TaskQueue: s.queue(), WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, agent.WorkflowSession, agent.SessionInput{Agent: name, Tenant: "acme"})
	h, err := s.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: s.scene.session, UpdateName: agent.UpdateSend, UpdateID: m.ID, Args: []any{m},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", m.ID, err)
	}
}

// turn sends a message and waits for the end of its turn.
func (s *stage) turn(n int) {
	s.t.Helper()
	s.send(n)
	s.ended(n)
}

// ended waits until a turn is over and the session knows.
func (s *stage) ended(n int) {
	s.t.Helper()
	s.over(s.id(n))
	s.eventually("the session has taken over the turn", func() bool {
		v, err := query[agent.SessionView](s, s.id(0), agent.QuerySession)
		return err == nil && v.Running != n
	})
}

// over waits until a workflow is closed, whatever its end.
func (s *stage) over(id string) {
	s.t.Helper()
	s.eventually(id+" is over", func() bool {
		d, err := s.client.DescribeWorkflow(s.t.Context(), id, "")
		return err == nil && d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	})
}

// asked waits until the model server has had n requests.
func (s *stage) asked(n int) {
	s.t.Helper()
	s.eventually("the model is asked", func() bool { return s.model.Count() >= n })
}

// waits until the turn waits for a person.
func (s *stage) waits(n int) {
	s.t.Helper()
	s.eventually("the turn waits", func() bool {
		v, err := query[agent.TurnView](s, s.id(n), agent.QueryTurn)
		return err == nil && v.Status == agent.StatusWaiting
	})
}

// refuses waits until the session has refused to close.
func (s *stage) refuses() {
	s.t.Helper()
	s.eventually("the session refuses to close", func() bool {
		v, err := query[agent.SessionView](s, s.id(0), agent.QuerySession)
		return err == nil && v.Refused != ""
	})
}

func (s *stage) close(acceptUncertain bool) {
	s.t.Helper()
	s.signal(s.id(0), agent.SignalClose, agent.Close{AcceptUncertain: acceptUncertain, From: "user"})
}

func (s *stage) signal(id, name string, arg any) {
	s.t.Helper()
	if err := s.client.SignalWorkflow(s.t.Context(), id, "", name, arg); err != nil {
		s.t.Fatal(err)
	}
}

// restart replaces the worker by one whose configuration has another serial.
func (s *stage) restart(serial int) {
	s.t.Helper()
	s.stop()
	s.configure(serial)
	s.work("")
}

// adopt has the running worker take a configuration of another serial.
func (s *stage) adopt(serial int) {
	s.t.Helper()
	s.configure(serial)
	s.eventually("the configuration is in force", func() bool {
		return strings.Contains(s.said.String(), fmt.Sprintf(`"configuration in force" serial=%d`, serial))
	})
}

// door is the file for which a worker waits at the scene's failpoint.
func (s *stage) door() string { return filepath.Join(s.dir, "open") }

func (s *stage) open() {
	s.t.Helper()
	s.must(os.WriteFile(s.door(), nil, 0o600))
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// hasScheduled says whether a turn has an activity of a type.
func (s *stage) hasScheduled(turn int, typ string) bool {
	d, err := s.client.DescribeWorkflow(s.t.Context(), s.id(turn), "")
	if err != nil {
		return false
	}
	for _, a := range d.RawResponse.GetPendingActivities() {
		if a.GetActivityType().GetName() == typ {
			return true
		}
	}
	return false
}

// runs returns the histories of a workflow's runs, first to last. Of one that was reset, it is the latest run: what
// came before is discarded.
func (s *stage) runs(id string) []*historypb.History {
	s.t.Helper()
	latest := s.fetch(id, "")
	for _, e := range latest.GetEvents() {
		if e.GetWorkflowTaskFailedEventAttributes().GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			return []*historypb.History{latest}
		}
	}
	var out []*historypb.History
	run := latest.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetFirstExecutionRunId()
	for run != "" {
		h := s.fetch(id, run)
		out = append(out, h)
		last := h.GetEvents()[len(h.GetEvents())-1]
		run = last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return out
}

func (s *stage) fetch(id, run string) *historypb.History {
	s.t.Helper()
	h := &historypb.History{}
	it := s.client.GetWorkflowHistory(s.t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			s.t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func query[V any](s *stage, id, name string) (v V, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	q, err := s.client.QueryWorkflow(ctx, id, "", name)
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
	return strings.ToValidUTF8(l.b.String(), "?")
}

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
