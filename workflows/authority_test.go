package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestAnApprovalLetsExactlyItsActionRun(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
		if len(v.Approvals) != 1 || v.Approvals[0].Action != pay.Action || v.Approvals[0].Outcome != agent.OutcomePending {
			t.Errorf("view %+v", v)
		}
		if got := view[agent.TurnView](t, env, agent.QueryTurn); got.Status != agent.StatusWaiting || !strings.Contains(got.Waiting, "holdfast approve") {
			t.Errorf("turn %+v", got)
		}
		if len(c.sent) != 0 {
			t.Error("it ran before anybody approved it")
		}
	}, time.Minute)
	later(env, 2*time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || len(c.sent) != 1 || c.sent[0].Grant == nil {
		t.Fatalf("result %+v, sent %+v", res, c.sent)
	}
	g := c.sent[0].Grant
	if g.Action != pay.Action || len(g.Decisions) != 1 || g.Decisions[0].Approver != "alice" {
		t.Errorf("grant %+v", g)
	}
	want := []string{"requested", "awaiting_approval", "authorized", "dispatched", "committed"}
	var got []string
	for _, s := range c.closed[0].Ledger[0].Trail {
		got = append(got, string(s.State))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	if a := c.closed[0].Approvals; len(a) != 1 || a[0].Outcome != agent.OutcomeApproved {
		t.Errorf("closing record has %+v", a)
	}
}

func TestADecisionThatDoesNotCountIsRefusedWithItsReasonAndChangesNothing(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 2)
	good := approve(1, 1, pay, "alice")
	for name, test := range map[string]struct {
		signal any
		why    string
	}{
		"another digest":     {with(good, func(d *agent.ApprovalDecision) { d.Digest = agent.DigestOf([]byte("other")) }), "its digest is not"},
		"no digest":          {with(good, func(d *agent.ApprovalDecision) { d.Digest = "" }), "64 hex digits"},
		"another session":    {with(good, func(d *agent.ApprovalDecision) { d.ID = "x~00000000:turn-1/1.1/abc#1" }), "no such request"},
		"another ask":        {with(good, func(d *agent.ApprovalDecision) { d.ID = agent.ApprovalID(keyAt(1, 1, pay), 2) }), ""}, // kept: it may come
		"another word":       {with(good, func(d *agent.ApprovalDecision) { d.Choice = "yes" }), `"yes"`},
		"nobody":             {with(good, func(d *agent.ApprovalDecision) { d.Approver = "" }), "approver's name"},
		"no right":           {with(good, func(d *agent.ApprovalDecision) { d.Reason = "no right" }), "may not decide"},
		"not JSON":           {[]byte("\x00\x01"), "JSON"},
		"a number":           {17, "JSON"},
		"a list":             {[]string{"approve"}, "JSON"},
		"null":               {nil, "JSON"},
		"an unknown field":   {map[string]any{"id": good.ID, "digset": good.Digest}, "digset"},
		"another type":       {map[string]any{"id": 7}, "JSON"},
		"a megabyte":         {with(good, func(d *agent.ApprovalDecision) { d.Reason = strings.Repeat("x", 1<<20) }), "limit"},
		"an edit to decline": {with(good, func(d *agent.ApprovalDecision) { d.Choice, d.Args = agent.ChoiceDecline, "{}" }), "edit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			env := newCourt(t, c)
			later(env, time.Minute, agent.SignalApproval, test.signal)
			env.RegisterDelayedCallback(func() {
				v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
				if len(v.Approvals) != 1 || v.Approvals[0].Outcome != agent.OutcomePending || len(v.Approvals[0].Decisions) != 0 {
					t.Errorf("approvals %+v", v.Approvals)
				}
				switch {
				case test.why == "" && len(v.Refused) != 0:
					t.Errorf("refused %+v", v.Refused)
				case test.why != "" && (len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Why, test.why)):
					t.Errorf("refused %+v, want %q", v.Refused, test.why)
				}
			}, 2*time.Minute)
			// The real decisions still count.
			later(env, 3*time.Minute, agent.SignalApproval, good)
			later(env, 3*time.Minute, agent.SignalApproval, good) // delivered twice: one person
			later(env, 4*time.Minute, agent.SignalApproval, approve(1, 1, pay, "bob"))
			res := finish(t, env, turnInput())
			if res.Status != agent.StatusDone || len(c.sent) != 1 || len(c.sent[0].Grant.Decisions) != 2 {
				t.Errorf("result %+v, sent %+v", res, c.sent)
			}
		})
	}
}

