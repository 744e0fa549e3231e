package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/workflows"
)

// world stands in for the activities: a script of model answers, and tools that say what they are told to.
type world struct {
	mu      sync.Mutex
	limits  agent.Limits
	sender  *agent.Actor      // as the first message proves it; nil is as it says
	became  *agent.ToolResult // of what is reconciled; nil is that nobody knows
	answers []agent.ModelResult
	tools   map[string]func(agent.ToolInput) (agent.ToolResult, error)
	asked   []agent.ModelInput
	sent    []agent.ToolInput
	closed  []agent.CloseInput
	// slow delays the model by Temporal's clock, which the test environment skips.
	onAsk func(n int)
	// opens opens a turn instead of the world's own way.
	opens func(context.Context, agent.OpenInput) (agent.OpenResult, error)
}

func (w *world) open(ctx context.Context, in agent.OpenInput) (agent.OpenResult, error) {
	if w.opens != nil {
		return w.opens(ctx, in)
	}
	if in.Agent == "nobody" {
		return agent.OpenResult{}, temporal.NewNonRetryableApplicationError("no agent nobody; there is: helper", agent.ErrUnknownAgent, nil)
	}
	sender := agent.Actor{Name: in.Message.From}
	if w.sender != nil {
		sender = *w.sender
	}
	return agent.OpenResult{
		Sender:     sender,
		Definition: agent.DigestOf([]byte("definition")), Model: "m", Limits: w.limits,
		Attempt: agent.Duration(time.Minute), Heartbeat: agent.Duration(10 * time.Second), ToolHeartbeat: agent.Duration(10 * time.Second), Store: "store-1", Serial: 4,
		Entry: agent.Entry{Role: agent.RoleUser, Text: in.Message.Text},
	}, nil
}

func (w *world) model(_ context.Context, in agent.ModelInput) (agent.ModelResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, in)
	n := len(w.asked)
	if w.onAsk != nil {
		w.onAsk(n)
	}
	if n > len(w.answers) {
		return agent.ModelResult{Head: next(in.Head), Finish: agent.FinishStop, Text: "done"}, nil
	}
	a := w.answers[n-1]
	a.Head = next(in.Head)
	return a, nil
}

func next(h agent.Head) agent.Head {
	return agent.Head{Seq: h.Seq + 1, Hash: agent.DigestOf(fmt.Appendf(nil, "%v", h))}
}

func (w *world) tool(_ context.Context, in agent.ToolInput) (agent.ToolResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, in)
	if f := w.tools[in.Tool]; f != nil {
		return f(in)
	}
	return agent.ToolResult{State: agent.StateCommitted, Text: "ok " + in.Tool, Attempt: 1}, nil
}

func (w *world) close(_ context.Context, in agent.CloseInput) (agent.CloseResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = append(w.closed, in)
	head := in.Result.Head
	if len(in.Entries) > 0 {
		head = next(head)
	}
	return agent.CloseResult{Closing: agent.DigestOf([]byte("closing")), Head: head, Store: "store-1"}, nil
}

// reconcile knows nothing of what was sent, unless the test says what became of it, and withdraws what was not sent.
func (w *world) reconcile(_ context.Context, in agent.ReconcileInput) (agent.ReconcileResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := agent.ReconcileResult{}
	for _, e := range in.Effects {
		sent := func(in agent.ToolInput) bool { return in.Key() == e.Key }
		switch {
		case w.became != nil:
			out.Results = append(out.Results, *w.became)
		case slices.ContainsFunc(w.sent, sent):
			out.Results = append(out.Results, agent.ToolResult{State: agent.StateUncertain, Text: "nobody knows", Attempt: 1})
		default:
			out.Results = append(out.Results, agent.ToolResult{State: agent.StateCancelled, Text: "withdrawn"})
		}
	}
	return out, nil
}

