package histories

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// crossingScenes go on with something that changed meanwhile: the agent, the build, or the session itself.
func crossingScenes() []scene {
	return append(upgradeScenes(), append(forkScenes(), movedScenes()...)...)
}

const asksToUpgrade = anything + ", upgrade: ask"

// upgradeScenes have a second turn whose agent is defined otherwise than in the first.
func upgradeScenes() []scene {
	decides := func(c agent.Choice) func(*stage) {
		return func(s *stage) {
			s.changes()
			s.decide(2, somebody.on(s.asks(2, 1)[0], c))
			s.ended(2)
			s.close(false)
		}
	}
	return []scene{
		{
			session: "taken", kinds: map[string]int{"turn-upgrade-approved": 2, "session-upgrades": 0}, model: says("Hello."),
			policy: asksToUpgrade, play: decides(agent.ChoiceApprove),
		},
		{
			session: "kept", kinds: map[string]int{"turn-upgrade-declined": 2}, model: says("Hello."),
			policy: asksToUpgrade, play: decides(agent.ChoiceDecline),
		},
		{
			session: "not-answered", kinds: map[string]int{"turn-upgrade-expired": 2}, model: says("Hello."),
			policy: asksToUpgrade + ", approval: {expires: 2s}",
			play:   func(s *stage) { s.changes(); s.ended(2); s.close(false) },
		},
		{
			session: "not-wanted", kinds: map[string]int{"turn-upgrade-cancelled": 2}, model: says("Hello."), policy: asksToUpgrade,
			play: func(s *stage) {
				s.changes()
				s.asks(2, 1)
				s.signal(s.id(0), agent.SignalCancel, agent.Cancel{From: "user"})
				s.ended(2)
				s.close(false)
			},
		},
		{
			session: "asked-for-long", kinds: map[string]int{"turn-upgrade-continued": 2}, model: refunds, short: true,
			policy: asksToUpgrade,
			play: func(s *stage) {
				s.changes()
				a := s.asks(2, 1)[0]
				d := somebody.on(a, agent.ChoiceApprove)
				d.Digest = agent.DigestOf([]byte("another"))
				s.floods(2, agent.SignalApproval, d)
				s.decide(2, somebody.on(s.asks(2, 1)[0], agent.ChoiceApprove))
				s.ended(2)
				s.close(false)
			},
		},
		{
			session: "pinned", kinds: map[string]int{"turn-pinned": 2}, model: refunds, policy: anything + ", upgrade: pin",
			play: func(s *stage) { s.changes(); s.ended(2); s.close(false) },
		},
	}
}

// changes plays a first turn, changes the agent, and sends the second message.
func (s *stage) changes() {
	s.t.Helper()
	s.turn(1)
	s.instructions = "You refund orders, and say so politely."
	s.adopt(3)
	s.send(2)
}

// forkScenes are sessions that begin where a turn of another one ended.
func forkScenes() []scene {
	return []scene{
		{
			session: "forked", kinds: map[string]int{"session-forked": 0, "turn-of-fork": 1}, model: refunds,
			play: func(s *stage) { s.forks(); s.turn(1); s.close(false) },
		},
		{
			session: "fork-refused", kinds: map[string]int{"session-fork-refused": 0}, model: refunds,
			policy: anything + ", rights: {fork: [alice]}", people: []person{alice},
			play: func(s *stage) { s.forks() },
		},
	}
}

// forks plays a turn of a session of its own and begins the scene's as its fork.
func (s *stage) forks() {
	s.t.Helper()
	session := s.scene.session
	s.scene.session += "-source"
	s.turnOn(session, 1)
	source := s.scope()
	s.close(false)
	s.over(s.id(0))
	s.scene.session = session
	empty, err := versioning.Seal(3, struct{}{})
	s.must(err)
	_, err = s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{ID: session, TaskQueue: s.queue()}, agent.WorkflowSession, agent.SessionInput{
		Agent: "support", Tenant: "acme", Checkpoint: empty,
		Fork: &agent.Fork{From: source, Turn: 1, Approver: "somebody", Reason: "recorded", Time: time.Now().UTC()},
	})
	s.must(err)
}

// turnOn is turn for a session whose worker polls another one's queue.
func (s *stage) turnOn(queue string, n int) {
	s.t.Helper()
	s.queueOf = queue
	s.turn(n)
}

// movedScenes change the build in the middle of a run.
func movedScenes() []scene {
	return []scene{
		{
			// The first build is gone for good, and an operator moves the turn that it holds.
			session: "moved", kinds: map[string]int{"turn-moved": 1, "session-moved": 0}, model: refunds, deployment: "moved",
			policy: anybody,
			play: func(s *stage) {
				s.promote("first")
				s.send(1)
				s.asks(1, 1)
				s.stop()
				s.build = "second"
				s.work("")
				s.promote("second")
				s.move(s.id(1))
				s.decide(1, somebody.on(s.asks(1, 1)[0], agent.ChoiceApprove))
				s.ended(1)
				s.close(false)
			},
		},
	}
}

// promote makes a build the current one, once the server has seen its worker.
func (s *stage) promote(build string) {
	s.t.Helper()
	s.eventually("the build is known", func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.client.WorkerDeploymentClient().GetHandle(s.scene.deployment).SetCurrentVersion(ctx,
			client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err == nil
	})
}

// move takes a run to the current build.
func (s *stage) move(id string) {
	s.t.Helper()
	_, err := s.client.UpdateWorkflowExecutionOptions(s.t.Context(), client.UpdateWorkflowExecutionOptionsRequest{
		WorkflowId: id, WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
			VersioningOverride: &client.VersioningOverrideChange{Value: &client.AutoUpgradeVersioningOverride{}},
		},
	})
	s.must(err)
}
