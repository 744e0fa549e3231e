package histories

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// release names the folder that histories are recorded into. It rises with each release, before "make
// histories"; the tests then ask for one of every kind.
const release = "0.4.0"

// A scene is a conversation that is played to record the kinds of run in it.
type scene struct {
	// session is the id of its session, for whoever reads the file.
	session string
	// kinds maps a kind of run to the turn that is one, 0 being the session itself and -n the n-th late
	// compensation of turn 1. It is also the file's name, followed by the number of the run when it continued
	// as new.
	kinds map[string]int
	model modeltest.Func
	pay   payments.Config
	// agent is further YAML of the agent; refund the effect class of the refund tool, "idempotent" if empty.
	agent, refund string
	// undo is the path of the tool that takes refunds back, "void" if empty.
	undo string
	// policy is what the policy says, [anything] if empty, and people are its approvers.
	policy string
	people []person
	// short is for a server that suggests to continue as new after a few events.
	short bool
	// dies is the failpoint at which the first worker kills itself, holds the one at which it waits for
	// [stage.open].
	dies, holds string
	// deployment makes its workers builds of one, the first of which is called first.
	deployment string
	play       func(*stage)
}

// anything lets an agent do what it wants.
const anything = "rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell"

// scenes returns every kind of run that there is. A new path through a workflow gets a kind here.
func scenes() []scene {
	return slices.Concat(quietScenes(), cancelledScenes(), brokenScenes(), askingScenes(), doubtScenes(), undoingScenes(), resetScenes(), longerScenes(), crossingScenes())
}

// quietScenes go as they should.
func quietScenes() []scene {
	return []scene{
		{
			session: "plain", kinds: map[string]int{"turn-done": 1, "session-two-turns-closed": 0}, model: says("Hello."),
			play: func(s *stage) { s.turn(1); s.turn(2); s.close(false) },
		},
		{
			session: "effect", kinds: map[string]int{"turn-effect-committed": 1}, model: refunds,
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "reads", kinds: map[string]int{"turn-reads-parallel": 1}, model: manyReads,
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "continued", kinds: map[string]int{"turn-continued": 1}, model: refunds,
			agent: "    limits: {continue_after: 1}",
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "eight", kinds: map[string]int{"session-continued": 0}, model: says("Again."),
			play: func(s *stage) {
				for n := range 9 {
					s.turn(n + 1)
				}
				s.send(2) // long forgotten by the server, known to the session
				s.close(false)
			},
		},
		{
			session: "steered", kinds: map[string]int{"turn-steered": 1, "session-steered": 0}, model: slowRead,
			play: func(s *stage) { s.send(1); s.asked(1); s.steer(2); s.ended(1); s.close(false) },
		},
		{
			// The answer ends the turn before it could take the message: the session gets it back.
			session: "late", kinds: map[string]int{"turn-steered-too-late": 1, "session-takes-back-steering": 0}, model: slowly("Done.", 2),
			play: func(s *stage) {
				s.send(1)
				s.asked(1)
				s.steer(2)
				s.ended(1)
				s.ended(2)
				s.close(false)
			},
		},
		{
			session: "queued", kinds: map[string]int{"session-drops-queued": 0}, model: slowly("Done.", 1),
			play: func(s *stage) { s.send(1); s.send(2); s.send(2); s.send(3); s.close(false) },
		},
		{
			session: "again", kinds: map[string]int{"turn-waits-twice": 1}, model: refunds,
			agent: "    limits: {steps: 1, wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				for more := range 2 {
					s.waits(1)
					s.signal(s.id(1), agent.SignalExtend, agent.Extend{Steps: 1})
					s.asked(more + 2)
				}
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "extended", kinds: map[string]int{"turn-waits-and-extended": 1, "session-extends": 0}, model: refunds,
			agent: "    limits: {steps: 1, wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				s.waits(1)
				s.signal(s.id(0), agent.SignalExtend, agent.Extend{Steps: 5, From: "operator"})
				s.ended(1)
				s.close(false)
			},
		},
	}
}

