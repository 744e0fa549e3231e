package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// court stands in for the activities of authority. A decision whose reason is "no right" is refused.
type court struct {
	world
	judged  []agent.JudgeInput
	settled []agent.SettleInput
	planned []agent.PlanInput
	plan    agent.PlanResult
	// say is what the record or the destination says when it is asked.
	say agent.SettleResult
	// edit changes what an approver makes of an action.
	edit func(*agent.Call)
}

func (c *court) judge(_ context.Context, in agent.JudgeInput) (agent.JudgeResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judged = append(c.judged, in)
	d := in.Decision
	if d.Reason == "no right" {
		return agent.JudgeResult{Why: d.Approver + " may not decide this"}, nil
	}
	res := agent.JudgeResult{Decided: agent.Decided{ApprovalDecision: d, At: in.Request.RequestedAt, Claimed: d.Signature == ""}, Quorum: in.Request.Terms.Quorum}
	if d.Args != "" {
		e := ask(in.Request.Tool, "edited", in.Request.Class, in.Request.Terms.Quorum)
		e.Args, e.Action = d.Args, agent.DigestOf([]byte(d.Args))
		if c.edit != nil {
			c.edit(&e)
		}
		res.Edited = &e
	}
	return res, nil
}

func (c *court) settle(_ context.Context, in agent.SettleInput) (agent.SettleResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = append(c.settled, in)
	s := in.Settlement
	if s.Outcome == "" {
		return c.say, nil
	}
	return agent.SettleResult{Looked: in.Effect.State != agent.StateUncertain, By: s.Approver, Result: agent.ToolResult{
		State: s.Outcome, Attempt: 1, Text: "settled as " + string(s.Outcome), Evidence: s.Evidence, Note: "settled by " + s.Approver,
	}}, nil
}

func (c *court) planIt(_ context.Context, in agent.PlanInput) (agent.PlanResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned = append(c.planned, in)
	return c.plan, nil
}

func (c *court) register(env *testsuite.TestWorkflowEnvironment) {
	c.world.register(env)
	for name, f := range map[string]any{
		agent.ActivityJudge: c.judge, agent.ActivitySettle: c.settle, agent.ActivityPlan: c.planIt,
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

func newCourt(t *testing.T, c *court) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	c.register(env)
	return env
}

func ask(tool, intent string, class agent.Class, quorum int) agent.Call {
	c := call(tool, intent, class)
	c.Verdict = agent.Verdict{Decision: agent.DecisionAsk, Rule: "big", Policy: "0123456789abcdef"}
	c.Terms = &agent.Terms{Quorum: quorum, Expires: agent.Duration(time.Hour), Risk: agent.RiskHigh}
	return c
}

// keyAt is the key of a call of the first turn.
func keyAt(step, n int, c agent.Call) string {
	return agent.ActionKey(turnInput().Scope, agent.Place{Turn: 1, Step: step, Call: n}, c.Action)
}

func approve(step, n int, c agent.Call, who string) agent.ApprovalDecision {
	return agent.ApprovalDecision{
		ID: agent.ApprovalID(keyAt(step, n, c), 1), Digest: c.Action, Choice: agent.ChoiceApprove, Approver: who, Ref: who,
	}
}

func with(d agent.ApprovalDecision, change func(*agent.ApprovalDecision)) agent.ApprovalDecision {
	change(&d)
	return d
}

func view[T any](t *testing.T, env *testsuite.TestWorkflowEnvironment, name string) T {
	t.Helper()
	var out T
	if env.IsWorkflowCompleted() {
		t.Fatalf("the run is over: %v", env.GetWorkflowError())
	}
	v, err := env.QueryWorkflow(name)
	if err == nil {
		err = v.Get(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// later sends a signal after a time that the environment skips.
func later(env *testsuite.TestWorkflowEnvironment, after time.Duration, signal string, arg any) {
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(signal, arg) }, after)
}

func states(ledger []agent.Effect) []string {
	var out []string
	for _, e := range ledger {
		out = append(out, e.Tool+" "+string(e.State))
	}
	return out
}

// continuedAs returns the next run's input when a run continued as new.
func continuedAs(err error) (in agent.TurnInput, ok bool) {
	var renewed *workflow.ContinueAsNewError
	if !errors.As(err, &renewed) {
		return in, false
	}
	return in, converter.GetDefaultDataConverter().FromPayloads(renewed.Input, &in) == nil
}

// continued runs a turn that continues as new and returns the next run's input.
func continued(t *testing.T, env *testsuite.TestWorkflowEnvironment, in agent.TurnInput) agent.TurnInput {
	t.Helper()
	env.ExecuteWorkflow(agent.WorkflowTurn, in)
	next, ok := continuedAs(env.GetWorkflowError())
	if !ok {
		t.Fatalf("did not continue as new: %v", env.GetWorkflowError())
	}
	return next
}
