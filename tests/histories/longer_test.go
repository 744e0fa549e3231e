package histories

import (
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// longerScenes carry from run to run what the shorter ones have no time for.
func longerScenes() []scene {
	return []scene{
		{
			// Temporal suggests it, between two steps.
			session: "many-steps", kinds: map[string]int{"turn-continued-between-steps": 1}, model: fiveReads, short: true,
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			// The run before could run nothing, and that counts in the next one.
			session: "odd-steps", kinds: map[string]int{"turn-continued-with-faults": 1}, model: noSuchTool,
			agent: "    limits: {continue_after: 1, faults: 3}",
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "cancelled-undoing", kinds: map[string]int{"turn-cancelled-compensation-continued": 1}, model: refundsTwiceAndDallies, short: true,
			policy: undoing + "ask",
			play: func(s *stage) {
				s.send(1)
				s.asked(2)
				s.signal(s.id(1), agent.SignalCancel, agent.Cancel{Reason: "the wrong customer", From: "user"})
				first := s.asks(1, 1)[0]
				wrong := somebody.on(first, agent.ChoiceApprove)
				wrong.Digest = agent.DigestOf([]byte("another action"))
				s.floods(1, agent.SignalApproval, wrong)
				s.decide(1, somebody.on(first, agent.ChoiceApprove))
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceApprove))
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "nameless", kinds: map[string]int{"turn-steered-nameless": 1}, model: slowRead,
			play: func(s *stage) {
				s.send(1)
				s.asked(1)
				s.give(agent.Message{ID: "message-2", Text: "And hurry.", Now: true})
				s.ended(1)
				s.close(false)
			},
		},
	}
}

// fiveReads looks one order up after the other.
func fiveReads(r modeltest.Request) modeltest.Step {
	n := len(r.Results())
	if n == 5 {
		return modeltest.Say("All there.")
	}
	return modeltest.Want(modeltest.Call{ID: fmt.Sprintf("call_%d", n), Name: "lookup_order", Args: fmt.Sprintf(`{"id":"4%d"}`, n)})
}

// noSuchTool asks for what there is not, twice.
func noSuchTool(r modeltest.Request) modeltest.Step {
	n := len(r.Results())
	if n == 2 {
		return modeltest.Say("Then not.")
	}
	return modeltest.Want(modeltest.Call{ID: fmt.Sprintf("call_%d", n), Name: "fly", Args: `{}`})
}

// refundsTwiceAndDallies takes its time after two refunds.
func refundsTwiceAndDallies(r modeltest.Request) modeltest.Step {
	step := twoRefunds(r)
	if len(r.Results()) > 0 {
		return step.Slow(60)
	}
	return step
}
