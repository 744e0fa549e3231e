package workflows_test

import (
	"encoding/json"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// A run that continues as new takes along that it was to be cancelled: the next run is not told.
func TestACancelThatMeetsARenewalIsNotLost(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(env canceller){
		"by Temporal":   func(env canceller) { env.CancelWorkflow() },
		"by the signal": func(env canceller) { env.SignalWorkflow(agent.SignalCancel, agent.Cancel{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pay := ask("pay", "a", agent.ClassOnce, 1)
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			env := newCourt(t, c)
			atOnce(env, time.Minute, func() { cancel(env) })
			env.ExecuteWorkflow(agent.WorkflowTurn, turnInput())
			in, renewed := continuedAs(env.GetWorkflowError())
			if renewed {
				env = newCourt(t, c)
				later(env, time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
				env.ExecuteWorkflow(agent.WorkflowTurn, in)
			}
			wellEnded(t, env, c)
			if len(c.sent) != 0 || c.closed[0].Result.Status != agent.StatusCancelled {
				t.Errorf("sent %+v, closed %+v", c.sent, c.closed[0].Result)
			}
		})
	}
}

// atOnce does something in the same workflow task in which Temporal suggests to continue as new.
func atOnce(env *testsuite.TestWorkflowEnvironment, at time.Duration, do func()) {
	env.RegisterDelayedCallback(func() {
		env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, 0) // begins no task by itself
		do()
	}, at)
}

// sealed is a state as a run of the latest schema hands it on.
func sealed(t *testing.T, state map[string]any) *agent.Checkpoint {
	t.Helper()
	c, err := versioning.Seal(3, state)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type canceller interface {
	CancelWorkflow()
	SignalWorkflow(name string, arg any)
}

// An effect that waits for more budget is authorized, and ends when the turn is cancelled.
func TestAnEffectThatWaitedForBudgetEndsWithItsTurn(t *testing.T) {
	t.Parallel()
	c := &court{world: world{
		limits:  agent.Limits{Effects: 1, Wait: agent.Duration(time.Hour)},
		answers: []agent.ModelResult{calls(call("a", "1", agent.ClassOnce), call("b", "2", agent.ClassOnce))},
	}}
	env := newCourt(t, c)
	atOnce(env, time.Minute, func() { env.SignalWorkflow(agent.SignalExtend, agent.Extend{Steps: 1}) })
	in := continued(t, env, turnInput())
	var st map[string]any
	err := json.Unmarshal([]byte(in.Checkpoint.State), &st)
	st["cancelledBy"] = "cancelled" // by a signal that was drained
	if err != nil {
		t.Fatal(err)
	}
	in.Checkpoint = sealed(t, st)
	next := newCourt(t, c)
	next.ExecuteWorkflow(agent.WorkflowTurn, in)
	wellEnded(t, next, c)
}

// Waiting is not work, also when the run continues as new while the turn waits.
func TestTheTimeOfARunThatWaitedForBudgetIsNoWork(t *testing.T) {
	t.Parallel()
	c := &court{world: world{
		limits:  agent.Limits{Steps: 1, Time: agent.Duration(time.Hour), Wait: agent.Duration(24 * time.Hour)},
		answers: []agent.ModelResult{calls(call("look", "1", agent.ClassRead))},
	}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(agent.SignalExtend, agent.Extend{Tokens: 1})
	}, 10*time.Hour)
	in := continued(t, env, turnInput())
	next := newCourt(t, c)
	next.SetStartTime(env.Now())
	later(next, time.Hour, agent.SignalExtend, agent.Extend{Steps: 1})
	if res := finish(t, next, in); res.Status != agent.StatusDone || res.Spent.Time.Std() > time.Minute {
		t.Errorf("result %+v %+v", res, res.Reason)
	}
}