func TestDeclinedExpiredAndWithdrawnAreThreeThings(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	for name, test := range map[string]struct {
		choice agent.Choice
		state  agent.State
		says   string
	}{
		"declined":  {agent.ChoiceDecline, agent.StateDeclined, "declined by alice (claimed): too much"},
		"withdrawn": {agent.ChoiceCancel, agent.StateCancelled, "withdrawn by alice"},
		"expired":   {"", agent.StateExpired, "nobody decided by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			env := newCourt(t, c)
			if test.choice != "" {
				later(env, time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
					d.Choice, d.Reason = test.choice, "too much"
				}))
			}
			res := finish(t, env, turnInput())
			if res.Status != agent.StatusDone || len(c.sent) != 0 {
				t.Fatalf("result %+v, sent %+v", res, c.sent)
			}
			if got := c.asked[1].Entries[0].Text; !strings.Contains(got, test.says) {
				t.Errorf("the model hears %q", got)
			}
			if got := c.closed[0].Ledger[0].State; got != test.state {
				t.Errorf("state %q", got)
			}
		})
	}
}

func TestSeveralRequestsOfOneStepAreDecidedApart(t *testing.T) {
	t.Parallel()
	a, b, r := ask("a", "a", agent.ClassOnce, 1), ask("b", "b", agent.ClassOnce, 1), ask("r", "r", agent.ClassRead, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(a, b, r)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		if v := view[agent.ApprovalsView](t, env, agent.QueryApprovals); len(v.Approvals) != 3 {
			t.Errorf("not all requests opened at once: %+v", v.Approvals)
		}
	}, time.Second)
	// Approved in another order than asked for: effects start in the order asked for all the same.
	later(env, time.Minute, agent.SignalApproval, approve(1, 2, b, "alice"))
	later(env, 2*time.Minute, agent.SignalApproval, approve(1, 3, r, "alice"))
	later(env, 3*time.Minute, agent.SignalApproval, with(approve(1, 1, a, "alice"), func(d *agent.ApprovalDecision) { d.Choice = agent.ChoiceDecline }))
	finish(t, env, turnInput())
	var sent []string
	for _, in := range c.sent {
		sent = append(sent, in.Tool)
	}
	if diff := cmp.Diff([]string{"r", "b"}, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a declined", "b committed"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestADecisionAheadOfItsRequestIsKept(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(call("look", "x", agent.ClassRead)), calls(pay)}}}
	env := newCourt(t, c)
	later(env, 0, agent.SignalApproval, approve(2, 1, pay, "alice"))
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || len(c.sent) != 2 || c.sent[1].Grant == nil {
		t.Errorf("result %+v, sent %+v", res, c.sent)
	}
}

func TestAnEditMakesAnotherActionWithAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	edit := `{"amount":1}`
	later(env, time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) { d.Args = edit }))
	finish(t, env, turnInput())
	if len(c.sent) != 1 || c.sent[0].Args != edit || c.sent[0].Action == pay.Action || c.sent[0].Grant.Proposed != pay.Action {
		t.Fatalf("sent %+v", c.sent)
	}
	if diff := cmp.Diff([]string{"pay superseded", "pay committed"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	last := c.closed[0].Approvals[1]
	if last.Proposed != pay.Action || last.ProposedArgs != pay.Args || last.Args != edit || last.Outcome != agent.OutcomeApproved {
		t.Errorf("approval %+v", last)
	}
}

func TestAVoidApprovalIsAskedForAfreshAndTheThirdEndsTheCall(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	void := agent.ToolResult{
		State: agent.StateVoid, Note: "the order was closed meanwhile", Text: "not run: its authority changed three times",
		Verdict: &pay.Verdict, Terms: pay.Terms,
	}
	c := &court{world: world{
		answers: []agent.ModelResult{calls(pay)},
		tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) { return void, nil }},
	}}
	env := newCourt(t, c)
	for n := 1; n <= 4; n++ {
		later(env, time.Duration(n)*time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
			d.ID = agent.ApprovalID(keyAt(1, 1, pay), n)
		}))
	}
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || len(c.sent) != agent.MaxVoids {
		t.Errorf("result %+v, sent %d times", res, len(c.sent))
	}
	var outcomes []string
	for _, a := range c.closed[0].Approvals {
		outcomes = append(outcomes, fmt.Sprint(a.Ask, " ", a.Outcome, " ", a.Why != ""))
	}
	if diff := cmp.Diff([]string{"1 void false", "2 void true", "3 void true"}, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestATurnContinuesAsNewWhileItWaitsForPeople(t *testing.T) {
	t.Parallel()
	pay, look := ask("pay", "a", agent.ClassOnce, 2), ask("look", "l", agent.ClassRead, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(call("first", "f", agent.ClassOnce), pay, look)}}}
	in := turnInput()
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, approve(1, 2, pay, "alice"))
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(agent.SignalApproval, "rubbish that wakes it up")
	}, 2*time.Minute)
	in = continued(t, env, in)
	next := newCourt(t, c)
	later(next, time.Minute, agent.SignalApproval, approve(1, 2, pay, "bob"))
	later(next, 2*time.Minute, agent.SignalApproval, approve(1, 3, look, "bob"))
	res := finish(t, next, in)
	if res.Status != agent.StatusDone || len(c.sent) != 3 || len(c.sent[1].Grant.Decisions) != 2 {
		t.Errorf("result %+v, sent %+v", res, c.sent)
	}
	// What asks is entered before what does not.
	if diff := cmp.Diff([]string{"pay committed", "first committed"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
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

func TestACancelledTurnWithdrawsWhatWaitsAndSendsNothing(t *testing.T) {
	t.Parallel()
	a, b := ask("a", "a", agent.ClassOnce, 1), ask("b", "b", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(a, b)}}}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, approve(1, 2, b, "alice")) // approved, and its turn has not come
	later(env, 2*time.Minute, agent.SignalCancel, agent.Cancel{From: "bob"})
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusCancelled || len(c.sent) != 0 {
		t.Errorf("result %+v, sent %+v", res, c.sent)
	}
	if diff := cmp.Diff([]string{"a cancelled", "b cancelled"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestAnUncertainEffectHoldsTheTurnUntilItIsSettled(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	unknown := agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Text: "nobody knows", Hold: true}
	for name, test := range map[string]struct {
		signal agent.Settlement
		say    agent.SettleResult
		hears  string
		later  bool // whether the next effect of the step runs
		left   int
	}{
		"by a person": {agent.Settlement{Key: keyAt(1, 1, pay), Outcome: agent.StateCommitted, Evidence: "seen in the ledger", Approver: "alice"}, agent.SettleResult{}, "settled as committed", true, 0},
		"by a late attempt": {
			agent.Settlement{Key: keyAt(1, 1, pay)},
			agent.SettleResult{Result: agent.ToolResult{State: agent.StateFailed, Attempt: 1, Text: "refused by the bank"}},
			"refused by the bank", true, 0,
		},
		"by a word that knows nothing": {agent.Settlement{Key: keyAt(1, 1, pay)}, agent.SettleResult{Why: "still not known"}, "nobody knows", false, 1},
		"without evidence":             {agent.Settlement{Key: keyAt(1, 1, pay), Outcome: agent.StateFailed, Approver: "alice"}, agent.SettleResult{}, "nobody knows", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{say: test.say, world: world{
				limits:  agent.Limits{Wait: agent.Duration(24 * time.Hour)},
				answers: []agent.ModelResult{calls(pay, call("next", "b", agent.ClassOnce))},
				tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) { return unknown, nil }},
			}}
			env := newCourt(t, c)
			later(env, time.Hour, agent.SignalSettle, test.signal)
			res := finish(t, env, turnInput())
			if len(res.Effects) != test.left || len(c.asked[1].Entries) != 2 {
				t.Fatalf("result %+v, entries %+v", res, c.asked[1].Entries)
			}
			if got := c.asked[1].Entries[0].Text; !strings.Contains(got, test.hears) {
				t.Errorf("the model hears %q", got)
			}
			if ran := len(c.sent) == 2; ran != test.later {
				t.Errorf("sent %+v", c.sent)
			}
		})
	}
}

