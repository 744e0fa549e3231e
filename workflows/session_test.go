package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

func newSession(t *testing.T, w *world) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := newTurn(t, w)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	return env
}

// sent collects what became of messages.
type sent struct {
	accepted []string
	rejected map[string]string // message id -> error type
	results  map[string]agent.SendResult
}

func send(env *testsuite.TestWorkflowEnvironment, s *sent, m agent.Message, after time.Duration) {
	if s.rejected == nil {
		s.rejected, s.results = map[string]string{}, map[string]agent.SendResult{}
	}
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(agent.UpdateSend, m.ID+after.String(), &testsuite.TestUpdateCallback{
			OnAccept: func() { s.accepted = append(s.accepted, m.ID) },
			OnReject: func(err error) {
				var app *temporal.ApplicationError
				if errors.As(err, &app) {
					s.rejected[m.ID] = app.Type()
				}
			},
			OnComplete: func(v any, err error) {
				if r, ok := v.(agent.SendResult); ok && err == nil {
					s.results[m.ID+after.String()] = r
				}
			},
		}, m)
	}, after)
}

func closeAfter(env *testsuite.TestWorkflowEnvironment, c agent.Close, after time.Duration) {
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(agent.SignalClose, c) }, after)
}

func msg(id string) agent.Message { return agent.Message{ID: id, Text: "text of " + id} }

