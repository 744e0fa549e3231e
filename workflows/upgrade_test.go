package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// office opens turns as a worker does whose agent changed: it offers the new definition until it is taken.
type office struct {
	court
	opened []agent.OpenInput
	refuse bool // the grant does not count any more
}

var old, fresh = agent.DigestOf([]byte("old")), agent.DigestOf([]byte("new"))

func offer() agent.Call {
	c := ask(agent.ToolUpgrade, "upgrade", agent.ClassRead, 1)
	c.Args = `{"agent":"helper"}`
	return c
}

func (o *office) open(_ context.Context, in agent.OpenInput) (agent.OpenResult, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened = append(o.opened, in)
	res := agent.OpenResult{
		Definition: old, Model: "main", Limits: agent.Limits{Steps: 5}, Attempt: agent.Duration(time.Minute), Heartbeat: agent.Duration(time.Minute),
		ToolHeartbeat: agent.Duration(time.Minute), Store: "store", Policy: "p", Build: "b", Entry: agent.Entry{Role: agent.RoleUser, Text: in.Message.Text},
	}
	switch {
	case in.Take != "" && !o.refuse:
		res.Definition = in.Take
	case in.Take == "" && in.Definition == old:
		res.Offer = &agent.Offer{To: fresh, Call: offer()}
	}
	return res, nil
}

func newOffice(t *testing.T, o *office) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	o.opens = o.open
	return newCourt(t, &o.court)
}

func upgradeID() string {
	return agent.ApprovalID(agent.ActionKey(turnInput().Scope, agent.Place{Turn: 1, Call: 1}, offer().Action), 1)
}

func word(choice agent.Choice) agent.ApprovalDecision {
	return agent.ApprovalDecision{ID: upgradeID(), Digest: offer().Action, Choice: choice, Approver: "alice"}
}

