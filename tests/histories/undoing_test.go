package histories

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// undoing lets an agent do what it wants, and takes it back.
const undoing = "rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell, on_failure: "

// undoingScenes take effects back.
func undoingScenes() []scene {
	return []scene{
		{
			session: "compensated", kinds: map[string]int{"turn-compensated": 1}, model: refundsAndFails, policy: undoing + "compensate",
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "not-compensated", kinds: map[string]int{"turn-compensation-failed": 1}, model: refundsAndFails,
			policy: undoing + "compensate", undo: "nowhere",
			play: func(s *stage) { s.turn(1); s.close(true) },
		},
		{
			session: "cancelled-late", kinds: map[string]int{"turn-cancelled-compensated": 1}, model: refundsAndDallies,
			policy: undoing + "compensate",
			play: func(s *stage) {
				s.send(1)
				s.asked(3)
				s.signal(s.id(1), agent.SignalCancel, agent.Cancel{Reason: "the wrong customer", From: "user"})
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "asked-to-undo", kinds: map[string]int{"turn-compensation-approved": 1}, model: refundsAndFails, policy: undoing + "ask",
			play: func(s *stage) {
				s.send(1)
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceApprove))
				first := s.asks(1, 1)[0]
				s.decide(1, somebody.on(first, agent.ChoiceDecline))
				s.ended(1)
				s.close(true)
			},
		},
		{
			session: "undoes-on", kinds: map[string]int{"turn-compensation-continued": 1}, model: refundsAndFails, short: true,
			policy: undoing + "ask",
			play: func(s *stage) {
				s.send(1)
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceApprove))
				first := s.asks(1, 1)[0]
				wrong := somebody.on(first, agent.ChoiceApprove)
				wrong.Digest = agent.DigestOf([]byte("another action"))
				s.floods(1, agent.SignalApproval, wrong)
				s.decide(1, somebody.on(first, agent.ChoiceApprove))
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "ordered", kinds: map[string]int{"session-compensates": 0, "turn-undo": -1}, model: refunds,
			policy: undoing + "keep, rights: {compensate: [alice]}", people: []person{alice},
			play: func(s *stage) {
				s.turn(1)
				s.signal(s.id(0), agent.SignalCompensate, agent.Compensate{Turn: 7, Approver: string(alice)}) // there is none
				c := agent.Compensate{Turn: 1, Reason: "the wrong customer", Approver: string(alice), Time: time.Now().UTC()}
				c.Signature = s.sign(alice, approval.CompensateBytes(s.scope(), c))
				s.signal(s.id(0), agent.SignalCompensate, c)
				s.over(s.id(-1))
				s.close(false)
			},
		},
		{
			session: "ordered-in-vain", kinds: map[string]int{"session-compensation-failed": 0, "turn-undo-failed": -1}, model: refunds,
			policy: undoing + "keep", undo: "nowhere",
			play: func(s *stage) {
				s.turn(1)
				for again := range 2 {
					s.signal(s.id(0), agent.SignalCompensate, agent.Compensate{Turn: 1, Approver: string(somebody)})
					s.over(s.id(-1 - again))
				}
				s.close(true)
			},
		},
	}
}

// refundsAndFails refunds twice and is gone then.
func refundsAndFails(r modeltest.Request) modeltest.Step {
	if len(r.Results()) > 0 {
		return modeltest.Fail(401, "invalid_api_key", "no such key")
	}
	return twoRefunds(r)
}

// refundsAndDallies takes its time to say that it has refunded.
func refundsAndDallies(r modeltest.Request) modeltest.Step {
	step := refunds(r)
	if len(r.Results()) > 1 {
		return step.Slow(60)
	}
	return step
}

// resetScenes are of turns that somebody resets in Temporal.
func resetScenes() []scene {
	return []scene{
		{
			// What was approved and sent is not asked for again, and not sent again.
			session: "reset-ended", kinds: map[string]int{"turn-reset-adopted": 1}, model: refunds,
			policy: byAlice, people: []person{alice},
			play: func(s *stage) {
				s.send(1)
				s.approve(1, alice)
				s.ended(1)
				s.reset(1, "model", 2)
				s.over(s.id(1))
				s.close(false)
			},
		},
		{
			// Her decision comes ahead of its request: the reset puts it right behind its own point.
			session: "reset", kinds: map[string]int{"turn-reset-approved": 1}, model: refunds,
			policy: byBoth, people: []person{alice, bob},
			play: func(s *stage) {
				s.send(1)
				s.approve(1, alice)
				s.given(1, 1)
				s.reset(1, "model", 2)
				s.given(1, 1)
				s.approve(1, bob)
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "reset-after-decline", kinds: map[string]int{"turn-reset-after-decline": 1}, model: refunds, policy: anybody,
			play: func(s *stage) {
				s.send(1)
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceDecline))
				s.ended(1)
				run := s.run(1)
				d := &draft{s.t, s.fetch(s.id(1), run)}
				_, err := s.client.WorkflowService().ResetWorkflowExecution(s.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
					Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: s.id(1), RunId: run},
					Reason: "recorded", RequestId: run, WorkflowTaskFinishEventId: d.event(completed, 1).GetWorkflowExecutionCompletedEventAttributes().GetWorkflowTaskCompletedEventId(),
				})
				s.must(err)
				s.over(s.id(1))
				s.close(false)
			},
		},
		{
			session: "reset-declined", kinds: map[string]int{"turn-reset-declined": 1}, model: refunds, policy: anybody,
			play: func(s *stage) {
				s.send(1)
				s.asks(1, 1)
				s.reset(1, "model", 2)
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceDecline))
				s.ended(1)
				s.close(false)
			},
		},
	}
}
