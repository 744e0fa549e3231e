package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// On a real server: a session that is to be a fork is started before there is a worker, and is judged by when that was;
// what a turn without a closing record is at is what the server says.
func TestARealServerSaysWhenAForkWasOrderedAndWhetherItsTurnHasEnded(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	w, _, heads := forks(t, "mem://")
	w.Client = c
	start := func(queue, id, kind string, in any) client.WorkflowRun {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, kind, in)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	before := time.Now()
	first := start("q", "fork", "Forks", w.fork("fork", w.scope, 2))
	after := time.Now()
	turn := start("nobody's", agent.TurnID("s1", 4), agent.WorkflowTurn, nil)

	runs := worker.New(c, "q", worker.Options{})
	runs.RegisterActivityWithOptions(w.Fork, activity.RegisterOptions{Name: agent.ActivityFork})
	runs.RegisterWorkflowWithOptions(func(ctx workflow.Context, in agent.ForkInput) (res agent.ForkResult, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second})
		return res, workflow.ExecuteActivity(ctx, agent.ActivityFork, in).Get(ctx, &res)
	}, workflow.RegisterOptions{Name: "Forks"})
	if err := runs.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runs.Stop)

	var res agent.ForkResult
	if err := first.Get(t.Context(), &res); err != nil {
		t.Fatal(err)
	}
	if at := res.Origin.At; res.Origin.Head != heads[2] || at.Before(before.Add(-time.Millisecond)) || at.After(after.Add(time.Millisecond)) {
		t.Errorf("%+v, started between %s and %s", res.Origin, before, after)
	}
	for _, says := range []string{"has not ended: wait for its end", "left no closing record"} {
		err := start("q", "fork-of-4", "Forks", w.fork("fork-of-4", w.scope, 4)).Get(t.Context(), nil)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.Type() != agent.ErrFork || !strings.Contains(app.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
		_ = c.TerminateWorkflow(t.Context(), turn.GetID(), turn.GetRunID(), "")
	}
	err := start("q", "fork-of-9", "Forks", w.fork("fork-of-9", w.scope, 9)).Get(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "no turn 9 of session") {
		t.Error(err)
	}
}
