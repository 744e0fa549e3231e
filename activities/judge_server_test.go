package activities

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// On a real server: the run takes two signals and a flood, continues as new, and the run after it has the decision
// judged. The time is the signal's event's, in the run before.
func TestARealServersHistorySaysWhenADecisionCame(t *testing.T) {
	t.Parallel()
	c := realClient(t)

	w, _, r := asks(t, `{"amount":10}`)
	w.Client = c
	r.RequestedAt, r.ExpiresAt = time.Now(), time.Now().Add(time.Hour)
	in := agent.JudgeInput{Scope: w.scope, Request: r, Definition: w.digest().Short(), Serial: 3}
	runs := worker.New(c, "q", worker.Options{})
	runs.RegisterActivity(w.Judge)
	runs.RegisterWorkflowWithOptions(func(ctx workflow.Context, in agent.JudgeInput) (res agent.JudgeResult, err error) {
		if in.Run == "" {
			for in.Decision.ID == "" {
				workflow.GetSignalChannel(ctx, agent.SignalApproval).Receive(ctx, &in.Decision)
			}
			in.Run = workflow.GetInfo(ctx).WorkflowExecution.RunID
			workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
			return res, workflow.NewContinueAsNewError(ctx, "Judged", in)
		}
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: 30 * time.Second})
		return res, workflow.ExecuteLocalActivity(ctx, w.Judge, in).Get(ctx, &res)
	}, workflow.RegisterOptions{Name: "Judged"})
	if err := runs.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runs.Stop)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: agent.TurnID("s1", 1), TaskQueue: "q"}, "Judged", in)
	if err != nil {
		t.Fatal(err)
	}
	signal := func(name string, v any) {
		if err := c.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), name, v); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	signal(agent.SignalApproval, approves(r, "alice"))
	after := time.Now()
	for range 50 {
		signal("noise", 1)
	}
	signal("go", nil)
	var res agent.JudgeResult
	if err := run.Get(t.Context(), &res); err != nil {
		t.Fatal(err)
	}
	if at := res.Decided.At; res.Why != "" || at.Before(before.Add(-time.Millisecond)) || at.After(after.Add(time.Millisecond)) || res.Decided.Approver != "alice" {
		t.Errorf("%+v, sent between %s and %s", res, before, after)
	}
	// Whoever carries an order out may not know the run that took it: see planner.ordered.
	for _, other := range []string{"", "0198c0de-0000-7000-8000-000000000000"} {
		at, err := w.search(t.Context(), signalPlace{namespace: "default", workflow: run.GetID(), run: other, name: agent.SignalApproval}, func([]byte) bool { return true })
		if err != nil || !at.Equal(res.Decided.At) {
			t.Errorf("from run %q: %s, %v", other, at, err)
		}
	}
}
