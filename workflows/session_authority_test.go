package workflows_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
)

// sessionOf returns a session whose first turn pays, with an outcome that nobody knows.
func sessionOf(t *testing.T, c *court) (*testsuite.TestWorkflowEnvironment, agent.Call) {
	t.Helper()
	pay := call("pay", "a", agent.ClassOnce)
	c.answers = []agent.ModelResult{calls(pay)}
	c.tools = map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
		return agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Text: "nobody knows"}, nil
	}}
	env := newCourt(t, c)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	var s sent
	send(env, &s, msg("m"), 0)
	return env, pay
}

// left is the key of the effect that the session's first turn left unresolved.
func left(t *testing.T, env *testsuite.TestWorkflowEnvironment) string {
	t.Helper()
	v := view[agent.EffectsView](t, env, agent.QueryEffects)
	if len(v.Effects) != 1 {
		t.Fatalf("unresolved %+v", v.Effects)
	}
	return v.Effects[0].Key
}

func TestASessionTakesAWordOnWhatItsTurnsLeftAndThenCloses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settle func(key string) any
		says   agent.SettleResult
		left   int
		why    string
	}{
		"a person's": {func(key string) any {
			return agent.Settlement{Key: key, Outcome: agent.StateFailed, Evidence: "no entry", Approver: "alice"}
		}, agent.SettleResult{}, 0, ""},
		"a late attempt's": {
			func(key string) any { return agent.Settlement{Key: key} },
			agent.SettleResult{Result: agent.ToolResult{State: agent.StateCommitted, Attempt: 1}},
			0, "",
		},
		"about another effect": {func(string) any {
			return agent.Settlement{Key: "other", Outcome: agent.StateFailed, Evidence: "no entry", Approver: "alice"}
		}, agent.SettleResult{}, 1, "no effect of that key"},
		"not JSON": {func(string) any { return []byte{0xff} }, agent.SettleResult{}, 1, "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{say: test.says}
			env, _ := sessionOf(t, c)
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(agent.SignalSettle, test.settle(left(t, env))) }, time.Hour)
			env.RegisterDelayedCallback(func() {
				v := view[agent.EffectsView](t, env, agent.QueryEffects)
				if len(v.Effects) != test.left {
					t.Errorf("unresolved %+v", v.Effects)
				}
				if test.why != "" && (len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Why, test.why)) {
					t.Errorf("refused %+v", v.Refused)
				}
			}, 2*time.Hour)
			closeAfter(env, agent.Close{AcceptUncertain: test.left > 0}, 3*time.Hour)
			env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
			var res agent.SessionResult
			if err := env.GetWorkflowResult(&res); err != nil || len(res.Unresolved) != test.left {
				t.Errorf("result %+v, %v", res, err)
			}
		})
	}
}

func TestALateCompensationIsATurnOfItsOwn(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	c := &court{}
	c.answers = []agent.ModelResult{calls(pay)}
	env := newCourt(t, c)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	var s sent
	send(env, &s, msg("m"), 0)
	c.plan.Then = agent.UnwindCompensate
	env.RegisterDelayedCallback(func() {
		key := c.sent[0].Key()
		undo := agent.Undo{
			Effect: agent.Effect{Key: key, Tool: "pay", Place: agent.Place{Turn: 1, Step: 1, Call: 1}, State: agent.StateCommitted},
			Call:   call("unpay", "b", agent.ClassOnce),
		}
		c.plan.Undos = []agent.Undo{undo}
		env.SignalWorkflow(agent.SignalCompensate, agent.Compensate{Turn: 7, Approver: "alice"})
		env.SignalWorkflow(agent.SignalCompensate, agent.Compensate{Turn: 1, Approver: "alice"})
	}, time.Hour)
	closeAfter(env, agent.Close{}, 2*time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(c.sent) != 2 || c.sent[1].Key() != agent.UndoKey(c.sent[0].Key(), 1) {
		t.Fatalf("sent %+v", c.sent)
	}
	if len(c.planned) != 1 || c.planned[0].Command.Approver != "alice" || c.planned[0].Of != 1 {
		t.Errorf("planned %+v", c.planned)
	}
	if got := c.closed[1]; got.Undo != 1 || got.Turn != 1 || len(got.Entries) != 0 {
		t.Errorf("closing record %+v", got)
	}
}

func TestASessionCountsWhatItsTurnsUse(t *testing.T) {
	t.Parallel()
	c := &court{}
	c.limits = agent.Limits{Session: &agent.Budget{Steps: 2}}
	c.answers = []agent.ModelResult{calls(call("look", "a", agent.ClassRead))}
	env := newCourt(t, c)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	var s sent
	send(env, &s, msg("one"), 0)
	send(env, &s, msg("two"), time.Minute)                            // nothing is left
	later(env, time.Hour, agent.SignalExtend, agent.Extend{Steps: 1}) // and now something is
	send(env, &s, msg("three"), 2*time.Hour)
	closeAfter(env, agent.Close{}, 3*time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range c.closed {
		got = append(got, string(in.Result.Status))
	}
	if strings.Join(got, " ") != "done budget_exhausted done" {
		t.Errorf("turns ended as %v", got)
	}
}

func TestAWordThatComesBeforeItsTurnsEndIsKnownIsKept(t *testing.T) {
	t.Parallel()
	c := &court{say: agent.SettleResult{Result: agent.ToolResult{State: agent.StateCommitted, Attempt: 1}}}
	env, _ := sessionOf(t, c)
	// The turn waits in its second step; a worker's word on the effect of the first comes to the session.
	c.limits = agent.Limits{Steps: 1, Wait: agent.Duration(time.Hour)}
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(agent.SignalSettle, agent.Settlement{Key: c.sent[0].Key()})
	}, time.Minute)
	closeAfter(env, agent.Close{}, 3*time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil || len(res.Unresolved) != 0 || len(c.settled) != 1 {
		t.Errorf("result %+v, %v, looked into %d", res, err, len(c.settled))
	}
}