func TestALateWordThatContradictsAnEndIsAConflictAndChangesNothing(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	c := &court{
		say: agent.SettleResult{Result: agent.ToolResult{State: agent.StateCommitted, Attempt: 1, Note: "the record says so"}},
		world: world{
			limits:  agent.Limits{Steps: 1, Wait: agent.Duration(time.Hour)},
			answers: []agent.ModelResult{calls(pay)},
			tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Attempt: 1}, nil
			}},
		},
	}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalSettle, agent.Settlement{Key: keyAt(1, 1, pay)})
	res := finish(t, env, turnInput())
	if len(res.Effects) != 1 || res.Effects[0].State != agent.StateFailed || res.Effects[0].Conflict == "" {
		t.Errorf("effects %+v", res.Effects)
	}
}

func TestAContradictionIsListedUntilAPersonHasLooked(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	c := &court{
		say: agent.SettleResult{Result: agent.ToolResult{State: agent.StateCommitted, Attempt: 1}},
		world: world{
			limits:  agent.Limits{Steps: 1, Wait: agent.Duration(time.Hour)},
			answers: []agent.ModelResult{calls(pay)},
			tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Attempt: 1}, nil
			}},
		},
	}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalSettle, agent.Settlement{Key: keyAt(1, 1, pay)})
	later(env, 2*time.Minute, agent.SignalSettle, agent.Settlement{
		Key: keyAt(1, 1, pay), Outcome: agent.StateCommitted, Evidence: "it is in the bank's list", Approver: "alice",
	})
	res := finish(t, env, turnInput())
	e := c.closed[0].Ledger[0]
	if len(res.Effects) != 0 || e.State != agent.StateFailed || e.Conflict == "" || !strings.Contains(e.Looked, "bank's list") {
		t.Errorf("result %+v, effect %+v", res, e)
	}
}

func TestAVoidApprovalThatIsThenDeclinedIsNeverSentByAZombie(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{
		answers: []agent.ModelResult{calls(pay)},
		tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
			return agent.ToolResult{State: agent.StateVoid, Note: "policy changed", Verdict: &pay.Verdict, Terms: pay.Terms}, nil
		}},
	}}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
	later(env, 2*time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
		d.ID, d.Choice = agent.ApprovalID(keyAt(1, 1, pay), 2), agent.ChoiceDecline
	}))
	finish(t, env, turnInput())
	// The world's reconcile says that nobody knows: it was asked, and what it says is not hidden.
	if e := c.closed[0].Ledger[0]; e.State != agent.StateDeclined {
		t.Errorf("effect %+v", e)
	}
	if got := c.asked[1].Entries[0].Text; got != "nobody knows" {
		t.Errorf("the model hears %q", got)
	}
}