func TestATurnTakesAnotherDefinitionOnlyWithAnApproval(t *testing.T) {
	t.Parallel()
	edited := word(agent.ChoiceApprove)
	edited.Args = `{"agent":"other"}`
	for name, test := range map[string]struct {
		decision *agent.ApprovalDecision
		refuse   bool
		want     agent.Digest
		opened   int
	}{
		"approved":                    {ptr(word(agent.ChoiceApprove)), false, fresh, 2},
		"declined":                    {ptr(word(agent.ChoiceDecline)), false, old, 1},
		"withdrawn":                   {ptr(word(agent.ChoiceCancel)), false, old, 1},
		"expired":                     {nil, false, old, 1},
		"edited, which nobody can":    {&edited, false, old, 1},
		"approved, and then no right": {ptr(word(agent.ChoiceApprove)), true, old, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &office{refuse: test.refuse}
			env := newOffice(t, o)
			if test.decision != nil {
				later(env, time.Minute, agent.SignalApproval, *test.decision)
			}
			in := turnInput()
			in.Definition = old
			res := finish(t, env, in)
			if res.Status != agent.StatusDone || res.By == nil || res.By.Definition != test.want {
				t.Errorf("result %+v", res)
			}
			if len(o.opened) != test.opened || o.asked[0].Definition != test.want.Short() {
				t.Errorf("opened %d times, asked with %s", len(o.opened), o.asked[0].Definition)
			}
			if test.opened == 2 && (len(o.opened[1].Senders) != 1 || o.opened[1].Grant == nil || o.opened[1].Grant.Action != offer().Action || o.opened[1].Take != fresh) {
				t.Errorf("opened anew with %+v", o.opened[1])
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestATurnThatIsCancelledWhileItWaitsForAnUpgradeAsksNoModel(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	later(env, time.Minute, agent.SignalCancel, agent.Cancel{})
	in := turnInput()
	in.Definition = old
	env.ExecuteWorkflow(agent.WorkflowTurn, in)
	if res := o.closed[0].Result; res.Status != agent.StatusCancelled || len(o.asked) != 0 {
		t.Errorf("result %+v, asked %d times", res, len(o.asked))
	}
}

// The wait goes on in the next run, for the same request, and costs no word in between.
func TestATurnWaitsForAnUpgradeAcrossRuns(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	atOnce(env, time.Minute, func() {
		env.SignalWorkflow(agent.SignalSteer, agent.Steering{Message: agent.Message{ID: "m", Text: "and hurry"}})
	})
	in := turnInput()
	in.Definition = old
	in = continued(t, env, in)
	if in.Message.Text != "" {
		t.Errorf("the message travels on: %q", in.Message.Text)
	}
	next := newOffice(t, o)
	later(next, time.Minute, agent.SignalApproval, word(agent.ChoiceApprove))
	if res := finish(t, next, in); res.Status != agent.StatusDone || res.By.Definition != fresh {
		t.Errorf("result %+v", res)
	}
	if len(o.opened) != 2 || o.opened[1].Message.ID != "" {
		t.Errorf("opened with %+v", o.opened)
	}
	if said := o.asked[0].Entries; len(said) != 2 || said[0].Text != turnInput().Message.Text {
		t.Errorf("the model heard %+v", said)
	}
}

func TestRunsOfBeforeNumber3NeitherAskNorSayWhatTheyWorkedWith(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	env.OnGetVersion("holdfast-Turn", workflow.Version(1), workflow.Version(3)).Return(workflow.Version(2))
	in := turnInput()
	in.Definition = old
	if res := finish(t, env, in); res.By != nil || o.opened[0].Definition != "" || len(o.opened) != 1 {
		t.Errorf("result %+v, opened %+v", res, o.opened)
	}
}

func TestASessionHandsTheDefinitionFromTurnToTurn(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	var schemas []int
	env.SetOnChildWorkflowStartedListener(func(_ *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
		in, schema := agent.TurnInput{}, 0
		if err := args.Get(&in); err != nil {
			t.Error(err)
		}
		if in.Checkpoint != nil {
			schema = in.Checkpoint.Schema
		}
		schemas = append(schemas, schema)
	})
	var s sent
	send(env, &s, msg("a"), 0)
	send(env, &s, msg("b"), time.Minute)
	closeAfter(env, agent.Close{}, 40*time.Hour) // past the expiry
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var got []agent.Digest
	for _, in := range o.opened {
		got = append(got, in.Definition)
	}
	if diff := cmp.Diff([]agent.Digest{"", old}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 3}, schemas); diff != "" {
		t.Errorf("an older build could take a turn and drop its definition: %s", diff)
	}
	v, err := env.QueryWorkflow(agent.QuerySession)
	var view agent.SessionView
	if err != nil || v.Get(&view) != nil || view.By != (agent.Identity{Definition: old, Policy: "p", Build: "b"}) || view.Last.By != nil {
		t.Errorf("view %+v, error %v", view, err)
	}
}

func TestAForkBeginsWhereTheOtherSessionStood(t *testing.T) {
	t.Parallel()
	from := agent.Scope{Session: "source", Life: "01234567"}
	origin := agent.Origin{From: from, Turn: 3, Head: agent.Head{Seq: 7, Hash: agent.DigestOf(nil)}, Root: from, By: "alice"}
	o := &office{}
	env := newOffice(t, o)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	var started agent.TurnInput
	env.SetOnChildWorkflowStartedListener(func(_ *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
		if err := args.Get(&started); err != nil {
			t.Error(err)
		}
	})
	forks := 0
	env.RegisterActivityWithOptions(func(_ context.Context, in agent.ForkInput) (agent.ForkResult, error) {
		forks++
		if in.Fork.From != from || in.Fork.Turn != 3 || in.Agent != "helper" || in.Session != "s" {
			t.Errorf("asked for %+v", in)
		}
		return agent.ForkResult{Origin: origin, Store: "store"}, nil
	}, activity.RegisterOptions{Name: agent.ActivityFork})
	var s sent
	send(env, &s, msg("a"), 0)
	closeAfter(env, agent.Close{}, time.Hour)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{
		Agent: "helper", Fork: &agent.Fork{From: from, Turn: 3, Approver: "alice"}, Checkpoint: sealed(t, map[string]any{}),
	})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	if started.Checkpoint == nil || started.Checkpoint.Schema != 3 {
		t.Errorf("an older build could take the turn: %+v", started)
	}
	if forks != 1 || o.asked[0].Head != origin.Head || *o.asked[0].Root != from || *o.closed[0].Origin != origin || *res.Origin != origin {
		t.Errorf("%d forks, asked %+v, closed %+v, result %+v", forks, o.asked[0], o.closed[0].Origin, res.Origin)
	}
}

// A fork that no worker can carry out does not keep its session open.
func TestASessionIsClosedBeforeItsForkIsDone(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	env.RegisterActivityWithOptions(func(ctx context.Context, _ agent.ForkInput) (agent.ForkResult, error) {
		return agent.ForkResult{}, temporal.NewApplicationError("another store", agent.ErrWrongStore)
	}, activity.RegisterOptions{Name: agent.ActivityFork})
	var s sent
	send(env, &s, msg("a"), 0)
	closeAfter(env, agent.Close{}, time.Minute)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{
		Agent: "helper", Fork: &agent.Fork{Turn: 3}, Checkpoint: sealed(t, map[string]any{}),
	})
	var res agent.SessionResult
	if err := env.GetWorkflowResult(&res); err != nil || len(res.Dropped) != 1 || len(o.opened) != 0 {
		t.Errorf("result %+v, error %v", res, err)
	}
}

func TestARefusedForkEndsItsSessionWithTheReason(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	env.RegisterActivityWithOptions(func(context.Context, agent.ForkInput) (agent.ForkResult, error) {
		return agent.ForkResult{}, temporal.NewNonRetryableApplicationError("mallory may not fork it", agent.ErrNotEntitled, nil)
	}, activity.RegisterOptions{Name: agent.ActivityFork})
	var s sent
	send(env, &s, msg("a"), 0)
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{
		Agent: "helper", Fork: &agent.Fork{Turn: 3}, Checkpoint: sealed(t, map[string]any{}),
	})
	var app *temporal.ApplicationError
	var res agent.SessionResult
	if err := env.GetWorkflowError(); !errors.As(err, &app) || app.Type() != agent.ErrNotEntitled || app.Message() != "mallory may not fork it" {
		t.Fatalf("error %v", err)
	}
	if err := app.Details(&res); err != nil || len(o.opened) != 0 || len(res.Dropped) != 1 {
		t.Errorf("result %+v, error %v, opened %d", res, err, len(o.opened))
	}
}

