package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/versioning"
)

// A fleetTest is a server, and builds of one deployment that poll it.
type fleetTest struct {
	*testing.T
	client client.Client
	at     client.Options
	config *Config
}

func startFleet(t *testing.T) *fleetTest {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	server, err := devserver.Start(t.Context(), devserver.Options{Headless: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	model := modeltest.ForTest(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step { return modeltest.Say("hello") }})
	f := &fleetTest{T: t, at: client.Options{HostPort: server.Address(), Namespace: server.Namespace()}}
	text := strings.Replace(least, "http://127.0.0.1:1/v1", model.URL(), 1) + "worker: {deployment: agents, stop_timeout: 1s}\n"
	if f.config, err = parseWith(nil, t.TempDir(), text); err != nil {
		t.Fatal(err)
	}
	o := f.at
	o.Logger = nothing{}
	if f.client, err = client.Dial(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.client.Close)
	return f
}

// run starts a worker, which lives as long as the test, and returns its status and what it logs.
func (f *fleetTest) run(build string) (Status, *logged) {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	at, log, ready, ended := f.at, &logged{}, make(chan Status, 1), make(chan error, 1)
	go func() {
		ended <- Options{
			Client: &at, Build: build, Health: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(log, nil)),
			Ready: func(s Status) { ready <- s },
		}.Run(ctx, f.config)
	}()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("build %s: %v", build, err)
		}
	})
	select {
	case s := <-ready:
		return s, log
	case err := <-ended:
		ended <- nil
		f.Fatalf("build %s did not start: %v", build, err)
	}
	return Status{}, nil
}

// says waits for a worker to log something.
func (f *fleetTest) says(log *logged, want string) {
	f.Helper()
	eventually(f.T, want, func() error {
		if s := log.String(); !strings.Contains(s, want) {
			return fmt.Errorf("it says only %s", s)
		}
		return nil
	})
}

func (f *fleetTest) promote(build string) {
	f.Helper()
	_, err := f.deployment().SetCurrentVersion(f.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fleetTest) deployment() client.WorkerDeploymentHandle {
	return f.client.WorkerDeploymentClient().GetHandle("agents")
}

func (f *fleetTest) start(session string) {
	f.Helper()
	_, err := f.client.ExecuteWorkflow(f.Context(), client.StartWorkflowOptions{ID: session, TaskQueue: agent.TaskQueue},
		agent.WorkflowSession, agent.SessionInput{Agent: "hello"})
	if err != nil {
		f.Fatal(err)
	}
}

// turn sends a message and returns what its turn worked with, and which version Temporal says that it ran on.
func (f *fleetTest) turn(session string, n int) (agent.TurnView, worker.WorkerDeploymentVersion) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	h, err := f.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: session, UpdateName: agent.UpdateSend, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{agent.Message{ID: fmt.Sprint("m", n), Text: "hi"}},
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	if err != nil {
		f.Fatalf("turn %d: %v", n, err)
	}
	id := agent.TurnID(session, n)
	eventually(f.T, id, func() error { return f.client.GetWorkflow(ctx, id, "").Get(ctx, nil) })
	var view agent.TurnView
	q, err := f.client.QueryWorkflow(ctx, id, "", agent.QueryTurn)
	if err == nil {
		err = q.Get(&view)
	}
	d, err2 := f.client.DescribeWorkflow(ctx, id, "")
	if err != nil || err2 != nil {
		f.Fatal(err, err2)
	}
	v := d.RawResponse.GetWorkflowExecutionInfo().GetVersioningInfo()
	if v.GetBehavior() != enumspb.VERSIONING_BEHAVIOR_PINNED {
		f.Errorf("turn %d is %s", n, v.GetBehavior())
	}
	return view, worker.WorkerDeploymentVersion{DeploymentName: v.GetDeploymentVersion().GetDeploymentName(), BuildID: v.GetDeploymentVersion().GetBuildId()}
}

func TestABuildOfADeploymentGetsWorkOnceItIsPromoted(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	s, log := f.run("v1.0+a")
	if s.Deployment != "agents" || s.Build != "v1.0+a" {
		t.Errorf("status: %+v", s)
	}
	f.says(log, "build v1.0+a of deployment agents polls; there is no current build: nothing new reaches it until holdfast deploy promote v1.0+a")
	eventually(t, "readiness before anything reaches it", func() error { return answers(t, "http://"+s.Health+"/readyz") })
	d, err := f.deployment().Describe(t.Context(), client.WorkerDeploymentDescribeOptions{})
	first := worker.WorkerDeploymentVersion{DeploymentName: "agents", BuildID: "v1.0+a"}
	if err != nil || len(d.Info.VersionSummaries) != 1 || d.Info.VersionSummaries[0].Version != first {
		t.Fatalf("the server knows %+v, %v", d.Info, err)
	}
	f.start("talk")
	if n := f.tasks("talk"); n != 0 {
		t.Errorf("%d workflow tasks before the build is promoted", n)
	}
	f.promote(first.BuildID)
	view, on := f.turn("talk", 1)
	want, err := Options{Build: first.BuildID}.Inventory(t.Context(), f.config)
	if err != nil {
		t.Fatal(err)
	}
	if on != first || view.Build != first.BuildID || view.Definition != want.Agents["hello"].Digest {
		t.Errorf("the turn ran on %v with build %q and definition %s, not %s", on, view.Build, view.Definition, want.Agents["hello"].Digest)
	}
	if view.Change != versioning.Bounds(agent.WorkflowTurn).Preferred {
		t.Errorf("the turn has number %d, not the preferred %d", view.Change, versioning.Bounds(agent.WorkflowTurn).Preferred)
	}

	_, log = f.run("v2")
	f.says(log, "build v2 of deployment agents polls; the current build is v1.0+a: nothing new reaches it until holdfast deploy promote v2")
	if _, on := f.turn("talk", 2); on != first {
		t.Errorf("the second turn ran on %v before v2 was promoted", on)
	}
	f.promote("v2")
	if view, on := f.turn("talk", 3); on.BuildID != "v2" || view.Build != "v2" {
		t.Errorf("the third turn of the same session ran on %v with build %q", on, view.Build)
	}
}

// tasks counts the workflow tasks that a worker took.
func (f *fleetTest) tasks(id string) (n int) {
	f.Helper()
	events := f.client.GetWorkflowHistory(f.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			f.Fatal(err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED {
			n++
		}
	}
	return n
}

func answers(t *testing.T, url string) error {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", r.StatusCode)
	}
	return nil
}

// eventually tries until f succeeds.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A logged is what a worker logged so far.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *logged) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *logged) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// nothing is a logger.
type nothing struct{}

func (nothing) Debug(string, ...any) {}
func (nothing) Info(string, ...any)  {}
func (nothing) Warn(string, ...any)  {}
func (nothing) Error(string, ...any) {}
