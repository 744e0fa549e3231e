package workflows_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// wellEnded holds that a turn has ended and left nothing open but what nobody knows.
func wellEnded(t *testing.T, env *testsuite.TestWorkflowEnvironment, c *court) {
	t.Helper()
	if !env.IsWorkflowCompleted() || len(c.closed) != 1 {
		t.Fatalf("the turn did not end: %v", env.GetWorkflowError())
	}
	for _, e := range c.closed[0].Ledger {
		if effect.Open(e.State) && e.State != agent.StateUncertain && e.State != agent.StateCompensationFailed {
			t.Errorf("%s was left as %s", e.Key, e.State)
		}
	}
}

func edited(step, n int, c agent.Call, who, args string) agent.ApprovalDecision {
	return with(approve(step, n, c, who), func(d *agent.ApprovalDecision) { d.Args = args })
}

// What an approver makes of an action may be what another approver had made of it before.
func TestAnEditBackToAnEarlierActionIsRefusedAndBlocksNothing(t *testing.T) {
	t.Parallel()
	for _, class := range []agent.Class{agent.ClassRead, agent.ClassOnce} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			look := ask("look", "l", class, 2)
			c := &court{world: world{answers: []agent.ModelResult{calls(look)}}}
			env := newCourt(t, c)
			made := func(args string) agent.Call {
				e := look
				e.Args, e.Action = args, agent.DigestOf([]byte(args))
				return e
			}
			later(env, time.Minute, agent.SignalApproval, edited(1, 1, look, "alice", `{"a":1}`))
			later(env, 2*time.Minute, agent.SignalApproval, edited(1, 1, made(`{"a":1}`), "bob", `{"a":2}`))
			later(env, 3*time.Minute, agent.SignalApproval, edited(1, 1, made(`{"a":2}`), "alice", `{"a":1}`))
			env.RegisterDelayedCallback(func() {
				v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
				if len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Why, "asked for before") {
					t.Errorf("refused %+v", v.Refused)
				}
			}, 4*time.Minute)
			later(env, 5*time.Minute, agent.SignalApproval, approve(1, 1, made(`{"a":2}`), "alice"))
			finish(t, env, turnInput())
			wellEnded(t, env, c)
			if len(c.sent) != 1 || c.sent[0].Args != `{"a":2}` {
				t.Errorf("sent %+v", c.sent)
			}
		})
	}
}

// While an action waits, its tool may be declared anew.
func TestAnEditThatMakesAnotherKindOfActionIsRefused(t *testing.T) {
	t.Parallel()
	for _, class := range []agent.Class{agent.ClassRead, agent.ClassOnce} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			pay := ask("pay", "l", class, 1)
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			c.edit = func(e *agent.Call) {
				e.Class = agent.ClassRead
				if class == agent.ClassRead {
					e.Class = agent.ClassOnce
				}
			}
			env := newCourt(t, c)
			later(env, time.Minute, agent.SignalApproval, edited(1, 1, pay, "alice", `{"a":1}`))
			finish(t, env, turnInput())
			wellEnded(t, env, c)
			if len(c.sent) != 0 {
				t.Errorf("sent %+v", c.sent)
			}
		})
	}
}

func TestWhatTheModelProposedIsKeptWhenAnEditedActionIsAskedForAfresh(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{
		answers: []agent.ModelResult{calls(pay)},
		tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": voidOnce(pay)},
	}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() { c.became = &agent.ToolResult{State: agent.StateCancelled} }, 0)
	const args = `{"a":1}`
	changed := pay
	changed.Args, changed.Action = args, agent.DigestOf([]byte(args))
	later(env, time.Minute, agent.SignalApproval, edited(1, 1, pay, "alice", args))
	later(env, 2*time.Minute, agent.SignalApproval, with(approve(1, 1, changed, "alice"), func(d *agent.ApprovalDecision) {
		d.ID = agent.ApprovalID(keyAt(1, 1, changed), 2)
	}))
	finish(t, env, turnInput())
	wellEnded(t, env, c)
	if len(c.sent) != 2 || c.sent[1].Grant.Proposed != pay.Action {
		t.Errorf("sent %+v", c.sent)
	}
	for _, a := range c.closed[0].Approvals[1:] {
		if a.Proposed != pay.Action || a.ProposedArgs != pay.Args {
			t.Errorf("request %s was proposed as %q", a.ID, a.ProposedArgs)
		}
	}
}
