package activities

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

func TestTheActivitiesRunUnderTemporal(t *testing.T) {
	t.Parallel()
	f := newFake(t, spec(agent.ClassOnce), nil)
	w := newWorld(t, "mem://", f)
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Model)
	env.RegisterActivity(w.Tool)
	env.RegisterActivity(w.Open)
	val, err := env.ExecuteLocalActivity(w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: "clerk", Message: agent.Message{ID: "1", Text: "pay"}})
	var opened agent.OpenResult
	if err != nil || val.Get(&opened) != nil || opened.Attempt.Std() != DefaultAttempt || opened.Store != w.Store.ID() || opened.Entry.Text != "pay" {
		t.Fatalf("open: %+v, %v", opened, err)
	}
	in := w.hears("pay")
	in.Definition = opened.Definition.Short()
	val, err = env.ExecuteActivity(w.Model, in)
	var answer agent.ModelResult
	if err != nil || val.Get(&answer) != nil || len(answer.Calls) != 1 {
		t.Fatalf("model: %+v, %v", answer, err)
	}
	c := answer.Calls[0]
	val, err = env.ExecuteActivity(w.Tool, agent.ToolInput{
		Scope: w.scope, Place: agent.Place{Turn: 1, Step: 1, Call: 1}, Definition: opened.Definition.Short(),
		Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action, Serial: 3,
	})
	var done agent.ToolResult
	if err != nil || val.Get(&done) != nil {
		t.Fatal(err)
	}
	wantState(t, done, agent.StateCommitted)
}

func TestAPulseBeatsUntilItIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		beats := 0
		p := &pulse{ctx: t.Context(), beat: func(Progress) { beats++ }, done: make(chan struct{})}
		p.wait.Go(func() { p.run(time.Second) })
		time.Sleep(3500 * time.Millisecond)
		p.stop()
		n := beats
		time.Sleep(10 * time.Second)
		if n != 3 || beats != n {
			t.Errorf("%d beats in 3.5 s, %d after the end", n, beats-n)
		}
	})
}