func (w *world) register(env *testsuite.TestWorkflowEnvironment) {
	for name, f := range map[string]any{
		agent.ActivityOpen: w.open, agent.ActivityModel: w.model, agent.ActivityTool: w.tool,
		agent.ActivityClose: w.close, agent.ActivityReconcile: w.reconcile,
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	workflows.Register(env, workflows.Options{})
}

func newTurn(t *testing.T, w *world) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	w.register(env)
	return env
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func turnInput() agent.TurnInput {
	return agent.TurnInput{
		Scope: agent.Scope{Session: "s", Life: "0123abcd"}, Turn: 1, Agent: "helper",
		Message: agent.Message{ID: "m1", Text: "hello"},
	}
}

func call(tool, intent string, class agent.Class) agent.Call {
	return agent.Call{
		ID: "call_" + tool + intent, Tool: tool, Args: "{}", Class: class, Action: agent.DigestOf([]byte(tool + intent)),
		Intent: intent, Summary: tool, Verdict: agent.Verdict{Decision: agent.DecisionAllow, Rule: "allow-listed"},
		Timeout: agent.Duration(time.Second),
	}
}

func calls(c ...agent.Call) agent.ModelResult {
	return agent.ModelResult{Finish: agent.FinishCalls, Calls: c, Usage: agent.Usage{Input: 10, Output: 1, Calls: 1}}
}

// finish runs the turn and returns how it ended, whether as a result or in a failure's details.
func finish(t *testing.T, env *testsuite.TestWorkflowEnvironment, in agent.TurnInput) agent.TurnResult {
	t.Helper()
	env.ExecuteWorkflow(agent.WorkflowTurn, in)
	var res agent.TurnResult
	err := env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&res)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res, ok := agent.ResultIn(err)
	if !ok {
		t.Fatal(err)
	}
	return res
}

func TestTurnAsksActsAndAnswers(t *testing.T) {
	t.Parallel()
	w := &world{answers: []agent.ModelResult{calls(call("look", "a", agent.ClassRead), call("pay", "b", agent.ClassIdempotent))}}
	res := finish(t, newTurn(t, w), turnInput())
	if res.Status != agent.StatusDone || res.Steps != 2 || res.Closing == "" || len(res.Effects) != 0 {
		t.Errorf("result %+v", res)
	}
	if got := w.asked[0].Entries; len(got) != 1 || got[0].Text != "hello" {
		t.Errorf("first entries %+v", got)
	}
	want := []agent.Entry{
		{Role: agent.RoleTool, Call: "call_looka", Text: "ok look"},
		{Role: agent.RoleTool, Call: "call_payb", Text: "ok pay"},
	}
	if diff := cmp.Diff(want, w.asked[1].Entries); diff != "" {
		t.Errorf("second entries (-want +got):\n%s", diff)
	}
	if led := w.closed[0].Ledger; len(led) != 1 || led[0].State != agent.StateCommitted {
		t.Errorf("ledger %+v", led)
	}
}

func TestEffectsStartInTheOrderAskedForAndAnUncertainOneStopsTheLater(t *testing.T) {
	t.Parallel()
	w := &world{
		answers: []agent.ModelResult{calls(
			call("first", "a", agent.ClassOnce), call("second", "b", agent.ClassOnce),
			call("third", "c", agent.ClassOnce), call("look", "d", agent.ClassRead))},
		tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){
			"first": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Text: "no money", Attempt: 1}, nil
			},
			"second": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateUncertain, Text: "who knows", Attempt: 1}, nil
			},
		},
	}
	res := finish(t, newTurn(t, w), turnInput())
	var sent []string
	for _, s := range w.sent {
		if s.Class != agent.ClassRead {
			sent = append(sent, s.Tool)
		}
	}
	if diff := cmp.Diff([]string{"first", "second"}, sent); diff != "" {
		t.Errorf("effects sent (-want +got):\n%s", diff)
	}
	if text := w.asked[1].Entries[2].Text; !strings.Contains(text, "not run") {
		t.Errorf("the third call heard %q", text)
	}
	if res.Status != agent.StatusDone || len(res.Effects) != 1 || res.Effects[0].Tool != "second" {
		t.Errorf("result %+v", res)
	}
}

func TestTheIntentOfAnUncertainEffectIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := &world{answers: []agent.ModelResult{calls(call("pay", "same", agent.ClassOnce))}}
	in := turnInput()
	in.Turn = 2
	in.Unresolved = []agent.Effect{{Key: "earlier", Intent: "same", State: agent.StateUncertain}}
	res := finish(t, newTurn(t, w), in)
	if len(w.sent) != 0 {
		t.Errorf("sent %+v", w.sent)
	}
	if text := w.asked[1].Entries[0].Text; !strings.Contains(text, "earlier") {
		t.Errorf("the model heard %q", text)
	}
	if res.Status != agent.StatusDone {
		t.Errorf("result %+v", res)
	}
}

func TestAToolActivityWithoutAnAnswerIsReconciled(t *testing.T) {
	t.Parallel()
	w := &world{
		answers: []agent.ModelResult{calls(call("pay", "a", agent.ClassOnce))},
		tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){
			"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{}, temporal.NewNonRetryableApplicationError("defect", agent.ErrInternal, nil)
			},
		},
	}
	res := finish(t, newTurn(t, w), turnInput())
	if len(res.Effects) != 1 || res.Effects[0].State != agent.StateUncertain {
		t.Errorf("effects %+v", res.Effects)
	}
}

func TestTroubleGoesBackToTheModelWithinABound(t *testing.T) {
	t.Parallel()
	bad := agent.Call{ID: "c", Tool: "nope", Trouble: "there is no tool nope"}
	w := &world{limits: agent.Limits{Faults: 3}}
	for range 10 {
		w.answers = append(w.answers, calls(bad))
	}
	res := finish(t, newTurn(t, w), turnInput())
	if res.Status != agent.StatusFailed || res.Reason.Type != agent.ErrFaults || len(w.asked) != 3 {
		t.Errorf("%d requests, result %+v", len(w.asked), res)
	}
	if got := w.asked[1].Entries[0].Text; got != bad.Trouble {
		t.Errorf("the model heard %q", got)
	}
	// What the model said last and was told is in the transcript all the same.
	if got := w.closed[0].Entries; len(got) != 1 {
		t.Errorf("entries at the end %+v", got)
	}
}

func TestACallOfAnUncertainVerdictIsNotRun(t *testing.T) {
	t.Parallel()
	asks := call("pay", "a", agent.ClassOnce)
	asks.Verdict.Decision = agent.DecisionAsk
	none := call("pay", "b", agent.ClassOnce)
	none.Verdict = agent.Verdict{}
	w := &world{answers: []agent.ModelResult{calls(asks, none)}}
	finish(t, newTurn(t, w), turnInput())
	if len(w.sent) != 0 {
		t.Errorf("sent without authority: %+v", w.sent)
	}
}

func TestUsedUpLimitsWaitForAPerson(t *testing.T) {
	t.Parallel()
	step := calls(call("look", "a", agent.ClassRead))
	for name, test := range map[string]struct {
		extend *agent.Extend
		want   agent.Status
		steps  int
	}{
		"extended":        {&agent.Extend{Steps: 5}, agent.StatusDone, 3},
		"not at all":      {nil, agent.StatusBudget, 1},
		"not by a minus":  {&agent.Extend{Steps: -5}, agent.StatusBudget, 1},
		"but not enough ": {&agent.Extend{Steps: 1}, agent.StatusBudget, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{
				limits:  agent.Limits{Steps: 1, Wait: agent.Duration(24 * time.Hour)},
				answers: []agent.ModelResult{step, step},
			}
			env := newTurn(t, w)
			env.RegisterDelayedCallback(func() {
				v, err := env.QueryWorkflow(agent.QueryTurn)
				var view agent.TurnView
				if err != nil || v.Get(&view) != nil || view.Status != agent.StatusWaiting || !strings.Contains(view.Waiting, "1 of 1 steps") {
					t.Errorf("view %+v, error %v", view, err)
				}
				if test.extend != nil {
					env.SignalWorkflow(agent.SignalExtend, test.extend)
				}
			}, time.Hour)
			res := finish(t, env, turnInput())
			if res.Status != test.want || res.Steps != test.steps {
				t.Errorf("result %+v", res)
			}
			if test.want == agent.StatusBudget && res.Reason.Type != agent.ErrBudget {
				t.Errorf("reason %+v", res.Reason)
			}
		})
	}
}

