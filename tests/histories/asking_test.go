package histories

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// What policies of the scenes say.
const (
	anybody  = `rules: [{name: refunds, when: 'tool == "refund"', then: ask}], duplicates: allow`
	byAlice  = `rules: [{name: refunds, when: 'tool == "refund"', then: ask, approval: {by: [alice]}}], duplicates: allow`
	byEither = `rules: [{name: refunds, when: 'tool == "refund"', then: ask, approval: {by: [alice, bob]}}], duplicates: allow`
	byBoth   = `rules: [{name: refunds, when: 'tool == "refund"', then: ask, approval: {by: [alice, bob], quorum: 2}}], duplicates: allow`
)

const somebody person = "somebody" // who signs nothing

// askingScenes wait for a person's decision.
func askingScenes() []scene { return append(decidedScenes(), oddlyDecidedScenes()...) }

// decidedScenes end as somebody, or the clock, decides.
func decidedScenes() []scene {
	return []scene{
		{
			session: "approved", kinds: map[string]int{"turn-approved": 1}, model: refunds,
			policy: byAlice, people: []person{alice},
			play: func(s *stage) { s.send(1); s.approve(1, alice); s.ended(1); s.close(false) },
		},
		{
			session: "quorum", kinds: map[string]int{"turn-approved-by-quorum": 1}, model: refunds,
			policy: byBoth, people: []person{alice, bob},
			play: func(s *stage) { s.send(1); s.approve(1, bob, alice); s.ended(1); s.close(false) },
		},
		{
			session: "lookup", kinds: map[string]int{"turn-read-approved": 1}, model: refunds,
			policy: `rules: [{name: reads, when: 'tool == "lookup_order"', then: ask}, {name: others, then: allow}]`,
			play: func(s *stage) {
				s.send(1)
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceApprove))
				s.ended(1)
				s.close(false)
			},
		},
		{
			// Declining one leaves the other alone.
			session: "declined", kinds: map[string]int{"turn-declined": 1}, model: twoRefunds, policy: anybody,
			play: func(s *stage) {
				s.send(1)
				both := s.asks(1, 2)
				s.decide(1, somebody.on(both[0], agent.ChoiceDecline), somebody.on(both[1], agent.ChoiceApprove))
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "withdrawn", kinds: map[string]int{"turn-approval-withdrawn": 1}, model: refunds, policy: anybody,
			play: func(s *stage) {
				s.send(1)
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceCancel))
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "nobody-came", kinds: map[string]int{"turn-expired": 1}, model: refunds,
			policy: anybody + ", approval: {expires: 2s}",
			play:   func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "edited", kinds: map[string]int{"turn-approved-edited": 1}, model: refunds,
			policy: byAlice, people: []person{alice},
			play: func(s *stage) {
				s.send(1)
				d := alice.on(s.asks(1, 1)[0], agent.ChoiceApprove)
				d.Args = `{"order":"42","amount":"5.00"}`
				s.decide(1, s.signed(alice, d))
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "cancelled-waiting", kinds: map[string]int{"turn-cancelled-waiting": 1}, model: refunds,
			policy: byAlice, people: []person{alice},
			play: func(s *stage) {
				s.send(1)
				s.asks(1, 1)
				s.signal(s.id(0), agent.SignalCancel, agent.Cancel{Reason: "no longer needed", From: "user"})
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "button-waiting", kinds: map[string]int{"turn-waiting-cancelled-by-temporal": 1}, model: refunds,
			policy: byAlice, people: []person{alice},
			play: func(s *stage) { s.send(1); s.asks(1, 1); s.cancel(s.id(1)); s.ended(1); s.close(false) },
		},
		{
			session: "killed-judging", kinds: map[string]int{"turn-approved-worker-killed": 1}, model: refunds,
			policy: byAlice, people: []person{alice}, dies: failpoint.ApprovalAfterJudgement,
			play: func(s *stage) { s.send(1); s.approve(1, alice); s.ended(1); s.close(false) },
		},
	}
}

