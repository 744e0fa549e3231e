package activities

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/transcript"
)

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

var _ log.Logger = silent{}

// A stand is a real server with a worker whose turns do what the test says.
type stand struct {
	client client.Client
	queue  string
}

// script is what a turn of the test does: it is found by the turn's agent.
type script func(ctx workflow.Context, in agent.TurnInput) (agent.TurnResult, error)

func newStand(t *testing.T, scripts map[string]script, model agent.ModelResult, result agent.ToolResult) *stand {
	t.Helper()
	c := realClient(t)
	s := &stand{client: c, queue: "turns"}
	w := worker.New(c, s.queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, in agent.TurnInput) (agent.TurnResult, error) {
		return scripts[in.Agent](ctx, in)
	}, workflow.RegisterOptions{Name: agent.WorkflowTurn})
	w.RegisterActivityWithOptions(func(agent.ModelInput) (agent.ModelResult, error) { return model, nil }, activity.RegisterOptions{Name: agent.ActivityModel})
	w.RegisterActivityWithOptions(func(agent.ToolInput) (agent.ToolResult, error) { return result, nil }, activity.RegisterOptions{Name: agent.ActivityTool})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return s
}

func (s *stand) start(t *testing.T, w *world, turn int, name string) client.WorkflowRun {
	t.Helper()
	run, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: agent.TurnID(w.scope.Session, turn), TaskQueue: s.queue,
	}, agent.WorkflowTurn, agent.TurnInput{Scope: w.scope, Turn: turn, Agent: name, Store: w.Store.ID()})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (s *stand) recover(t *testing.T, w *world, turn int) agent.TurnResult {
	t.Helper()
	w.Client = s.client
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Recover)
	env.SetTestTimeout(time.Minute)
	val, err := env.ExecuteActivity(w.Recover, agent.RecoverInput{Scope: w.scope, Turn: turn, Store: w.Store.ID()})
	var res agent.TurnResult
	if err == nil {
		err = val.Get(&res)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func block(ctx workflow.Context) error { return workflow.Await(ctx, func() bool { return false }) }

// The turns that leave work behind: the model has asked for three payments. The first was made, the second
// may have been, the third was not.
type leftover struct {
	head   agent.Head
	ids    []string
	inputs []agent.ToolInput
}

func leave(t *testing.T, w *world, turn int) leftover {
	t.Helper()
	l := leftover{ids: []string{"a", "b", "c"}}
	said := transcript.Entry{Role: agent.RoleAssistant}
	for i, id := range l.ids {
		args := fmt.Sprintf(`{"n":"%d.%d"}`, turn, i) // each another payment
		said.Calls = append(said.Calls, transcript.Call{ID: id, Name: "pay", Args: args})
		in := w.asked("pay", args)
		in.Place = agent.Place{Turn: turn, Step: 1, Call: i + 1}
		tl, _ := w.snap.Tools.Lookup("pay")
		in.Action = action(tl.Spec(), args, in.Place).Digest()
		l.inputs = append(l.inputs, in)
	}
	var err error
	l.head, err = w.Log.Append(t.Context(), w.scope, agent.Head{}, []transcript.Entry{{Role: agent.RoleUser, Text: "pay thrice"}, said})
	if err != nil {
		t.Fatal(err)
	}
	w.mustAttempt(1, l.inputs[0])
	w.dispatch(l.inputs[1], now())
	return l
}

func (l leftover) effect(i int, s agent.State) agent.Effect {
	in := l.inputs[i]
	return agent.Effect{Key: keyOf(in), Tool: "pay", Place: in.Place, Class: in.Class, State: s, Action: in.Action}
}

// check holds a recovered end against what the turn left behind.
func (l leftover) check(t *testing.T, w *world, res agent.TurnResult, turn int) {
	t.Helper()
	if res.Status != agent.StatusFailed || res.Reason == nil || res.Reason.Type != agent.ErrTerminated {
		t.Errorf("ended as %q: %+v", res.Status, res.Reason)
	}
	if len(res.Effects) != 1 || res.Effects[0].Key != keyOf(l.inputs[1]) || res.Effects[0].State != agent.StateUncertain {
		t.Errorf("unresolved %+v, want the second payment", res.Effects)
	}
	conv, err := w.Log.Read(t.Context(), w.scope, res.Head)
	if err != nil || len(conv.Entries) < 5 {
		t.Fatalf("transcript %+v, %v", conv, err)
	}
	told := map[string]string{}
	for _, e := range conv.Entries[2:] {
		told[e.Call] += e.Text
	}
	if told["a"] != "done" || !strings.Contains(told["b"], "Do not repeat it") || !strings.Contains(told["c"], "not run") {
		t.Errorf("the model will hear %q", told)
	}
	if d, ok := w.dispatched(keyOf(l.inputs[2])); !ok || !d.Revoked {
		t.Errorf("the third payment can still be sent: %+v", d)
	}
	b, err := w.space().Closing(t.Context(), store.ClosingName(turn, 0))
	var c Closing
	if err != nil || json.Unmarshal(b, &c) != nil || agent.DigestOf(b) != res.Closing || c.Result.Head != res.Head || len(c.Ledger) != 3 {
		t.Errorf("closing record %s, %v", b, err)
	}
}

func closing(t *testing.T, w *world, turn int) (c Closing) {
	t.Helper()
	b, err := w.space().Closing(t.Context(), store.ClosingName(turn, 0))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRecoverLearnsTheEndOfEveryKindOfTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	asked, mute := leave(t, w, 4), leave(t, w, 5)
	view := agent.TurnView{
		Session: w.scope.Session, Turn: 4, Agent: "hangs", Step: 1, Head: asked.head, Usage: agent.Usage{Output: 7},
		Ledger: []agent.Effect{asked.effect(0, agent.StateCommitted), asked.effect(1, agent.StateAuthorized), asked.effect(2, agent.StateAwaitingApproval)},
		Approvals: []agent.Approval{{
			ApprovalRequest: agent.ApprovalRequest{ID: agent.ApprovalID(keyOf(asked.inputs[2]), 1), Key: keyOf(asked.inputs[2])}, Outcome: agent.OutcomePending,
		}},
		Steering: []agent.Message{{ID: "m2", Text: "stop"}}, Store: w.Store.ID(), Serial: 3,
		Definition: agent.DigestOf(nil), Policy: "p", Build: "b", Change: 3,
	}
	scripts := map[string]script{
		"done": func(ctx workflow.Context, in agent.TurnInput) (agent.TurnResult, error) {
			err := workflow.Sleep(ctx, 300*time.Millisecond) // recovery has to wait for it
			return agent.TurnResult{Status: agent.StatusDone, Steps: 1}, err
		},
		"fails": func(workflow.Context, agent.TurnInput) (agent.TurnResult, error) {
			res := agent.TurnResult{Status: agent.StatusFailed, Steps: 2, Reason: &agent.Reason{Type: agent.ErrQuota}}
			return res, temporal.NewApplicationErrorWithOptions("no", agent.ErrQuota, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{res}})
		},
		"cancelled": func(workflow.Context, agent.TurnInput) (agent.TurnResult, error) {
			res := agent.TurnResult{Status: agent.StatusCancelled, Steps: 3}
			return res, temporal.NewCanceledError(res)
		},
		"hangs": func(ctx workflow.Context, in agent.TurnInput) (agent.TurnResult, error) {
			if err := workflow.SetQueryHandler(ctx, agent.QueryTurn, func() (agent.TurnView, error) { return view, nil }); err != nil {
				return agent.TurnResult{}, err
			}
			return agent.TurnResult{}, block(ctx)
		},
		// Nobody answers for this one, so that its history is all there is.
		"mute": func(ctx workflow.Context, in agent.TurnInput) (agent.TurnResult, error) {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
			ask := agent.ModelInput{Scope: in.Scope, Place: agent.Place{Turn: in.Turn, Step: 1}, Definition: agent.DigestOf(nil).Short()}
			if err := workflow.ExecuteActivity(ctx, agent.ActivityModel, ask).Get(ctx, nil); err != nil {
				return agent.TurnResult{}, err
			}
			for _, in := range mute.inputs[:2] {
				if err := workflow.ExecuteActivity(ctx, agent.ActivityTool, in).Get(ctx, nil); err != nil {
					return agent.TurnResult{}, err
				}
			}
			// The third is asked for and nobody takes it.
			ctx = workflow.WithTaskQueue(ctx, "nobody")
			return agent.TurnResult{}, workflow.ExecuteActivity(ctx, agent.ActivityTool, mute.inputs[2]).Get(ctx, nil)
		},
	}
	uncertain := agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Note: "nobody knows"}
	s := newStand(t, scripts, agent.ModelResult{Head: mute.head, Usage: agent.Usage{Output: 5}}, uncertain)

	for turn, name := range map[int]string{1: "done", 2: "fails", 3: "cancelled"} {
		s.start(t, w, turn, name)
		res := s.recover(t, w, turn)
		if res.Steps != turn || !res.Status.Final() {
			t.Errorf("%s: recovered %+v", name, res)
		}
	}

	terminate := func(run client.WorkflowRun, ready func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ready(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the turn did not get to where it is terminated")
			}
		}
		if err := s.client.TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "test"); err != nil {
			t.Fatal(err)
		}
	}
	run := s.start(t, w, 4, "hangs")
	terminate(run, func() bool {
		_, err := s.client.QueryWorkflow(t.Context(), run.GetID(), "", agent.QueryTurn)
		return err == nil
	})
	res := s.recover(t, w, 4)
	asked.check(t, w, res, 4)
	if by := res.By; by == nil || *by != (agent.Identity{Definition: agent.DigestOf(nil), Policy: "p", Build: "b"}) {
		t.Errorf("the next turn could take another definition than %+v", by)
	}
	if res.Usage.Output != 7 || len(res.Undelivered) != 1 || !strings.Contains(res.Reason.Message, "terminated") {
		t.Errorf("recovered %+v", res)
	}
	c := closing(t, w, 4)
	if len(c.Approvals) != 1 || c.Approvals[0].Outcome != agent.OutcomeCancelled || c.Approvals[0].EndedAt.IsZero() {
		t.Errorf("approvals in the closing record: %+v", c.Approvals)
	}
	for _, e := range c.Ledger {
		if e.Key == keyOf(asked.inputs[2]) && e.State != agent.StateCancelled {
			t.Errorf("what waited for an approval is %s", e.State)
		}
	}
	if again := s.recover(t, w, 4); again.Closing != res.Closing || again.Head != res.Head || again.Status != res.Status {
		t.Errorf("a second recovery says %+v, the first %+v", again, res)
	}

	run = s.start(t, w, 5, "mute")
	terminate(run, func() bool {
		w, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), "")
		if err != nil {
			return false
		}
		d := w.RawResponse
		return len(d.GetPendingActivities()) == 1 && d.GetPendingActivities()[0].GetActivityType().GetName() == agent.ActivityTool &&
			d.GetWorkflowExecutionInfo().GetHistoryLength() > 20
	})
	res = s.recover(t, w, 5)
	mute.check(t, w, res, 5)
	if res.Usage.Output != 5 || !strings.Contains(res.Reason.Message, "from its history") {
		t.Errorf("recovered %+v", res)
	}

	if res = s.recover(t, w, 6); res.Status != agent.StatusFailed || !strings.Contains(res.Reason.Message, "never started") {
		t.Errorf("a turn that never was: %+v", res)
	}
}

