package activities

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/tool"
)

// realClient returns a client of a server of the test's own.
func realClient(t *testing.T) client.Client {
	t.Helper()
	server, err := devserver.Start(t.Context(), devserver.Options{Headless: true})
	if errors.Is(err, devserver.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip("needs the Temporal server: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	c, err := client.Dial(client.Options{HostPort: server.Address(), Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// payOnce is a workflow of one tool call, as a turn makes it.
func payOnce(ctx workflow.Context, in agent.ToolInput) (res agent.ToolResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second, WaitForCancellation: true,
	})
	err = workflow.ExecuteActivity(ctx, agent.ActivityTool, in).Get(ctx, &res)
	return res, err
}

func (w *world) serve(t *testing.T, c client.Client) worker.Worker {
	t.Helper()
	w.Client = c
	wk := worker.New(c, "pay", worker.Options{WorkerStopTimeout: 10 * time.Second})
	wk.RegisterWorkflow(payOnce)
	w.Register(wk)
	if err := wk.Start(); err != nil {
		t.Fatal(err)
	}
	return wk
}

func TestOnARealServerAStoppedWorkerLeavesWhatItHasNotSentToTheNext(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	tried := make(chan struct{}, 10)
	f := newFake(t, spec(agent.ClassOnce), nil)
	f.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
		if c.Attempt == 1 {
			tried <- struct{}{}
			return tool.Result{}, tool.NotSent(errors.New("connection refused"))
		}
		return tool.Result{Data: []byte("paid")}, nil
	}
	w := newWorld(t, "mem://", f)
	in := w.asked("pay", `{}`)
	first := w.serve(t, c)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: agent.TurnID("s1", 1), TaskQueue: "pay"}, payOnce, in)
	if err != nil {
		t.Fatal(err)
	}
	<-tried
	first.Stop()
	w2 := worldOver(t, w.Store, f)
	second := w2.serve(t, c)
	defer second.Stop()
	var res agent.ToolResult
	if err := run.Get(t.Context(), &res); err != nil {
		t.Fatal(err)
	}
	wantState(t, res, agent.StateCommitted)
	if res.Text != "paid" || res.Attempt != 2 || res.Cancel != "" {
		t.Errorf("result %+v", res)
	}
}

func TestOnARealServerACancelReachesTheToolAndItsOutcomeCounts(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	started, stopped := make(chan struct{}), make(chan struct{})
	f := newFake(t, spec(agent.ClassOnce), func(context.Context, tool.Call) (tool.Result, error) {
		close(started)
		<-stopped
		return tool.Result{}, tool.Failed(errors.New("stopped before it was done"))
	})
	f.stops = func(tool.Call) error { close(stopped); return nil }
	w := newWorld(t, "mem://", f)
	in := w.asked("pay", `{}`)
	wk := w.serve(t, c)
	defer wk.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: agent.TurnID("s1", 1), TaskQueue: "pay"}, payOnce, in)
	if err != nil {
		t.Fatal(err)
	}
	<-started
	if err := c.CancelWorkflow(t.Context(), run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	var res agent.ToolResult
	if err := run.Get(t.Context(), &res); err != nil {
		t.Fatal(err)
	}
	wantState(t, res, agent.StateFailed)
	if res.Cancel != agent.CancelAccepted {
		t.Errorf("result %+v", res)
	}
}