// oddlyDecidedScenes take more than one word, or are asked for more than once.
func oddlyDecidedScenes() []scene {
	return []scene{
		{
			// The second was approved by one when one was enough. The first keeps it waiting until two are needed.
			session: "void", kinds: map[string]int{"turn-approval-void": 1}, model: twoRefunds,
			policy: byEither, people: []person{alice, bob},
			play: func(s *stage) { s.voids(); s.approve(1, alice, bob); s.ended(1); s.close(false) },
		},
		{
			session: "void-declined", kinds: map[string]int{"turn-approval-void-declined": 1}, model: twoRefunds,
			policy: byEither, people: []person{alice, bob},
			play: func(s *stage) {
				s.voids()
				s.decide(1, s.signed(bob, bob.on(s.asks(1, 1)[0], agent.ChoiceDecline)))
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "refused-decisions", kinds: map[string]int{"turn-refused-decisions": 1}, model: refunds,
			policy: byBoth, people: []person{alice, bob}, play: refusedDecisions,
		},
		{
			session: "waits-on", kinds: map[string]int{"turn-waits-continued": 1}, model: refunds, short: true,
			policy: byAlice, people: []person{alice},
			play: func(s *stage) {
				s.send(1)
				d := alice.on(s.asks(1, 1)[0], agent.ChoiceApprove)
				s.floods(1, agent.SignalApproval, d) // she has not signed
				s.approve(1, alice)
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "twice", kinds: map[string]int{"turn-duplicate-approved": 2}, model: refunds,
			policy: "rules: [{name: everything, then: allow}]",
			play: func(s *stage) {
				s.turn(1)
				s.send(2)
				s.decide(2, somebody.on(s.asks(2, 1)[0], agent.ChoiceApprove))
				s.ended(2)
				s.close(false)
			},
		},
		{
			session: "only-once", kinds: map[string]int{"turn-duplicate-denied": 2}, model: refunds,
			policy: "rules: [{name: everything, then: allow}], duplicates: deny",
			play:   func(s *stage) { s.turn(1); s.turn(2); s.close(false) },
		},
		{
			session: "two-senders", kinds: map[string]int{"turn-steered-signed": 1}, model: slowRead, people: []person{alice},
			play: func(s *stage) {
				s.send(1)
				s.asked(1)
				m := agent.Message{ID: "message-2", Text: "And the invoice.", From: string(alice), Now: true, Time: time.Now().UTC()}
				m.Signature = s.sign(alice, approval.MessageBytes(s.id(0), m))
				s.give(m)
				s.ended(1)
				s.close(false)
			},
		},
	}
}

// voids has the turn ask again for the second of two refunds.
func (s *stage) voids() {
	s.t.Helper()
	s.send(1)
	both := s.asks(1, 2)
	s.decide(1, s.signed(alice, alice.on(both[1], agent.ChoiceApprove)))
	s.becomes(1, both[1].ID, agent.OutcomeApproved)
	s.scene.policy = byBoth
	s.adopt(3)
	s.approve(1, alice, bob)
	s.becomes(1, both[1].ID, agent.OutcomeVoid)
}

// refusedDecisions are sent before, between and after those that count.
func refusedDecisions(s *stage) {
	s.send(1)
	a := s.asks(1, 1)[0]
	id := s.id(1)
	s.signal(id, agent.SignalApproval, "approve")
	s.signal(id, agent.SignalApproval, []byte("\xff\x00 no JSON"))
	s.signal(id, agent.SignalApproval, map[string]any{"id": a.ID, "digest": a.Action, "decision": "approved", "approver": alice})
	other := alice.on(a, agent.ChoiceApprove)
	other.Digest = agent.DigestOf([]byte("another action"))
	unknown := alice.on(a, agent.ChoiceApprove)
	unknown.ID = agent.ApprovalID(a.Key, 7)
	s.decide(1,
		s.signed(alice, other),
		s.signed(alice, unknown),
		s.signed(bob, alice.on(a, agent.ChoiceApprove)),         // not her key
		alice.on(a, agent.ChoiceApprove),                        // not signed
		s.signed(somebody, somebody.on(a, agent.ChoiceDecline)), // no approver
		s.signed(alice, alice.on(a, agent.ChoiceApprove)),       // counts
		s.signed(alice, alice.on(a, agent.ChoiceApprove)),       // again
		s.signed(bob, bob.on(a, agent.ChoiceApprove)),           // counts
		s.signed(bob, bob.on(a, agent.ChoiceDecline)),           // too late
	)
	s.ended(1)
	s.close(false)
}