// What a run of number 2 hands on, a build of 0.2.0 takes, whose states have no member that came later. The activities
// are those of this build.
func TestARunOfNumber2HandsOnNothingThatItsBuildsDoNotKnow(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	env.OnGetVersion("holdfast-Turn", workflow.Version(1), workflow.Version(3)).Return(workflow.Version(2))
	o.answers = []agent.ModelResult{calls(ask("pay", "1", agent.ClassOnce, 1))}
	atOnce(env, time.Minute, func() {
		env.SignalWorkflow(agent.SignalSteer, agent.Steering{Message: agent.Message{ID: "m", Text: "and hurry"}})
	})
	in := continued(t, env, turnInput())
	var st struct{ Open map[string]any }
	if err := json.Unmarshal([]byte(in.Checkpoint.State), &st); err != nil || in.Checkpoint.Schema != 2 || st.Open["definition"] == nil {
		t.Fatalf("checkpoint %+v, %v", in.Checkpoint, err)
	}
	for _, name := range []string{"policy", "offer"} {
		if v, ok := st.Open[name]; ok {
			t.Errorf("the state has %s %v", name, v)
		}
	}
}

// A session of number 2 may have turns of number 3, when builds of both serve.
func TestASessionOfNumber2KeepsNothingThatItsBuildsDoNotKnow(t *testing.T) {
	t.Parallel()
	o := &office{}
	env := newOffice(t, o)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
	env.OnGetVersion("holdfast-Session", workflow.Version(1), workflow.Version(3)).Return(workflow.Version(2))
	for i := range 8 {
		var s sent
		send(env, &s, msg(fmt.Sprintf("m%d", i)), time.Duration(i)*time.Minute)
	}
	env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper"})
	var renewed *workflow.ContinueAsNewError
	var next agent.SessionInput
	if err := env.GetWorkflowError(); !errors.As(err, &renewed) {
		t.Fatalf("did not continue as new: %v", err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(renewed.Input, &next); err != nil {
		t.Fatal(err)
	}
	var st struct{ Last map[string]any }
	if err := json.Unmarshal([]byte(next.Checkpoint.State), &st); err != nil || next.Checkpoint.Schema != 2 || st.Last["status"] == nil {
		t.Fatalf("checkpoint %+v, %v", next.Checkpoint, err)
	}
	if by, ok := st.Last["by"]; ok {
		t.Errorf("the state has %v", by)
	}
}
