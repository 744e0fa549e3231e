package deploy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

func namesThatAreNotThere(p *port) {
	_, err := p.Describe(p.Context())
	var none *NoDeploymentError
	if !errors.As(err, &none) {
		p.Fatalf("error %v, want a NoDeploymentError", err)
	}
	p.start("v1")
	d, err := p.Describe(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	if b := d.Builds[0]; len(d.Builds) != 1 || b.Standing != Inactive || b.Since.IsZero() || b.Workers != 1 || d.Current != "" {
		p.Errorf("of a build that has just come: %+v", d)
	}
	other := p.Fleet
	other.Deployment += "s"
	_, err = other.Describe(p.Context())
	if !errors.As(err, &none) || !strings.Contains(err.Error(), p.Deployment) {
		p.Errorf("error %v, want one that names those that are there", err)
	}
	_, err = p.Promote(p.Context(), "v9", false)
	var build *NoBuildError
	if !errors.As(err, &build) || !strings.Contains(err.Error(), `"v1"`) {
		p.Errorf("error %v, want one that names the builds that are there", err)
	}
	for name, err := range map[string]error{
		"ramp":   second(p.Ramp(p.Context(), "v9", 10, false)),
		"canary": second(p.Canary(p.Context(), p.canary("v9", 10))),
		"drain":  second(p.Drain(p.Context(), DrainOptions{Build: "v9"})),
	} {
		if !errors.As(err, &build) {
			p.Errorf("%s: error %v, want a NoBuildError", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func whatABuildSaysOfItself(p *port) {
	p.start("v1")
	for range 2 { // again changes nothing
		if err := worker.Publish(p.Context(), p.Client, p.Deployment, "v1", 1); err != nil {
			p.Fatal(err)
		}
	}
	d, err := p.Describe(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	own := worker.OwnTable()
	own.Serial = 1
	if t := d.Builds[0].Table; t == nil || !cmp.Equal(*t, own) {
		p.Errorf("the build says %+v, want %+v", t, own)
	}
	if !d.Builds[0].Is(own.Binary) {
		p.Error("the build is not known to be this program")
	}
}

func theBuildsAreCompared(p *port) {
	p.start("v1")
	p.promote("v1")
	p.talk("cmp-a", "helper", "hello", 1)
	p.talk("cmp-a", "helper", "look here", 2)
	p.ask("cmp-b", "helper", "note this", 1)
	p.start("v2")
	p.promote("v2")
	p.talk("cmp-c", "helper", "hello", 1)
	var s *Status
	p.until("the index has it all", func() bool {
		var err error
		if s, err = p.Status(p.Context(), StatusOptions{After: time.Now().Add(-time.Hour), Sample: 10}); err != nil {
			p.Fatal(err)
		}
		return len(s.Rows) == 2 && s.Rows[0].Ended != nil && s.Rows[0].Open.Sessions == 1 && s.Rows[1].Open.Sessions == 2
	})
	if s.Current != "v2" || s.Builds[0].Standing != Current || s.Builds[1].Standing != Draining || s.Builds[1].Since.IsZero() {
		p.Errorf("builds %+v", s.Builds)
	}
	now, old := s.Rows[0], s.Rows[1]
	if old.Open.Turns != 1 || old.Open.Held != 1 || old.Open.Waiting != 1 || now.Open.Turns != 0 || now.Open.Held != 0 {
		p.Errorf("open runs: %+v and %+v", old.Open, now.Open)
	}
	if e := old.Ended; e == nil || e.Turns != 2 || e.Statuses[agent.StatusDone] != 2 || e.Read != 2 || e.Steps != 3 || e.Lost != 0 {
		p.Errorf("ended on v1: %+v", e)
	}
	if e := now.Ended; e.Turns != 1 || e.Steps != 1 {
		p.Errorf("ended on v2: %+v", e)
	}
	if cost, ok := now.Ended.Cost(); !ok || cost == 0 {
		p.Errorf("a turn on v2 cost %d, %v", cost, ok)
	}
	if t := old.Troubles; t == nil || t.Looked != 3 || len(t.Stuck) != 0 {
		p.Errorf("troubles of v1: %+v", t)
	}
	s, err := p.Status(p.Context(), StatusOptions{After: time.Now().Add(-time.Hour), Sample: 1})
	if err != nil {
		p.Fatal(err)
	}
	if e := s.Rows[1].Ended; e.Turns != 2 || e.Sampled != 1 || s.Rows[1].Troubles.Looked != 1 {
		p.Errorf("with a sample of one: %+v, %+v", e, s.Rows[1].Troubles)
	}
}

// aRunThatCannotBeReplayed is one that the build which took over fails on; its index says that it is on the one before.
func aRunThatCannotBeReplayed(p *port) {
	p.start("v1")
	p.promote("v1")
	p.talk("odd-a", "helper", "hello", 1)
	p.startOdd("v2")
	p.promote("v2")
	if err := p.Client.SignalWorkflow(p.Context(), "odd-a", "", agent.SignalExtend, agent.Extend{Steps: 1}); err != nil {
		p.Fatal(err)
	}
	var s *Status
	p.until("the session fails", func() bool {
		var err error
		if s, err = p.Status(p.Context(), StatusOptions{After: time.Now().Add(-time.Hour), Sample: 10}); err != nil {
			p.Fatal(err)
		}
		return s.Rows[0].Troubles.Replays() == 1 && s.Rows[0].Troubles.Stuck[0].Attempt > 1
	})
	found := s.Rows[0].Troubles.Stuck[0]
	if s.Rows[0].Build != "v2" || found.Workflow != "odd-a" || !strings.Contains(found.Why, "TMPRL1100") || found.Since.IsZero() {
		p.Errorf("%+v of build %s", found, s.Rows[0].Build)
	}
	if n := s.Rows[1].Troubles.Replays(); n != 0 {
		p.Errorf("%d replay failures of the build before", n)
	}
}

// A server without worker deployments says so in another way than one that has none of the name.
func TestANamespaceWithoutDeployments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	server := startServer(t, "system.enableDeploymentVersions=false")
	c, err := client.Dial(client.Options{HostPort: server.Address(), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_, err = Fleet{Client: c, Namespace: client.DefaultNamespace, Deployment: "holdfast"}.Describe(t.Context())
	if !errors.Is(err, ErrNoDeployments) {
		t.Errorf("error %v, want ErrNoDeployments", err)
	}
}
