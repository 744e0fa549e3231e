package deploy

import (
	"errors"
	"strings"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

func aPromotionTakesOver(p *port) {
	p.start("v1")
	p.promote("v1")
	p.talk("pro-a", "helper", "hello", 1)
	p.ask("pro-b", "helper", "note this", 1)
	p.start("v2")
	p.publish("v2")
	if _, err := p.Canary(p.Context(), p.canary("v2", 100)); err != nil {
		p.Fatal(err)
	}
	p.onlyHeld("v2", []string{"pro-a", "pro-b"})
	if _, err := p.Ramp(p.Context(), "v2", 10, false); err != nil {
		p.Fatal(err)
	}
	got := p.promote("v2")
	if got.Before != "v1" || got.Already || !got.RampEnded || got.Back != 2 || got.Sessions < 2 || got.Ramping != "" {
		p.Errorf("%+v", got)
	}
	if len(got.Held) != 1 || got.Held[0] != (HeldBy{Build: "v1", Runs: 1, Waiting: 1, Workers: 1}) {
		p.Errorf("held: %+v", got.Held)
	}
	p.onlyHeld("v2", nil)
	if again := p.promote("v2"); !again.Already || again.Back != 0 {
		p.Errorf("again: %+v", again)
	}
	p.talk("pro-a", "helper", "look here", 2)
	p.stands("pro-a:turn-2", "v2", true)
	p.approve("pro-b:turn-1") // its own build goes on with it
	p.until("the waiting turn ends", func() bool { return p.indexed("pro-b:turn-1", "ExecutionStatus = 'Completed'") })
	p.stands("pro-b:turn-1", "v1", true)
}

// aPromotionOfWhatCannotGoOn rolls back to a build that does not know what runs carry.
func aPromotionOfWhatCannotGoOn(p *port) {
	p.start("v1")
	p.say("v1", 1)
	p.promote("v1")
	p.start("v2")
	p.publish("v2")
	got := p.promote("v2")
	if len(got.Gaps) == 0 || got.Gaps[0].Newest != 1 {
		p.Errorf("nothing warns of the way back: %+v", got)
	}
	p.talk("back-a", "helper", "hello", 1)
	_, err := p.Promote(p.Context(), "v1", false)
	var crossed *CrossedError
	if !errors.As(err, &crossed) || len(crossed.Found) != 1 || crossed.Found[0].Type != agent.WorkflowSession || crossed.Found[0].Runs != 1 {
		p.Fatalf("error %v, want a CrossedError about one session", err)
	}
	c, err := p.Canary(p.Context(), CanaryOptions{Build: "v2", Percent: 0, Upgrade: p.upgrades()})
	if err != nil || c.Back != 0 {
		p.Errorf("%+v, %v", c, err)
	}
	if _, err := p.Promote(p.Context(), "v1", true); err != nil {
		p.Errorf("with force: %v", err)
	}
	if got, err := p.Promote(p.Context(), "v9", true); err != nil || got.Before != "v1" {
		p.Errorf("a build that nobody has seen, with force: %+v, %v", got, err)
	}
}

// say publishes for a build that it understands numbers up to newest.
func (p *port) say(build string, newest int) {
	p.Helper()
	t := worker.Table{Binary: "other", Numbers: map[string]versioning.Range{}}
	for _, kind := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
		t.Numbers[kind] = versioning.Range{Oldest: 1, Newest: newest, Preferred: newest}
	}
	_, err := p.Client.WorkerDeploymentClient().GetHandle(p.Deployment).UpdateVersionMetadata(p.Context(), client.WorkerDeploymentUpdateVersionMetadataOptions{
		Version:        sdkworker.WorkerDeploymentVersion{DeploymentName: p.Deployment, BuildID: build},
		MetadataUpdate: client.WorkerDeploymentMetadataUpdate{UpsertEntries: map[string]any{worker.TableEntry: t}},
	})
	if err != nil {
		p.Fatal(err)
	}
}

// A build of which no worker polls is not promoted, ramped or given sessions.
func heldTurnsOfABuildThatIsGone(p *port) {
	p.start("v1")
	p.promote("v1")
	p.ask("gone-a", "helper", "note this", 1)
	p.start("v2")
	p.promote("v2")
	p.stop("v1")
	impatient := p.Fleet
	impatient.silence = 1 // nanosecond: nobody has polled within that
	var silent *SilentError
	for name, err := range map[string]error{
		"promote": second(impatient.Promote(p.Context(), "v1", false)),
		"ramp":    second(impatient.Ramp(p.Context(), "v1", 10, false)),
		"canary":  second(impatient.Canary(p.Context(), p.canary("v1", 10))),
	} {
		if !errors.As(err, &silent) || silent.Build.Polled.IsZero() || !strings.Contains(err.Error(), "--force") {
			p.Errorf("%s: error %v, want a SilentError with the time of the last poll", name, err)
		}
	}
	d, err := p.drainFor(impatient, DrainOptions{Build: "v1"}, 1)
	if err != nil || d.Drained || d.Workers != 0 || len(d.Held) != 1 {
		p.Errorf("%+v, %v", d, err)
	}
}