func TestSessionRunsOneTurnAfterTheOther(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := newSession(t, w)
	var s sent
	for i := range 3 {
		send(env, &s, msg(fmt.Sprint("m", i)), 0)
	}
	closeAfter(env, agent.Close{}, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	if res.Turns != 3 || res.Head.Seq != 3 || res.Closing == "" || len(res.Dropped) != 0 {
		t.Errorf("result %+v", res)
	}
	for i, in := range w.asked {
		if in.Turn != i+1 || in.Head.Seq != int64(i) || !in.Scope.Valid() {
			t.Errorf("request %d: %+v", i, in)
		}
	}
}

func TestAMessageIDIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := newSession(t, w)
	var s sent
	send(env, &s, msg("m"), 0)
	send(env, &s, msg("m"), time.Minute)
	send(env, &s, agent.Message{ID: "m", Text: "another text"}, 2*time.Minute)
	closeAfter(env, agent.Close{}, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	if len(w.asked) != 1 {
		t.Errorf("%d turns ran", len(w.asked))
	}
	if r := s.results["m1m0s"]; !r.Duplicate || r.Turn != 1 {
		t.Errorf("the repeat got %+v", r)
	}
	if s.rejected["m"] != agent.ErrMessageReused {
		t.Errorf("rejected %v", s.rejected)
	}
}

func TestBadMessagesAreRejectedWithoutATrace(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := newSession(t, w)
	var s sent
	bad := []agent.Message{
		{ID: "", Text: "x"},
		{ID: "has space", Text: "x"},
		{ID: strings.Repeat("x", agent.MaxID+1), Text: "x"},
		{ID: "empty", Text: " \n"},
		{ID: "long", Text: strings.Repeat("x", agent.MaxMessage+1)},
		{ID: "from", Text: "x", From: strings.Repeat("x", agent.MaxID+1)},
	}
	for _, m := range bad {
		send(env, &s, m, 0)
	}
	closeAfter(env, agent.Close{}, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	for _, m := range bad {
		if s.rejected[m.ID] != agent.ErrMessage {
			t.Errorf("%q: rejected as %q", m.ID, s.rejected[m.ID])
		}
	}
	if len(w.asked) != 0 || len(s.accepted) != 0 {
		t.Errorf("accepted %v", s.accepted)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	w := &world{limits: agent.Limits{Steps: 1, Wait: agent.Duration(time.Hour)}, answers: []agent.ModelResult{calls(call("look", "a", agent.ClassRead))}}
	env := newSession(t, w)
	var s sent
	for i := range agent.MaxQueue + 2 { // one runs, MaxQueue wait
		send(env, &s, msg(fmt.Sprint("m", i)), time.Minute+time.Duration(i)*time.Millisecond)
	}
	closeAfter(env, agent.Close{}, 2*time.Minute)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	if s.rejected[fmt.Sprint("m", agent.MaxQueue+1)] != agent.ErrQueueFull || len(s.accepted) != agent.MaxQueue+1 {
		t.Errorf("accepted %d, rejected %v", len(s.accepted), s.rejected)
	}
	// A close lets the running turn end, starts no other, and names what it dropped.
	if res.Turns != 1 || len(res.Dropped) != agent.MaxQueue {
		t.Errorf("%d turns, %d dropped", res.Turns, len(res.Dropped))
	}
}

func TestASessionDoesNotCloseOverUncertainEffectsSilently(t *testing.T) {
	t.Parallel()
	w := &world{
		answers: []agent.ModelResult{calls(call("pay", "a", agent.ClassOnce))},
		tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){
			"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Text: "?"}, nil
			},
		},
	}
	env := newSession(t, w)
	var s sent
	send(env, &s, msg("m"), 0)
	closeAfter(env, agent.Close{}, time.Hour)
	env.RegisterDelayedCallback(func() {
		v, err := env.QueryWorkflow(agent.QuerySession)
		var view agent.SessionView
		if err != nil || v.Get(&view) != nil || !strings.Contains(view.Refused, "uncertain") || len(view.Unresolved) != 1 {
			t.Errorf("view %+v, error %v", view, err)
		}
	}, 2*time.Hour)
	closeAfter(env, agent.Close{AcceptUncertain: true}, 3*time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	if len(res.Unresolved) != 1 || res.Unresolved[0].Tool != "pay" {
		t.Errorf("result %+v", res)
	}
}

func TestASessionContinuesAsNewAndStillKnowsItsMessages(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := newSession(t, w)
	var s sent
	for i := range 10 {
		send(env, &s, msg(fmt.Sprint("m", i)), 0)
	}
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var renewed *workflow.ContinueAsNewError
	if !errors.As(env.GetWorkflowError(), &renewed) {
		t.Fatalf("error %v", env.GetWorkflowError())
	}
	var in agent.SessionInput
	if err := converter.GetDefaultDataConverter().FromPayloads(renewed.Input, &in); err != nil {
		t.Fatal(err)
	}
	if len(w.asked) != 8 {
		t.Errorf("%d turns in the first run", len(w.asked))
	}
	env = newSession(t, w)
	send(env, &s, msg("m3"), time.Minute)
	closeAfter(env, agent.Close{}, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, in)
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	if res.Turns != 10 || len(w.asked) != 10 {
		t.Errorf("result %+v, %d requests", res, len(w.asked))
	}
	if r := s.results["m31m0s"]; !r.Duplicate || r.Turn != 4 {
		t.Errorf("the repeat got %+v", r)
	}
}

func TestATurnThatDidNotSayItsEndIsRecovered(t *testing.T) {
	t.Parallel()
	w := &world{}
	env := newSession(t, w)
	uncertain := agent.Effect{Key: "k", State: agent.StateUncertain, Tool: "pay"}
	env.RegisterActivityWithOptions(func(_ context.Context, in agent.RecoverInput) (agent.TurnResult, error) {
		if in.Turn != 1 {
			t.Errorf("asked to recover %+v", in)
		}
		return agent.TurnResult{
			Status: agent.StatusFailed, Head: agent.Head{Seq: 7, Hash: agent.DigestOf(nil)}, Effects: []agent.Effect{uncertain},
			Reason: &agent.Reason{Type: agent.ErrTerminated, Message: "terminated"},
		}, nil
	}, activity.RegisterOptions{Name: agent.ActivityRecover})
	env.OnWorkflow(agent.WorkflowTurn, mock.Anything, mock.Anything).Return(agent.TurnResult{}, errors.New("terminated")).Once()
	var s sent
	send(env, &s, msg("m"), 0)
	closeAfter(env, agent.Close{AcceptUncertain: true}, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]agent.Effect{uncertain}, res.Unresolved); diff != "" || res.Head.Seq != 7 {
		t.Errorf("head %+v, effects (-want +got):\n%s", res.Head, diff)
	}
}

func TestCancellingASessionCancelsItsTurnAndCloses(t *testing.T) {
	t.Parallel()
	w := &world{limits: agent.Limits{Steps: 1, Wait: agent.Duration(24 * time.Hour)}, answers: []agent.ModelResult{calls(call("look", "a", agent.ClassRead))}}
	env := newSession(t, w)
	var s sent
	send(env, &s, msg("m1"), 0)
	send(env, &s, msg("m2"), 0)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var cancelled *temporal.CanceledError
	if !errors.As(env.GetWorkflowError(), &cancelled) {
		t.Fatalf("error %v", env.GetWorkflowError())
	}
	var res agent.SessionResult
	if err := cancelled.Details(&res); err != nil {
		t.Fatal(err)
	}
	if res.Turns != 1 || len(res.Dropped) != 1 || len(w.closed) != 1 || w.closed[0].Result.Status != agent.StatusCancelled {
		t.Errorf("result %+v, closed %+v", res, w.closed)
	}
}

func TestASessionOfAnUnknownAgentEndsAfterItsFirstTurn(t *testing.T) {
	t.Parallel()
	env := newSession(t, &world{})
	var s sent
	send(env, &s, msg("m"), 0)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "nobody"})
	var app *temporal.ApplicationError
	if !errors.As(env.GetWorkflowError(), &app) || app.Type() != agent.ErrUnknownAgent {
		t.Errorf("error %v", env.GetWorkflowError())
	}
}
