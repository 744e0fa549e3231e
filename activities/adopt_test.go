package activities

import (
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

func TestAVerdictIsDecidedAnewFromAnAdoptedAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
	in := w.hears("pay")
	if res := w.mustAsk(in); res.Calls[0].Trouble != "" {
		t.Fatalf("trouble %q", res.Calls[0].Trouble)
	}
	w.snap.Policy = &policy.Policy{}
	res := w.mustAsk(in)
	if c := res.Calls[0]; c.Verdict.Decision != agent.DecisionDeny || !strings.HasPrefix(c.Trouble, "not allowed") || c.Args != "" {
		t.Errorf("call %+v, want today's denial", c)
	}
}

// The turn is reset after the payment was sent, and the tool's declaration or the policy is another one by then.
func TestAnAdoptedCallThatWasSentIsNotDecidedToBeAnotherOne(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"tool": func(w *world) {
			other := spec(agent.ClassOnce)
			other.Description = "Pays, said better."
			w.snap.Tools, _ = tool.NewSet(newFake(t, other, nil))
		},
		"policy": func(w *world) { w.snap.Policy = &policy.Policy{} },
	} {
		for _, sent := range []bool{true, false} {
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
			w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
			in := w.hears("pay")
			first := w.mustAsk(in).Calls[0]
			key := agent.ActionKey(w.scope, agent.Place{Turn: in.Turn, Step: in.Step, Call: 1}, first.Action)
			if sent {
				w.dispatch(agent.ToolInput{Scope: w.scope, Place: agent.Place{Turn: in.Turn, Step: in.Step, Call: 1}, Class: first.Class, Action: first.Action}, now())
			}
			change(w)
			again := w.mustAsk(in).Calls[0]
			if sent && (again.Action != first.Action || again.Trouble != "") {
				t.Errorf("%s changed after it was sent: %+v", name, again)
			}
			if d, ok := w.dispatched(key); !sent && (again.Action == first.Action && again.Trouble == "" || !ok || !d.Revoked) {
				t.Errorf("%s changed before it was sent: %+v, claim %+v", name, again, d)
			}
		}
	}
}
