package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

func TestAnUncertainEffectHoldsTheTurnUntilItIsSettled(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	unknown := agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Text: "nobody knows", Hold: true}
	for name, test := range map[string]struct {
		signal agent.Settlement
		say    agent.SettleResult
		hears  string
		later  bool // whether the next effect of the step runs
		left   int
	}{
		"by a person": {agent.Settlement{Key: keyAt(1, 1, pay), Outcome: agent.StateCommitted, Evidence: "seen in the ledger", Approver: "alice"}, agent.SettleResult{}, "settled as committed", true, 0},
		"by a late attempt": {
			agent.Settlement{Key: keyAt(1, 1, pay)},
			agent.SettleResult{Result: agent.ToolResult{State: agent.StateFailed, Attempt: 1, Text: "refused by the bank"}},
			"refused by the bank", true, 0,
		},
		"by a word that knows nothing": {agent.Settlement{Key: keyAt(1, 1, pay)}, agent.SettleResult{Why: "still not known"}, "nobody knows", false, 1},
		"without evidence":             {agent.Settlement{Key: keyAt(1, 1, pay), Outcome: agent.StateFailed, Approver: "alice"}, agent.SettleResult{}, "nobody knows", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{say: test.say, world: world{
				limits:  agent.Limits{Wait: agent.Duration(24 * time.Hour)},
				answers: []agent.ModelResult{calls(pay, call("next", "b", agent.ClassOnce))},
				tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) { return unknown, nil }},
			}}
			env := newCourt(t, c)
			later(env, time.Hour, agent.SignalSettle, test.signal)
			res := finish(t, env, turnInput())
			if len(res.Effects) != test.left || len(c.asked[1].Entries) != 2 {
				t.Fatalf("result %+v, entries %+v", res, c.asked[1].Entries)
			}
			if got := c.asked[1].Entries[0].Text; !strings.Contains(got, test.hears) {
				t.Errorf("the model hears %q", got)
			}
			if ran := len(c.sent) == 2; ran != test.later {
				t.Errorf("sent %+v", c.sent)
			}
		})
	}
}

func TestALateWordThatContradictsAnEndIsAConflictAndChangesNothing(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	c := &court{
		say: agent.SettleResult{Result: agent.ToolResult{State: agent.StateCommitted, Attempt: 1, Note: "the record says so"}},
		world: world{
			limits:  agent.Limits{Steps: 1, Wait: agent.Duration(time.Hour)},
			answers: []agent.ModelResult{calls(pay)},
			tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Attempt: 1}, nil
			}},
		},
	}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalSettle, agent.Settlement{Key: keyAt(1, 1, pay)})
	res := finish(t, env, turnInput())
	if len(res.Effects) != 1 || res.Effects[0].State != agent.StateFailed || res.Effects[0].Conflict == "" {
		t.Errorf("effects %+v", res.Effects)
	}
}

func TestAContradictionIsListedUntilAPersonHasLooked(t *testing.T) {
	t.Parallel()
	pay := call("pay", "a", agent.ClassOnce)
	c := &court{
		say: agent.SettleResult{Result: agent.ToolResult{State: agent.StateCommitted, Attempt: 1}},
		world: world{
			limits:  agent.Limits{Steps: 1, Wait: agent.Duration(time.Hour)},
			answers: []agent.ModelResult{calls(pay)},
			tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
				return agent.ToolResult{State: agent.StateFailed, Attempt: 1}, nil
			}},
		},
	}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalSettle, agent.Settlement{Key: keyAt(1, 1, pay)})
	later(env, 2*time.Minute, agent.SignalSettle, agent.Settlement{
		Key: keyAt(1, 1, pay), Outcome: agent.StateCommitted, Evidence: "it is in the bank's list", Approver: "alice",
	})
	res := finish(t, env, turnInput())
	e := c.closed[0].Ledger[0]
	if len(res.Effects) != 0 || e.State != agent.StateFailed || e.Conflict == "" || !strings.Contains(e.Looked, "bank's list") {
		t.Errorf("result %+v, effect %+v", res, e)
	}
}