func TestCancelEndsATurnThatWaits(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(*testsuite.TestWorkflowEnvironment){
		"by signal": func(e *testsuite.TestWorkflowEnvironment) {
			e.SignalWorkflow(agent.SignalCancel, agent.Cancel{Reason: "wrong order", From: "ann"})
		},
		"by Temporal": func(e *testsuite.TestWorkflowEnvironment) { e.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{limits: agent.Limits{Steps: 1, Wait: agent.Duration(24 * time.Hour)}, answers: []agent.ModelResult{calls(call("look", "a", agent.ClassRead))}}
			env := newTurn(t, w)
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(agent.SignalCancel, agent.Cancel{Turn: 99}) }, time.Minute)
			env.RegisterDelayedCallback(func() { cancel(env) }, time.Hour)
			res := finish(t, env, turnInput())
			if res.Status != agent.StatusCancelled || res.Closing == "" {
				t.Errorf("result %+v", res)
			}
			if name == "by signal" && res.Reason.Message != "cancelled by ann: wrong order" {
				t.Errorf("reason %+v", res.Reason)
			}
		})
	}
}

func TestSteeringReachesTheNextStepOrIsHandedBack(t *testing.T) {
	t.Parallel()
	w := &world{answers: []agent.ModelResult{calls(call("look", "a", agent.ClassRead))}}
	env := newTurn(t, w)
	w.onAsk = func(n int) {
		// Both arrive while the model is asked: the first is taken up by the next step, the
		// second comes too late for any.
		m := agent.Message{ID: fmt.Sprintf("now-%d", n), Text: fmt.Sprintf("steer %d", n)}
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(agent.SignalSteer, agent.Steering{Message: m}) }, 0)
	}
	res := finish(t, env, turnInput())
	entries := w.asked[1].Entries
	if last := entries[len(entries)-1]; last.Role != agent.RoleUser || last.Text != "steer 1" {
		t.Errorf("entries %+v", entries)
	}
	for _, m := range res.Undelivered {
		if m.ID != "now-2" {
			t.Errorf("handed back %+v", m)
		}
	}
}

// A turn that is terminated in the middle of a step hands its messages back through its view.
func TestSteeringIsInTheViewAtOnceAndWhatIsNoMessageIsNot(t *testing.T) {
	t.Parallel()
	w := &world{answers: []agent.ModelResult{calls(call("look", "a", agent.ClassRead))}}
	env := newTurn(t, w)
	var view agent.TurnView
	w.tools = map[string]func(agent.ToolInput) (agent.ToolResult, error){"look": func(agent.ToolInput) (agent.ToolResult, error) {
		env.RegisterDelayedCallback(func() {
			for _, m := range []agent.Message{{}, {ID: "now-1", Text: "stop"}} {
				env.SignalWorkflow(agent.SignalSteer, agent.Steering{Message: m})
			}
		}, 0)
		env.RegisterDelayedCallback(func() {
			v, err := env.QueryWorkflow(agent.QueryTurn)
			if err == nil {
				err = v.Get(&view)
			}
			if err != nil {
				t.Error(err)
			}
		}, time.Millisecond)
		return agent.ToolResult{}, temporal.NewApplicationErrorWithOptions("busy", agent.ErrTool, temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
	}}
	env.RegisterDelayedCallback(env.CancelWorkflow, 500*time.Millisecond)
	res := finish(t, env, turnInput())
	for where, got := range map[string][]agent.Message{"the view": view.Steering, "the result": res.Undelivered} {
		if len(got) != 1 || got[0].ID != "now-1" {
			t.Errorf("%s has %+v", where, got)
		}
	}
}

func TestATurnContinuesAsNewBetweenStepsAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := &world{
		limits:  agent.Limits{ContinueAfter: 1},
		answers: []agent.ModelResult{calls(call("pay", "a", agent.ClassOnce)), calls(call("pay", "b", agent.ClassOnce))},
		tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){
			"pay": func(in agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Text: "?"}, nil
			},
		},
	}
	in := turnInput()
	for run := 1; ; run++ {
		env := newTurn(t, w)
		env.ExecuteWorkflow(agent.WorkflowTurn, in)
		err := env.GetWorkflowError()
		var renewed *workflow.ContinueAsNewError
		if !errors.As(err, &renewed) {
			if err != nil {
				t.Fatal(err)
			}
			var res agent.TurnResult
			if err := env.GetWorkflowResult(&res); err != nil {
				t.Fatal(err)
			}
			if run != 3 || res.Steps != 3 || len(res.Effects) != 2 {
				t.Errorf("run %d, result %+v", run, res)
			}
			break
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(renewed.Input, &in); err != nil {
			t.Fatal(err)
		}
		if in.Message.Text != "" || in.Checkpoint == nil {
			t.Fatalf("carried %+v", in)
		}
	}
	if got := w.asked[2].Head; got.Seq != 2 {
		t.Errorf("the third step asked with head %+v", got)
	}
}

