package workflows_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
)

// Anybody can send the key of an effect, and each look costs an activity: so many that Temporal would end the run.
func TestAFloodOfKeysCostsFewLooks(t *testing.T) {
	t.Parallel()
	const most = 250
	pay, wait := call("pay", "a", agent.ClassOnce), ask("wait", "w", agent.ClassOnce, 1)
	t.Run("turn", func(t *testing.T) {
		t.Parallel()
		c := &court{say: agent.SettleResult{Why: "still not known"}, world: world{answers: []agent.ModelResult{calls(pay), calls(wait)}}}
		env := newCourt(t, c)
		often(env, 1000, func() { env.SignalWorkflow(agent.SignalSettle, agent.Settlement{Key: keyAt(1, 1, pay)}) })
		later(env, 50*time.Minute, agent.SignalApproval, approve(2, 1, wait, "alice"))
		finish(t, env, turnInput())
		if len(c.settled) == 0 || len(c.settled) > most || len(c.sent) != 2 {
			t.Errorf("looked %d times, sent %d", len(c.settled), len(c.sent))
		}
	})
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		c := &court{say: agent.SettleResult{Why: "still not known"}}
		env, _ := sessionOf(t, c)
		often(env, 1000, func() { env.SignalWorkflow(agent.SignalSettle, agent.Settlement{Key: left(t, env)}) })
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(agent.SignalSettle, agent.Settlement{Key: left(t, env), Outcome: agent.StateFailed, Evidence: "no entry", Approver: "alice"})
		}, 2*time.Hour)
		closeAfter(env, agent.Close{}, 3*time.Hour)
		env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
		var res agent.SessionResult
		if err := env.GetWorkflowResult(&res); err != nil || len(res.Unresolved) != 0 || len(c.settled) > most {
			t.Errorf("result %+v, %v, looked %d times", res, err, len(c.settled))
		}
	})
}

// often does something every second.
func often(env *testsuite.TestWorkflowEnvironment, n int, do func()) {
	if n > 0 {
		env.RegisterDelayedCallback(func() {
			do()
			often(env, n-1, do)
		}, time.Second)
	}
}

// One word that waits asks all that a hundred of them would.
func TestTheSameKeyWaitsOnce(t *testing.T) {
	t.Parallel()
	pay, wait := call("pay", "a", agent.ClassOnce), ask("wait", "w", agent.ClassOnce, 1)
	c := &court{say: agent.SettleResult{Why: "still not known"}, world: world{answers: []agent.ModelResult{calls(pay), calls(wait)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		for range 100 {
			env.SignalWorkflow(agent.SignalSettle, agent.Settlement{Key: keyAt(1, 1, pay)})
		}
	}, time.Minute)
	later(env, 50*time.Minute, agent.SignalApproval, approve(2, 1, wait, "alice"))
	finish(t, env, turnInput())
	if n := len(c.settled); n == 0 || n > 10 {
		t.Errorf("looked %d times", n)
	}
}
