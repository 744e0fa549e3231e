package activities

import (
	"cmp"
	"fmt"
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

func TestAnAdoptedAnswerIsDecidedAnewWhateverItsRecordSays(t *testing.T) {
	t.Parallel()
	rule := func(d agent.Decision) policy.Config {
		return policy.Config{Rules: []policy.Rule{{Name: string(d) + "-today", Then: d}}}
	}
	all := []agent.Decision{agent.DecisionAllow, agent.DecisionAsk, agent.DecisionDeny}
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		for i, then := range all {
			for j, today := range all {
				w := newWorld(t, url, newFake(t, spec(agent.ClassOnce), nil))
				w.scope = agent.NewScope("s1", fmt.Sprint("run ", i, j))
				srv := w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{ "n":1 }`))}})
				w.governed(rule(then))
				in := w.hears("pay")
				first := w.mustAsk(in).Calls[0]
				w.governed(rule(today))
				c := w.mustAsk(in).Calls[0]
				if c.Verdict.Decision != today || c.Verdict.Rule != string(today)+"-today" || c.Action != first.Action {
					t.Errorf("%s, then %s: %+v", then, today, c)
				}
				denied := today == agent.DecisionDeny
				if (c.Trouble != "") != denied || (c.Args == `{"n":1}`) == denied || (c.Terms != nil) != (today == agent.DecisionAsk) {
					t.Errorf("%s, then %s: %+v", then, today, c)
				}
				if n := srv.Charges().Answers; n != 1 {
					t.Errorf("paid %d times", n)
				}
			}
		}
	}
}

// The turn is reset after the payment was sent, and policy wants to ask by then, or asked before.
func TestAnAdoptedCallThatWasSentWaitsForNobody(t *testing.T) {
	t.Parallel()
	for _, then := range []agent.Decision{agent.DecisionAllow, agent.DecisionAsk, agent.DecisionDeny} {
		w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
		w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{"n":1}`))}})
		w.governed(policy.Config{Rules: []policy.Rule{{Name: "then", Then: then}}})
		in := w.hears("pay")
		first := w.mustAsk(in).Calls[0]
		w.dispatch(agent.ToolInput{Scope: w.scope, Place: agent.Place{Turn: in.Turn, Step: in.Step, Call: 1}, Class: first.Class, Action: first.Action}, now())
		w.governed(asking())
		c := w.mustAsk(in).Calls[0]
		if c.Verdict.Decision != agent.DecisionAllow || c.Trouble != "" || c.Args != `{"n":1}` || c.Action != first.Action || c.Terms != nil {
			t.Errorf("%s before: %+v", then, c)
		}
		if want := map[agent.Decision]string{agent.DecisionAllow: "then"}[then]; c.Verdict.Rule != cmp.Or(want, ruleSent) {
			t.Errorf("%s before: rule %q", then, c.Verdict.Rule)
		}
	}
}

// Nothing was sent, so the key must stay good for the approval that comes.
func TestAskingAboutAnAdoptedCallDoesNotClaimItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{"n":1}`))}})
	in := w.hears("pay")
	first := w.mustAsk(in).Calls[0]
	w.governed(asking())
	if c := w.mustAsk(in).Calls[0]; c.Verdict.Decision != agent.DecisionAsk {
		t.Errorf("%+v", c)
	}
	if _, ok := w.dispatched(agent.ActionKey(w.scope, agent.Place{Turn: in.Turn, Step: in.Step, Call: 1}, first.Action)); ok {
		t.Error("its key was claimed")
	}
}