func TestAnUnknownAgentFailsTheTurnAndKeepsTheMessage(t *testing.T) {
	t.Parallel()
	w := &world{}
	in := turnInput()
	in.Agent = "nobody"
	res := finish(t, newTurn(t, w), in)
	if res.Status != agent.StatusFailed || res.Reason.Type != agent.ErrUnknownAgent || len(w.closed[0].Entries) != 1 {
		t.Errorf("result %+v", res)
	}
}

func TestAnswersThatLeadNowhereAreBounded(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]agent.ModelResult{
		"empty":   {Finish: agent.FinishStop},
		"cut off": {Finish: agent.FinishLength, Text: "once upon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{limits: agent.Limits{Faults: 2}, answers: []agent.ModelResult{answer, answer, answer, answer}}
			res := finish(t, newTurn(t, w), turnInput())
			if res.Status != agent.StatusFailed || res.Reason.Type != agent.ErrFaults || len(w.asked) != 2 {
				t.Errorf("%d requests, result %+v", len(w.asked), res)
			}
		})
	}
}

func TestHundredsOfReadsInOneStepAreAllAnsweredInOrder(t *testing.T) {
	t.Parallel()
	var many []agent.Call
	for i := range 200 {
		many = append(many, call("look", fmt.Sprint(i), agent.ClassRead))
	}
	w := &world{answers: []agent.ModelResult{calls(many...)}}
	res := finish(t, newTurn(t, w), turnInput())
	if res.Status != agent.StatusDone || len(w.sent) != 200 {
		t.Fatalf("%d sent, result %+v", len(w.sent), res)
	}
	for i, e := range w.asked[1].Entries {
		if e.Call != many[i].ID {
			t.Fatalf("answer %d is for %s", i, e.Call)
		}
	}
}

func TestSettledEffectsThatTheLedgerFoldsAreCountedAtTheEnd(t *testing.T) {
	t.Parallel()
	var many []agent.Call
	for i := range effect.MaxSettled + 6 {
		many = append(many, call("pay", fmt.Sprint(i), agent.ClassIdempotent))
	}
	w := &world{answers: []agent.ModelResult{calls(many...)}}
	finish(t, newTurn(t, w), turnInput())
	end := w.closed[0]
	if len(end.Ledger) != effect.MaxSettled || len(end.Folded) != 1 || end.Folded[0] != (agent.Count{State: agent.StateCommitted, N: 6}) {
		t.Errorf("%d whole, folded %+v", len(end.Ledger), end.Folded)
	}
}

func TestAnUncertainEffectBlocksItsIntentInTheSameTurnAndGoesToTheSession(t *testing.T) {
	t.Parallel()
	again := call("pay", "same", agent.ClassOnce)
	w := &world{
		answers: []agent.ModelResult{calls(call("pay", "same", agent.ClassOnce)), calls(again)},
		tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){
			"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Text: "?"}, nil
			},
		},
	}
	res := finish(t, newTurn(t, w), turnInput())
	if len(w.sent) != 1 || !strings.Contains(w.asked[2].Entries[0].Text, "not run") {
		t.Errorf("sent %d times; the model heard %+v", len(w.sent), w.asked[2].Entries)
	}
	if len(res.Effects) != 1 || res.Effects[0].Intent != "same" {
		t.Errorf("effects %+v", res.Effects)
	}
}
