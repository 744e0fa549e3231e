package histories

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// waiting lets a turn wait for a word on what is uncertain.
const waiting = "rules: [{name: everything, then: allow}], duplicates: allow, uncertain: wait"

// doubtScenes have an effect whose outcome is not known at first, or a budget that is used up.
func doubtScenes() []scene { return append(uncertainScenes(), budgetScenes()...) }

func uncertainScenes() []scene {
	return []scene{
		{
			session: "settled", kinds: map[string]int{"turn-uncertain-settled": 1}, model: refunds, refund: "once",
			dies: failpoint.ToolAfterDispatch, policy: waiting + ", rights: {settle: [alice]}", people: []person{alice, bob},
			agent: "    limits: {wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				e := s.doubt(1)
				s.settle(1, bob, e, agent.StateCommitted) // may not
				s.settle(1, alice, e, agent.StateFailed)
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "held", kinds: map[string]int{"turn-uncertain-held-too-long": 1}, model: refunds, refund: "once",
			dies: failpoint.ToolAfterDispatch, policy: waiting, agent: "    limits: {wait: 2s}",
			play: func(s *stage) { s.turn(1); s.close(true) },
		},
		{
			session: "held-on", kinds: map[string]int{"turn-uncertain-continued": 1}, model: refunds, refund: "once", short: true,
			dies: failpoint.ToolAfterDispatch, policy: waiting, people: []person{alice}, agent: "    limits: {wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				e := s.doubt(1)
				s.floods(1, agent.SignalSettle, agent.Settlement{Key: e.Key, Outcome: agent.StateCommitted, Evidence: "none", Approver: "alice", Signature: "none"})
				s.settle(1, alice, e, agent.StateCommitted)
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "held-cancelled", kinds: map[string]int{"turn-uncertain-cancelled": 1}, model: refunds, refund: "once",
			dies: failpoint.ToolAfterDispatch, policy: waiting, agent: "    limits: {wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				s.doubt(1)
				s.waits(1)
				s.signal(s.id(1), agent.SignalCancel, agent.Cancel{From: "user"})
				s.ended(1)
				s.close(true)
			},
		},
		{
			session: "settles-on", kinds: map[string]int{"session-continued-unresolved": 0}, model: refunds, refund: "once",
			dies: failpoint.ToolAfterDispatch, people: []person{alice}, short: true,
			play: func(s *stage) {
				s.turn(1)
				first := s.run(0)
				for n := 2; s.run(0) == first; n++ {
					s.turn(n)
				}
				s.settle(0, alice, s.doubt(0), agent.StateCommitted)
				s.resolved()
				s.close(false)
			},
		},
		{
			session: "settles", kinds: map[string]int{"session-settles": 0}, model: refunds, refund: "once",
			dies: failpoint.ToolAfterDispatch, people: []person{alice},
			play: func(s *stage) {
				s.turn(1)
				e := s.doubt(0)
				s.signal(s.id(0), agent.SignalSettle, "rubbish")
				s.settle(0, alice, e, agent.StateCommitted)
				s.resolved()
				s.close(false)
			},
		},
		{
			session: "late-outcome", kinds: map[string]int{"turn-late-settled": 1}, model: refunds, refund: "once",
			holds: failpoint.ToolAfterCommit, policy: waiting, agent: "    limits: {wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				_, thaw := s.freezes(1)
				thaw()
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "later-outcome", kinds: map[string]int{"session-settles-late": 0}, model: refunds, refund: "once",
			holds: failpoint.ToolAfterCommit,
			play: func(s *stage) {
				s.send(1)
				_, thaw := s.freezes(0)
				thaw()
				s.resolved()
				s.close(false)
			},
		},
		{
			// A person was wrong, as it turns out after the turn's end.
			session: "contradicted-later", kinds: map[string]int{"session-late-contradicted": 0}, model: refunds, refund: "once",
			holds: failpoint.ToolAfterCommit, policy: waiting, people: []person{alice}, agent: "    limits: {wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				e, thaw := s.freezes(1)
				s.settle(1, alice, e, agent.StateFailed)
				s.ended(1)
				thaw()
				s.settle(0, alice, s.contradicts(0), agent.StateCommitted)
				s.resolved()
				s.close(false)
			},
		},
		{
			session: "contradicted", model: refundsAndDallies, refund: "once",
			kinds: map[string]int{"turn-late-contradicted": 1, "session-settles-contradiction": 0},
			holds: failpoint.ToolAfterCommit, policy: waiting, people: []person{alice}, agent: "    limits: {wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				e, thaw := s.freezes(1)
				s.settle(1, alice, e, agent.StateFailed)
				s.asked(3)
				thaw()
				s.contradicts(1)
				s.signal(s.id(1), agent.SignalCancel, agent.Cancel{From: "user"})
				s.ended(1)
				s.settle(0, alice, s.contradicts(0), agent.StateCommitted)
				s.resolved()
				s.close(false)
			},
		},
	}
}

func budgetScenes() []scene {
	return []scene{
		{
			session: "exhausted", kinds: map[string]int{"turn-budget-exhausted": 1}, model: twoRefunds,
			agent: "    limits: {effects: 1, wait: 2s}",
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "granted", kinds: map[string]int{"turn-budget-extended": 1}, model: twoRefunds,
			agent: "    limits: {effects: 1, wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				s.waits(1)
				s.signal(s.id(1), agent.SignalExtend, agent.Extend{Steps: 1, From: "operator"}) // not what is lacking
				s.signal(s.id(1), agent.SignalExtend, agent.Extend{Effects: 1, From: "operator"})
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "granted-on", kinds: map[string]int{"turn-budget-continued": 1}, model: twoRefunds, short: true,
			agent: "    limits: {effects: 1, wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				s.waits(1)
				s.floods(1, agent.SignalExtend, agent.Extend{Steps: 1})
				s.signal(s.id(1), agent.SignalExtend, agent.Extend{Effects: 1})
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "together", model: says("Hello."), agent: "    limits: {wait: 2s, session: {steps: 1}}",
			kinds: map[string]int{"turn-session-budget-exhausted": 2, "session-grants-ahead": 0},
			play: func(s *stage) {
				s.turn(1)
				s.turn(2) // has no step left
				s.signal(s.id(0), agent.SignalExtend, agent.Extend{Steps: 5, Time: agent.Duration(time.Hour)})
				s.turn(3)
				s.close(false)
			},
		},
	}
}