// cancelledScenes are stopped by somebody, or by a limit.
func cancelledScenes() []scene {
	committed := make(chan string, 10)
	return []scene{
		{
			session: "cancelled", kinds: map[string]int{"turn-cancelled-by-signal": 1, "session-cancels-turn": 0}, model: slowly("Late.", 60),
			play: func(s *stage) {
				s.send(1)
				s.asked(1)
				s.signal(s.id(0), agent.SignalCancel, agent.Cancel{Reason: "no longer needed", From: "user"})
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "button", kinds: map[string]int{"turn-cancelled-by-temporal": 1}, model: slowly("Late.", 60),
			play: func(s *stage) { s.send(1); s.asked(1); s.cancel(s.id(1)); s.ended(1); s.close(false) },
		},
		{
			session: "whole", kinds: map[string]int{"session-cancelled": 0, "turn-cancelled-by-session": 1}, model: slowly("Late.", 60),
			play: func(s *stage) { s.send(1); s.send(2); s.asked(1); s.cancel(s.id(0)) },
		},
		{
			session: "midway", kinds: map[string]int{"turn-cancelled-in-effect": 1}, model: refunds, refund: "once",
			pay: payments.Config{Delay: 4 * time.Second, OnCommit: func(key string) { committed <- key }},
			play: func(s *stage) {
				s.send(1)
				<-committed
				s.signal(s.id(1), agent.SignalCancel, agent.Cancel{Turn: 1})
				s.ended(1)
				s.close(true)
			},
		},
		{
			session: "waiting", kinds: map[string]int{"turn-waits-and-cancelled": 1}, model: refunds,
			agent: "    limits: {steps: 1, wait: 10m}",
			play: func(s *stage) {
				s.send(1)
				s.waits(1)
				s.signal(s.id(1), agent.SignalCancel, agent.Cancel{})
				s.ended(1)
				s.close(false)
			},
		},
		{
			session: "expired", kinds: map[string]int{"turn-limit-expired": 1}, model: refunds,
			agent: "    limits: {steps: 1, wait: 2s}",
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
	}
}

// brokenScenes have trouble: of the model, of a tool, of a worker.
func brokenScenes() []scene {
	committed := make(chan string, 10)
	return []scene{
		{
			session: "faults", kinds: map[string]int{"turn-failed-faults": 1}, agent: "    limits: {faults: 3}",
			model: func(modeltest.Request) modeltest.Step {
				return modeltest.Want(modeltest.Call{Name: "teleport", Args: `{}`})
			},
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "unauthenticated", kinds: map[string]int{"turn-failed-model": 1, "session-after-failed-turn": 0},
			model: func(modeltest.Request) modeltest.Step { return modeltest.Fail(401, "invalid_api_key", "no such key") },
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "refused", kinds: map[string]int{"turn-failed-refusal": 1},
			model: func(modeltest.Request) modeltest.Step {
				return modeltest.Step{Message: []byte(`{"role":"assistant","content":null,"refusal":"I will not."}`), Finish: "stop"}
			},
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "nudged", kinds: map[string]int{"turn-nudged": 1}, model: stammers,
			play: func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "nobody", kinds: map[string]int{"session-unknown-agent": 0, "turn-unknown-agent": 1}, model: says("Hello."),
			play: func(s *stage) { s.send(1) },
		},
		{
			session: "uncertain", model: refunds, refund: "once", dies: failpoint.ToolAfterDispatch,
			kinds: map[string]int{"turn-uncertain": 1, "turn-blocked": 2, "session-refuses-close": 0},
			play: func(s *stage) {
				s.turn(1)
				s.signal(s.id(0), agent.SignalClose, agent.Close{})
				s.refuses()
				s.turn(2) // asks for the same refund
				s.close(true)
			},
		},
		{
			session: "both", model: twoRefunds, refund: "once", dies: failpoint.ToolAfterDispatch,
			kinds: map[string]int{"turn-uncertain-stops-later": 1},
			play:  func(s *stage) { s.turn(1); s.close(true) },
		},
		{
			// A worker whose configuration is older than what the session has seen leaves the turn to others.
			session: "stale", kinds: map[string]int{"turn-opened-elsewhere": 2}, model: says("Hello."),
			play: func(s *stage) {
				s.turn(1)
				s.restart(1)
				s.send(2)
				s.eventually("any worker may open the turn", func() bool { return s.hasScheduled(2, agent.ActivityOpen) })
				s.restart(2)
				s.ended(2)
				s.close(false)
			},
		},
		{
			session: "terminated", model: refunds, refund: "once",
			kinds: map[string]int{"turn-terminated": 1, "session-recovers-terminated-turn": 0},
			pay:   payments.Config{Delay: 2 * time.Second, OnCommit: func(key string) { committed <- key }},
			play: func(s *stage) {
				s.send(1)
				<-committed
				s.terminate(s.id(1))
				s.turn(2)
				s.close(true)
			},
		},
		{
			session: "killed", model: refunds, dies: failpoint.ToolAfterCommit,
			kinds: map[string]int{"turn-worker-killed": 1, "session-worker-killed": 0},
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
		{
			session: "renewing", model: refunds, dies: failpoint.ContinueBefore, agent: "    limits: {continue_after: 1}",
			kinds: map[string]int{"turn-killed-continuing": 1},
			play:  func(s *stage) { s.turn(1); s.close(false) },
		},
	}
}

func says(text string) modeltest.Func {
	return func(modeltest.Request) modeltest.Step { return modeltest.Say(text) }
}

func slowly(text string, seconds float64) modeltest.Func {
	return func(modeltest.Request) modeltest.Step { return modeltest.Say(text).Slow(seconds) }
}

// slowRead takes its time to ask for a read.
func slowRead(r modeltest.Request) modeltest.Step {
	if len(r.Messages) > 2 {
		return modeltest.Say("As you say.")
	}
	return modeltest.Want(modeltest.Call{ID: "call_a", Name: "lookup_order", Args: `{"id":"42"}`}).Slow(2)
}

// refunds looks an order up, refunds it, and says so.
func refunds(r modeltest.Request) modeltest.Step {
	switch len(r.Results()) {
	case 0:
		return modeltest.Want(modeltest.Call{ID: "call_a", Name: "lookup_order", Args: `{"id":"42"}`})
	case 1:
		return modeltest.Want(modeltest.Call{ID: "call_b", Name: "refund", Args: `{"order":"42","amount":"19.90"}`})
	}
	return modeltest.Say("Order 42 is refunded.")
}

// twoRefunds asks for both at once.
func twoRefunds(r modeltest.Request) modeltest.Step {
	if len(r.Results()) > 0 {
		return modeltest.Say("I do not know.")
	}
	return modeltest.Want(
		modeltest.Call{ID: "call_a", Name: "refund", Args: `{"order":"42","amount":"1.00"}`},
		modeltest.Call{ID: "call_b", Name: "refund", Args: `{"order":"42","amount":"2.00"}`},
	)
}

// manyReads asks for more reads than run at once, with an effect in their midst and one that cannot run.
func manyReads(r modeltest.Request) modeltest.Step {
	if len(r.Results()) > 0 {
		return modeltest.Say("All there.")
	}
	var calls []modeltest.Call
	for n := range 20 {
		c := modeltest.Call{Name: "lookup_order", Args: `{"id":"` + string(rune('A'+n)) + `"}`}
		switch n {
		case 5:
			c = modeltest.Call{Name: "refund", Args: `{"order":"42","amount":"1.00"}`}
		case 7:
			c.Args = `{"id":`
		}
		calls = append(calls, c)
	}
	return modeltest.Want(calls...)
}

// stammers says nothing, then half of it, then all, as it is told.
func stammers(r modeltest.Request) modeltest.Step {
	switch told := r.User(); {
	case strings.Contains(told, "cut off"):
		return modeltest.Say("Order 42 is refunded.")
	case strings.Contains(told, "empty"):
		half := modeltest.Say("Order 42 is")
		half.Finish = "length"
		return half
	}
	return modeltest.Say("")
}
