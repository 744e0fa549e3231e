package starter

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

func TestTheWordOnASettlementIsTheOneThatAnswersIt(t *testing.T) {
	t.Parallel()
	x := agent.Settlement{Key: "k", Outcome: agent.StateCommitted, Approver: "alice", Ref: "mine"}
	in := func(s agent.State, by, conflict string) []agent.Effect {
		return []agent.Effect{{Key: "other"}, {Key: "k", State: s, Conflict: conflict, Trail: []agent.Stamp{{State: s, By: by}}}}
	}
	refused := []agent.Refusal{{Ref: "another's", Why: "no"}, {Ref: "mine", Why: "no right"}}
	for name, c := range map[string]struct {
		view   agent.EffectsView
		result string
		final  bool
	}{
		"its own refusal":                      {agent.EffectsView{Turn: 1, Effects: in(agent.StateUncertain, "", ""), Refused: refused}, wordRefused, true},
		"another's refusal":                    {agent.EffectsView{Turn: 1, Effects: in(agent.StateUncertain, "", ""), Refused: refused[:1]}, wordUnanswered, false},
		"settled by the approver":              {agent.EffectsView{Turn: 1, Effects: in(agent.StateCommitted, "alice", "")}, wordAccepted, true},
		"settled by the claimed approver":      {agent.EffectsView{Turn: 1, Effects: in(agent.StateCommitted, "alice (claimed)", "")}, wordAccepted, true},
		"settled by somebody else meanwhile":   {agent.EffectsView{Turn: 1, Effects: in(agent.StateCommitted, "bob", "")}, wordUnanswered, false},
		"contradicted by its record":           {agent.EffectsView{Turn: 1, Effects: in(agent.StateFailed, "alice", "its record says failed")}, wordAccepted, true},
		"contradicted before, not looked at":   {agent.EffectsView{Turn: 1, Effects: in(agent.StateFailed, "", "its record says failed")}, wordUnanswered, false},
		"unknown to a turn":                    {agent.EffectsView{Turn: 1}, wordUnanswered, false},
		"listed by a session no more":          {agent.EffectsView{}, wordAccepted, false},
		"not listed, nor are all the refusals": {agent.EffectsView{More: 1}, wordUnanswered, false},
	} {
		res := settling{Result: wordUnanswered}
		if final := res.hear(c.view, x); final != c.final || res.Result != c.result {
			t.Errorf("%s: %s, final %v; want %s, %v", name, res.Result, final, c.result, c.final)
		}
	}
}

func TestACompensationThatRanDidNotThereforeUndoEverything(t *testing.T) {
	t.Parallel()
	done := func(states ...agent.State) compensated {
		c := compensated{Result: wordAccepted, Status: agent.StatusDone}
		for _, s := range states {
			c.Effects = append(c.Effects, agent.Effect{State: s})
		}
		return c
	}
	waiting := done()
	waiting.Status = agent.StatusWaiting
	for want, c := range map[int]compensated{
		ExitDone: done(agent.StateCompensated, agent.StateCommitted), ExitFailed: done(agent.StateCompensated, agent.StateIrreversible),
		ExitWaiting: waiting, ExitRefused: {Result: wordRefused},
	} {
		if got := c.exit(); got != want {
			t.Errorf("%+v exits with %d, want %d", c, got, want)
		}
	}
	for _, c := range []compensated{done(agent.StateCompensationFailed), done(agent.StateUncertain), {Result: wordAccepted, Status: agent.StatusFailed}} {
		if got := c.exit(); got != ExitFailed {
			t.Errorf("%+v exits with %d", c, got)
		}
	}
}
