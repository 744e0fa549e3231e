package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/worker"
)

// A field is a server with sessions on it.
type field struct {
	t       *testing.T
	address string
	config  string // the file
	client  client.Client
}

func newField(t *testing.T) *field {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	// A server deletes a run when it has ticked off all that the run's end brought about.
	server, err := devserver.Start(t.Context(), devserver.Options{Headless: true, Dynamic: []string{
		`history.transferProcessorUpdateAckInterval="100ms"`, `history.visibilityProcessorUpdateAckInterval="100ms"`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	dir, model := t.TempDir(), modeltest.ForTest(t, modeltest.Config{Func: script})
	f := &field{t: t, address: server.Address(), config: filepath.Join(dir, "holdfast.yaml")}
	text := fmt.Appendf(nil, testConfig, filepath.Join(dir, "store"), model.URL())
	if err := os.WriteFile(f.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := worker.Parse(f.config, dir, text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runWorker(t, cfg, f.address, tools()...))
	if f.client, err = client.Dial(client.Options{HostPort: f.address}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.client.Close)
	return f
}

func (f *field) run(stdin string, args ...string) ran {
	return command(stdin, append(args, "--address", f.address, "--config", f.config)...)
}

// ok runs a command that has to succeed.
func (f *field) ok(args ...string) string {
	f.t.Helper()
	got := f.run("", args...)
	if got.code != ExitDone {
		f.t.Fatalf("%v: %+v", args, got)
	}
	return got.out
}

// settle waits until so many runs match: lists lag behind.
func (f *field) settle(query string, want int64) {
	f.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n, err := f.client.CountWorkflow(f.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err == nil && n.GetCount() == want {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s matches %d runs, want %d; %v", query, n.GetCount(), want, err)
		}
	}
}

func (f *field) report(args ...string) (deploy.Report, ran) {
	f.t.Helper()
	got := f.run("", append([]string{"replay", "-o", "json"}, args...)...)
	var r deploy.Report
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		f.t.Fatalf("%v: %+v", err, got)
	}
	return r, got
}

func TestRunsOfARealServerAreReplayed(t *testing.T) {
	t.Parallel()
	f := newField(t)
	if got := f.run("", "replay"); got.code != ExitError || !strings.Contains(got.err, "no session and no turn matches") {
		t.Errorf("an empty namespace: %+v", got)
	}
	f.ok("run", "helper", "hello", "--session", "idle", "-q")
	f.ok("run", "helper", "note this", "--session", "noted", "-q")
	f.ok("start", "helper", "slow", "--session", "busy")
	f.settle("ExecutionStatus = 'Running'", 4)

	r, got := f.report()
	if got.code != ExitDone || !r.OK() || r.Total != 4 || r.Replayed()+r.NotRun != 4 || len(r.Types) == 0 || r.Types[0].Type != agent.WorkflowSession {
		t.Errorf("open runs: %+v %+v", r, got)
	}
	f.settle("ExecutionStatus = 'Completed'", 2)
	if r, got = f.report("--query", `WorkflowType = "Turn" AND ExecutionStatus = "Completed"`); got.code != ExitDone || r.Total != 2 || r.Types[0].Type != agent.WorkflowTurn {
		t.Errorf("closed turns: %+v %+v", r, got)
	}
	if got := f.run("", "replay", "--query", `HoldfastStatus="waiting"`); got.code != ExitError || !strings.Contains(got.err, "nothing to replay") {
		t.Errorf("nothing waits: %+v", got)
	}
	if got := f.run("", "replay", "--query", `HoldfastStatus="waiting"`, "--allow-empty"); got.code != ExitDone {
		t.Errorf("nothing waits, allowed: %+v", got)
	}
	if got := f.run(f.shown("noted:turn-1"), "replay", "-"); got.code != ExitDone || !strings.Contains(got.out, "Turn: 1 history, 1 replay") {
		t.Errorf("what temporal workflow show prints: %+v", got)
	}
	for _, query := range []string{`Colour = "red"`, `HoldfastStatus = `, `HoldfastStatus "waiting"`, `1 = 1) OR (1 = 1`} {
		got := f.run("", "replay", "--query", query)
		if got.code != ExitError || !strings.Contains(got.err, "error: query ") || !strings.Contains(got.err, `for example: --query 'HoldfastStatus="waiting"'`) {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if err := f.client.TerminateWorkflow(t.Context(), agent.TurnID("busy", 1), "", "by a test"); err != nil {
		t.Fatal(err)
	}
	f.settle("ExecutionStatus = 'Terminated'", 1)
	if r, got = f.report("--query", `ExecutionStatus = "Terminated" OR ExecutionStatus = "Running"`); got.code != ExitDone || r.Total != 4 || !r.OK() {
		t.Errorf("a terminated turn: %+v %+v", r, got)
	}
}

// shown is what "temporal workflow show -o json" prints.
func (f *field) shown(workflow string) string {
	f.t.Helper()
	temporal, err := devserver.Find(f.t.Context(), "")
	if err != nil {
		f.t.Fatal(err)
	}
	b, err := exec.CommandContext(f.t.Context(), temporal, "workflow", "show", "--address", f.address, "-w", workflow, "-o", "json").Output()
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// What was too large for history is read from the workers' store, where there is one.
func TestWhatLiesInTheStoreIsReplayedOrSaidToLieThere(t *testing.T) {
	t.Parallel()
	f := newField(t)
	text := "note " + strings.Repeat("x", agent.MaxMessage-10)
	if got := f.run(text, "start", "helper", "-", "--session", "large"); got.code != ExitDone {
		t.Fatalf("exit code %d: %.500s", got.code, got.err)
	}
	turn := fmt.Sprintf("WorkflowId = '%s'", agent.TurnID("large", 1))
	f.settle(turn+" AND ExecutionStatus = 'Completed'", 1)
	query := turn + " OR WorkflowId = 'large'" // the session handed it on
	if r, got := f.report("--query", query); got.code != ExitDone || r.Replayed() != 2 {
		t.Errorf("with the store: %+v %+v", r, got)
	}
	f.config = filepath.Join(t.TempDir(), "none.yaml")
	r, got := f.report("--query", query)
	if got.code != ExitError || len(r.Unread) != 2 || !strings.Contains(r.Unread[0].Reason, "kept in the workers' store") {
		t.Errorf("without it: %+v %+v", r, got)
	}
}

// gate looks at the server, and lets something happen after it has listed the runs and before it reads them.
func (f *field) gate(meanwhile func()) deploy.Gate {
	g, _ := (&App{}).gate(1)
	g.Client, g.Namespace = meddling{f.client, sync.OnceFunc(meanwhile)}, client.DefaultNamespace
	return g
}

type meddling struct {
	client.Client
	meanwhile func()
}

type meddlingService struct {
	workflowservice.WorkflowServiceClient
	meanwhile func()
}

func (m meddling) WorkflowService() workflowservice.WorkflowServiceClient {
	return meddlingService{m.Client.WorkflowService(), m.meanwhile}
}

func (m meddlingService) ListWorkflowExecutions(ctx context.Context, in *workflowservice.ListWorkflowExecutionsRequest, opts ...grpc.CallOption) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page, err := m.WorkflowServiceClient.ListWorkflowExecutions(ctx, in, opts...)
	m.meanwhile()
	return page, err
}

// erase ends a run and takes its history away, as the end of its retention does.
func (f *field) erase(id string) {
	f.t.Helper()
	if err := f.client.TerminateWorkflow(f.t.Context(), id, "", "by a test"); err != nil {
		f.t.Fatal(err)
	}
	x := &commonpb.WorkflowExecution{WorkflowId: id}
	_, err := f.client.WorkflowService().DeleteWorkflowExecution(f.t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: x,
	})
	for deadline := time.Now().Add(60 * time.Second); err == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s is still there", id)
		}
		_, err = f.client.DescribeWorkflow(f.t.Context(), id, "")
	}
	if !isNotFound(err) {
		f.t.Fatal(err)
	}
}

func TestARunThatIsDeletedMeanwhileIsNotPassed(t *testing.T) {
	t.Parallel()
	f := newField(t)
	for _, session := range []string{"kept", "erased"} {
		f.ok("run", "helper", "hello", "--session", session, "-q")
	}
	f.settle("ExecutionStatus = 'Running'", 2)
	r, err := f.gate(func() { f.erase("erased") }).Runs(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || r.Total != 2 || r.Replayed() != 1 || len(r.Unread) != 1 || r.Unread[0].Workflow != "erased" || !strings.Contains(r.Unread[0].Reason, "any more") {
		t.Errorf("report %+v", r)
	}
}

// Eight turns later a session is in another run.
func TestASessionThatContinuesAsNewMeanwhileIsLookedAtInBothRuns(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.ok("run", "helper", "hello", "--session", "long", "-q")
	f.settle("ExecutionStatus = 'Running'", 1)
	runs := map[string]deploy.Item{}
	r, err := f.gate(func() {
		for range 9 {
			f.ok("run", "helper", "hello", "--session", "long", "-q")
		}
	}).Runs(t.Context(), "", func(i deploy.Item) { runs[i.Run] = i })
	if err != nil || !r.OK() {
		t.Fatalf("%v, %+v", err, r)
	}
	if len(runs) < 2 || r.Total != len(runs) {
		t.Errorf("looked at %d runs, %+v: want the one that was listed and the one after it", len(runs), r)
	}
	for run, i := range runs {
		var view agent.SessionView
		if err := i.Replayed.Query(agent.QuerySession, &view); err != nil || i.Workflow != "long" || i.Info == nil {
			t.Errorf("run %s: %v, %+v", run, err, i)
		}
	}
}

// A build whose workflows do something else fails the gate for every run.
func TestABuildThatCouldNotGoOnIsFound(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.ok("run", "helper", "hello", "--session", "one", "-q")
	f.ok("start", "helper", "slow", "--session", "two")
	f.settle("ExecutionStatus = 'Running'", 3)
	g := f.gate(func() {})
	g.Register = func(r sdkworker.WorkflowRegistry) {
		for _, typ := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
			r.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ any) error { return workflow.Sleep(ctx, time.Hour) }, workflow.RegisterOptions{Name: typ})
		}
	}
	r, err := g.Runs(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || len(r.Failures)+r.NotRun != 3 || len(r.Failures) == 0 {
		t.Fatalf("report %+v", r)
	}
	for _, x := range r.Failures {
		if x.Build == "" || x.Run == "" || len(x.Findings) == 0 || x.Findings[0].Event == 0 || x.Findings[0].Cause == "" || x.Findings[0].Advice == "" {
			t.Errorf("failure %+v", x)
		}
	}
}