// Nothing is left of the turn but its dispatch records, and a closing record that cannot be read.
func TestRecoverLosesNoEffectThatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "file://"+dir, newFake(t, spec(agent.ClassOnce), nil))
	left := leave(t, w, 7)
	file := filepath.Join(dir, w.scope.String(), string(store.KindClosings), "turn-7")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("not a record"), 0o600); err != nil {
		t.Fatal(err)
	}
	res := newStand(t, nil, agent.ModelResult{}, agent.ToolResult{}).recover(t, w, 7)
	if len(res.Effects) != 1 || res.Effects[0].Key != keyOf(left.inputs[1]) ||
		res.Effects[0].State != agent.StateUncertain || res.Effects[0].Place != left.inputs[1].Place {
		t.Errorf("effects %+v", res.Effects)
	}
	if res.Status != agent.StatusFailed || !strings.Contains(res.Reason.Message, "closing record") {
		t.Errorf("recovered %+v", res)
	}
}

func TestCloseIsTheSameEachTimeAndTheFirstRecordStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	in := agent.CloseInput{
		Scope: w.scope, Turn: 1, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone, Steps: 1},
		Entries: []agent.Entry{{Role: agent.RoleUser, Text: "bye"}},
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Close)
	var results []agent.CloseResult
	for range 2 {
		val, err := env.ExecuteLocalActivity(w.Close, in)
		var res agent.CloseResult
		if err != nil || val.Get(&res) != nil {
			t.Fatal(err)
		}
		results = append(results, res)
	}
	if results[0] != results[1] || results[0].Head.Seq != 1 || results[0].Store != w.Store.ID() {
		t.Errorf("closed as %+v, then as %+v", results[0], results[1])
	}
	in.Result.Steps = 2
	val, err := env.ExecuteLocalActivity(w.Close, in)
	var other agent.CloseResult
	if err != nil || val.Get(&other) != nil || other.Closing != results[0].Closing {
		t.Errorf("another end took the record's place: %+v, %v", other, err)
	}
	if _, err := w.space().Closing(t.Context(), store.ClosingName(2, 0)); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("turn 2 has a record: %v", err)
	}
}
