package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// voidOnce answers the first time that the authority of a call is void, and then that it is done.
func voidOnce(c agent.Call) func(agent.ToolInput) (agent.ToolResult, error) {
	tries := 0
	return func(agent.ToolInput) (agent.ToolResult, error) {
		if tries++; tries == 1 {
			return agent.ToolResult{State: agent.StateVoid, Note: "policy changed", Verdict: &c.Verdict, Terms: c.Terms}, nil
		}
		return agent.ToolResult{State: agent.StateCommitted, Attempt: 1, Text: "done"}, nil
	}
}

// An attempt of what policy allowed may have been admitted, and be about to send, when another finds that policy
// asks now.
func TestWhatPolicyHadAllowedIsNotSentByAZombieAfterItIsDeclined(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	c := &court{world: world{
		answers: []agent.ModelResult{calls(pay)},
		tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": voidOnce(ask("pay", "a", agent.ClassOnce, 1))},
	}}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
		d.Choice = agent.ChoiceDecline
	}))
	finish(t, env, turnInput())
	// The world's reconcile says that nobody knows: it was asked, and what it says is not hidden.
	if e := c.closed[0].Ledger[0]; e.State != agent.StateDeclined || e.Conflict == "" {
		t.Errorf("effect %+v", e)
	}
	if got := c.asked[1].Entries[0].Text; got != "nobody knows" {
		t.Errorf("the model hears %q", got)
	}
}

// What an approver edits may have been sent by then, as the approval before allowed.
func TestAnEditOfWhatMayHaveBeenSentIsRefused(t *testing.T) {
	t.Parallel()
	for state, sent := range map[agent.State]int{agent.StateCommitted: 1, agent.StateUncertain: 1, agent.StateCancelled: 2} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			pay := ask("pay", "a", agent.ClassOnce, 1)
			c := &court{world: world{
				answers: []agent.ModelResult{calls(pay)},
				tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": voidOnce(pay)},
			}}
			c.became = &agent.ToolResult{State: state, Text: "what became of it", Attempt: 1}
			if state == agent.StateCancelled {
				c.became.Attempt = 0
			}
			env := newCourt(t, c)
			second := agent.ApprovalID(keyAt(1, 1, pay), 2)
			later(env, time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
			later(env, 2*time.Minute, agent.SignalApproval, with(edited(1, 1, pay, "alice", `{"a":1}`), func(d *agent.ApprovalDecision) { d.ID = second }))
			if sent == 1 {
				env.RegisterDelayedCallback(func() {
					v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
					if len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Why, "by an earlier approval") {
						t.Errorf("refused %+v", v.Refused)
					}
				}, 3*time.Minute)
				later(env, 4*time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
					d.ID, d.Choice = second, agent.ChoiceDecline
				}))
			}
			finish(t, env, turnInput())
			wellEnded(t, env, c)
			if len(c.sent) != sent {
				t.Fatalf("sent %+v", c.sent)
			}
			if sent == 1 && c.closed[0].Ledger[0].Conflict == "" {
				t.Errorf("effect %+v", c.closed[0].Ledger[0])
			}
		})
	}
}

// An attempt that was given up writes down what it did when the one that counts has looked for the last time.
func TestALateWordThatComesBeforeTheDoubtIsLookedInto(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	for name, key := range map[string]string{"its own": keyAt(1, 1, pay), "another's": keyAt(7, 1, pay)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			c.became = &agent.ToolResult{State: agent.StateCommitted, Text: "paid after all", Attempt: 1, Adopted: true}
			env := newCourt(t, c)
			c.tools = map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				env.SignalWorkflow(agent.SignalSettle, agent.Settlement{Key: key})
				return agent.ToolResult{State: agent.StateUncertain, Text: "nobody knows", Attempt: 1}, nil
			}}
			finish(t, env, turnInput())
			want, hears := agent.StateUncertain, "nobody knows"
			if name == "its own" {
				want, hears = agent.StateCommitted, "paid after all"
			}
			if e := c.closed[0].Ledger[0]; e.State != want {
				t.Errorf("effect %+v", e)
			}
			if got := c.asked[1].Entries[0].Text; got != hears {
				t.Errorf("the model hears %q", got)
			}
		})
	}
}

func TestWhatWasNotSentUsesUpNoEffects(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{
		limits:  agent.Limits{Effects: 1, Wait: agent.Duration(time.Hour)},
		answers: []agent.ModelResult{calls(pay)},
		tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": voidOnce(pay)},
	}}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
	later(env, 2*time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
		d.ID = agent.ApprovalID(keyAt(1, 1, pay), 2)
	}))
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || res.Spent.Effects != 1 || len(c.sent) != 2 {
		t.Errorf("result %+v %+v, sent %d", res, res.Reason, len(c.sent))
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
