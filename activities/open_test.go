package activities

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
)

func TestOpenKeepsWhatTheTurnStartsWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Open)
	open := func(name, text string) (agent.OpenResult, error) {
		val, err := env.ExecuteLocalActivity(w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: name, Message: agent.Message{Text: text}, Serial: 3})
		var res agent.OpenResult
		if err == nil {
			err = val.Get(&res)
		}
		return res, err
	}
	_, err := open("nobody", "hi")
	if app := wantApp(t, err, agent.ErrUnknownAgent, true); !strings.Contains(app.Message(), "clerk") {
		t.Errorf("error %v does not name the agents there are", err)
	}
	long := strings.Repeat("x", agent.InlineText+1)
	res, err := open("clerk", long)
	if err != nil || res.Entry.Body == nil || res.Entry.Text != "" {
		t.Fatalf("entry %+v, %v", res.Entry, err)
	}
	if b, err := w.space().Body(t.Context(), *res.Entry.Body); err != nil || string(b) != long {
		t.Errorf("stored %d bytes, %v", len(b), err)
	}
	// The configuration changes; the turn goes on with its own definition.
	before := w.snap.Agents["clerk"]
	after := before
	after.Instructions = "Be vague."
	changed := &Snapshot{Agents: map[string]agent.Definition{"clerk": after}}
	got, err := w.definition(t.Context(), changed, w.scope, res.Definition.Short())
	if diff := cmp.Diff(before, got); err != nil || diff != "" {
		t.Errorf("definition differs (%v):\n%s", err, diff)
	}
}
