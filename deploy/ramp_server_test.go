package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func aRampComesAndGoes(p *port) {
	p.start("v1")
	p.promote("v1")
	p.start("v2")
	for _, step := range []struct {
		build           string
		percent, before float32
		ramping         string
	}{
		{"v2", 10, 0, "v2"},
		{"v2", 10, 10, "v2"}, // again
		{"v2", 50, 10, "v2"},
		{"v2", 0, 50, ""},
		{"v2", 0, 0, ""}, // again
	} {
		r, err := p.Ramp(p.Context(), step.build, step.percent, false)
		if err != nil {
			p.Fatalf("%+v: %v", step, err)
		}
		d, err := p.Describe(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if r.Before != step.before || d.Ramping != step.ramping || d.Percent != step.percent {
			p.Errorf("%+v: %+v, and the server has %q at %v", step, r, d.Ramping, d.Percent)
		}
	}
	if _, err := p.Ramp(p.Context(), "v1", 10, false); err == nil || !strings.Contains(err.Error(), "current") {
		p.Errorf("the current build ramps: %v", err)
	}
}

// resumedSessionsCrossFirst follows a canary up, down and away.
func resumedSessionsCrossFirst(p *port) {
	p.start("v1")
	p.promote("v1")
	var all []string
	for i := range 8 {
		id := fmt.Sprintf("res-%d", i)
		p.talk(id, []string{"helper", "careful"}[i%2], "hello", 1)
		all = append(all, id)
	}
	p.talk("res-fixed", "fixed", "hello", 1)
	p.start("v2")
	var other *OtherBuildError
	stranger := p.canary("v2", 50)
	stranger.Binary = "another"
	if _, err := p.Canary(p.Context(), stranger); !errors.As(err, &other) {
		p.Fatalf("error %v: the build is not that program", err)
	}
	p.publish("v2")
	of := func(percent float64) (in []string) {
		for _, id := range all {
			if share(id) < percent {
				in = append(in, id)
			}
		}
		return in
	}
	half, most := of(50), of(80)
	if len(half) == 0 || len(half) == len(most) || len(most) == len(all) {
		p.Fatalf("these names are badly chosen: %v of %v of %v", half, most, all)
	}
	var fixed int
	for _, step := range []struct {
		percent                float64
		already, crossed, back int
		held                   []string
	}{
		{50, 0, len(half), 0, half},
		{50, len(half), 0, 0, half},
		{80, len(half), len(most) - len(half), 0, most},
		{50, len(half), 0, len(most) - len(half), half},
	} {
		if fixed = 0; share("res-fixed") < step.percent {
			fixed = 1
		}
		want := &Canary{
			Deployment: p.Deployment, Build: "v2", Current: "v1", Percent: step.percent, Sessions: len(all),
			Already: step.already, Crossed: step.crossed, Back: step.back,
		}
		got, err := p.Canary(p.Context(), p.canary("v2", step.percent))
		if err != nil {
			p.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Canary{}, "Left"), cmpopts.IgnoreUnexported(Canary{})); diff != "" || len(got.Left) != fixed {
			p.Errorf("%+v: %s, left %+v", step, diff, got.Left)
		}
		p.onlyHeld("v2", step.held)
	}
	id := half[0]
	p.talk(id, "helper", "look again", 2)
	p.stands(id+":turn-2", "v2", true)
	p.talk(of(100)[slices.IndexFunc(all, func(s string) bool { return !slices.Contains(half, s) })], "helper", "look again", 2)
	got, err := p.Canary(p.Context(), CanaryOptions{Build: "v2", Upgrade: p.upgrades()})
	if err != nil || got.Back != len(half) {
		p.Fatalf("taken back: %+v, %v", got, err)
	}
	p.onlyHeld("v2", nil)
	p.talk(id, "helper", "look once more", 3)
	p.stands(id+":turn-3", "v1", true)
	p.stands(id, "v1", false)
}

// onlyHeld waits until the index says that these sessions and no others are held on a build.
func (p *port) onlyHeld(build string, want []string) {
	p.Helper()
	var got []string
	p.until(fmt.Sprintf("%v are held on %s", want, build), func() bool {
		runs, err := p.some(p.Context(), and(isOpen, isSession, p.on(build), isHeld), 100)
		got = ids(runs)
		slices.Sort(got)
		return err == nil && slices.Equal(got, want)
	})
}

func whatWouldNotReplayStays(p *port) {
	p.startOdd("v1")
	p.promote("v1")
	for i := range 3 {
		p.sendOdd(fmt.Sprintf("stay-%d", i))
	}
	p.start("v2")
	p.publish("v2")
	c, err := p.Canary(p.Context(), p.canary("v2", 100))
	if err != nil {
		p.Fatal(err)
	}
	if c.Crossed != 0 || len(c.Left) != 3 {
		p.Fatalf("%+v", c)
	}
	for _, l := range c.Left {
		if l.Kind != LeftReplay || l.Err() == nil {
			p.Errorf("left: %+v", l)
		}
	}
	p.onlyHeld("v2", nil)
}