func TestAFailedTurnIsUndoneInReverseOrder(t *testing.T) {
	t.Parallel()
	one, two, three := call("one", "1", agent.ClassOnce), call("two", "2", agent.ClassOnce), call("three", "3", agent.ClassOnce)
	undo := func(n int, c agent.Call, with agent.Call) agent.Undo {
		return agent.Undo{Effect: agent.Effect{Key: keyAt(1, n, c), Tool: c.Tool, Place: agent.Place{Turn: 1, Step: 1, Call: n}, State: agent.StateCommitted}, Call: with}
	}
	broken := call("undo-one", "u1", agent.ClassOnce)
	final := undo(3, three, agent.Call{})
	final.Irreversible = true
	c := &court{
		plan: agent.PlanResult{Then: agent.UnwindCompensate, Undos: []agent.Undo{
			final, undo(2, two, ask("undo-two", "u2", agent.ClassOnce, 1)), undo(1, one, broken),
		}},
		world: world{
			limits:  agent.Limits{Faults: 1},
			answers: []agent.ModelResult{calls(one, two, three), {Finish: agent.FinishRefusal, Text: "no"}},
			tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"undo-one": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Attempt: 1, Note: "the bank is closed"}, nil
			}},
		},
	}
	env := newCourt(t, c)
	approval := approve(1, 2, two, "alice")
	undoTwo := c.plan.Undos[1].Call
	approval.ID, approval.Digest = agent.ApprovalID(agent.UndoKey(keyAt(1, 2, two), 1), 1), undoTwo.Action
	later(env, time.Minute, agent.SignalApproval, approval)
	res := finish(t, env, turnInput())
	var sent []string
	for _, in := range c.sent[3:] {
		sent = append(sent, in.Tool+" "+in.Key())
	}
	want := []string{"undo-two " + agent.UndoKey(keyAt(1, 2, two), 1), "undo-one " + agent.UndoKey(keyAt(1, 1, one), 1)}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	wantStates := []string{"one compensation_failed", "two compensated", "three irreversible", "undo-two committed", "undo-one failed"}
	if diff := cmp.Diff(wantStates, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	left := []string{"one compensation_failed", "three irreversible"} // for a person to look at
	if diff := cmp.Diff(left, states(res.Effects)); diff != "" || res.Status != agent.StatusFailed || !strings.Contains(res.Effects[0].Note, "the bank is closed") {
		t.Errorf("result %+v", res)
	}
}

func TestBudgetsBoundEffectsAndTheSession(t *testing.T) {
	t.Parallel()
	two := []agent.ModelResult{calls(call("a", "1", agent.ClassOnce), call("b", "2", agent.ClassOnce))}
	for name, test := range map[string]struct {
		limits agent.Limits
		spent  agent.Budget
		says   string
		sent   int
	}{
		"effects of the turn":    {agent.Limits{Effects: 1}, agent.Budget{}, "1 of 1 effects", 1},
		"effects of the session": {agent.Limits{Session: &agent.Budget{Effects: 3}}, agent.Budget{Effects: 2}, "3 of 3 effects of the session", 1},
		"steps of the session":   {agent.Limits{Session: &agent.Budget{Steps: 5}}, agent.Budget{Steps: 5}, "5 of 5 steps of the session", 0},
		"tokens of the session":  {agent.Limits{Session: &agent.Budget{Tokens: 100}}, agent.Budget{Tokens: 95}, "106 of 100 tokens of the session", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{limits: test.limits, answers: two}}
			in := turnInput()
			in.Spent = test.spent
			res := finish(t, newCourt(t, c), in)
			if res.Status != agent.StatusBudget || !strings.Contains(res.Reason.Message, test.says) || len(c.sent) != test.sent {
				t.Errorf("result %+v %+v, sent %d", res, res.Reason, len(c.sent))
			}
		})
	}
}

func TestASignalOfAnyBytesNeverFailsTheTurn(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		for _, name := range []string{agent.SignalApproval, agent.SignalSettle} {
			for _, v := range []any{nil, 1, "x", []byte{0xff, 0}, json.RawMessage(`{"id":{}}`), map[string]string{"key": keyAt(1, 1, pay)}, strings.Repeat("y", 1<<20)} {
				for range 40 {
					env.SignalWorkflow(name, v)
				}
			}
		}
	}, time.Minute)
	later(env, 2*time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
	env.RegisterDelayedCallback(func() {
		v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
		if len(v.Refused) != agent.MaxRefusals || len(v.Refused)+v.More != 7*40 {
			t.Errorf("%d refusals listed and %d more", len(v.Refused), v.More)
		}
	}, 90*time.Second)
	if res := finish(t, env, turnInput()); res.Status != agent.StatusDone || len(c.sent) != 1 {
		t.Errorf("result %+v", res)
	}
}
