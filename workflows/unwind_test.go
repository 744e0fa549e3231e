package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestAFailedTurnIsUndoneInReverseOrder(t *testing.T) {
	t.Parallel()
	one, two, three := call("one", "1", agent.ClassOnce), call("two", "2", agent.ClassOnce), call("three", "3", agent.ClassOnce)
	undo := func(n int, c agent.Call, with agent.Call) agent.Undo {
		return agent.Undo{Effect: agent.Effect{Key: keyAt(1, n, c), Tool: c.Tool, Place: agent.Place{Turn: 1, Step: 1, Call: n}, State: agent.StateCommitted}, Call: with}
	}
	broken := call("undo-one", "u1", agent.ClassOnce)
	final := undo(3, three, agent.Call{})
	final.Irreversible = true
	c := &court{
		plan: agent.PlanResult{Then: agent.UnwindCompensate, Undos: []agent.Undo{
			final, undo(2, two, ask("undo-two", "u2", agent.ClassOnce, 1)), undo(1, one, broken),
		}},
		world: world{
			limits:  agent.Limits{Faults: 1},
			answers: []agent.ModelResult{calls(one, two, three), {Finish: agent.FinishRefusal, Text: "no"}},
			tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"undo-one": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Attempt: 1, Note: "the bank is closed"}, nil
			}},
		},
	}
	env := newCourt(t, c)
	approval := approve(1, 2, two, "alice")
	undoTwo := c.plan.Undos[1].Call
	approval.ID, approval.Digest = agent.ApprovalID(agent.UndoKey(keyAt(1, 2, two), 1), 1), undoTwo.Action
	later(env, time.Minute, agent.SignalApproval, approval)
	res := finish(t, env, turnInput())
	var sent []string
	for _, in := range c.sent[3:] {
		sent = append(sent, in.Tool+" "+in.Key())
	}
	want := []string{"undo-two " + agent.UndoKey(keyAt(1, 2, two), 1), "undo-one " + agent.UndoKey(keyAt(1, 1, one), 1)}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	wantStates := []string{"one compensation_failed", "two compensated", "three irreversible", "undo-two committed", "undo-one failed"}
	if diff := cmp.Diff(wantStates, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	left := []string{"one compensation_failed", "three irreversible"} // for a person to look at
	if diff := cmp.Diff(left, states(res.Effects)); diff != "" || res.Status != agent.StatusFailed || !strings.Contains(res.Effects[0].Note, "the bank is closed") {
		t.Errorf("result %+v", res)
	}
}

func TestBudgetsBoundEffectsAndTheSession(t *testing.T) {
	t.Parallel()
	two := []agent.ModelResult{calls(call("a", "1", agent.ClassOnce), call("b", "2", agent.ClassOnce))}
	for name, test := range map[string]struct {
		limits agent.Limits
		spent  agent.Budget
		says   string
		sent   int
	}{
		"effects of the turn":    {agent.Limits{Effects: 1}, agent.Budget{}, "1 of 1 effects", 1},
		"effects of the session": {agent.Limits{Session: &agent.Budget{Effects: 3}}, agent.Budget{Effects: 2}, "3 of 3 effects of the session", 1},
		"steps of the session":   {agent.Limits{Session: &agent.Budget{Steps: 5}}, agent.Budget{Steps: 5}, "5 of 5 steps of the session", 0},
		"tokens of the session":  {agent.Limits{Session: &agent.Budget{Tokens: 100}}, agent.Budget{Tokens: 95}, "106 of 100 tokens of the session", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{limits: test.limits, answers: two}}
			in := turnInput()
			in.Spent = test.spent
			res := finish(t, newCourt(t, c), in)
			if res.Status != agent.StatusBudget || !strings.Contains(res.Reason.Message, test.says) || len(c.sent) != test.sent {
				t.Errorf("result %+v %+v, sent %d", res, res.Reason, len(c.sent))
			}
		})
	}
}
