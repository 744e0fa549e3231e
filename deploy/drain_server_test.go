package deploy

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// drainFor drains until so many looks have been told of by nothing happening, that is for so many times a second.
func (p *port) drainFor(f Fleet, o DrainOptions, seconds int) (*Drain, error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	o.Every = 200 * time.Millisecond
	return f.Drain(ctx, o)
}

func aBuildIsDrainedWhenTurnsEnd(p *port) {
	p.start("v1")
	p.promote("v1")
	p.talk("end-a", "helper", "hello", 1)
	p.ask("end-b", "helper", "note this", 1)
	p.start("v2")
	p.promote("v2")
	d, err := p.drainFor(p.Fleet, DrainOptions{Build: "v1"}, 4)
	if err != nil {
		p.Fatal(err)
	}
	if d.Drained || len(d.Held) != 1 || d.Workers != 1 || d.Current != "v2" {
		p.Fatalf("%+v", d)
	}
	h := d.Held[0]
	if h.Workflow != "end-b:turn-1" || h.Session != "end-b" || h.Turn != 1 || h.Agent != "helper" || h.Status != string(agent.StatusWaiting) ||
		h.Attention != agent.AttentionApproval || h.Approvals != 1 || h.Expires.IsZero() || h.Started.IsZero() {
		p.Errorf("held: %+v", h)
	}
	var began, ended int
	began, ended = 0, 0
	d, err = p.drainFor(p.Fleet, DrainOptions{Build: "v1", Each: func(e DrainEvent) {
		switch {
		case e.Began != nil:
			began++
			p.approve("end-b:turn-1")
		case e.Ended != nil:
			ended++
		}
	}}, int(patience.Seconds()))
	if err != nil || !d.Drained || len(d.Held) != 0 || began != 1 || ended != 1 {
		p.Errorf("%+v, %v; began %d, ended %d", d, err, began, ended)
	}
}

// heldTurnsAreMoved moves what may be moved off a build whose worker is gone, and they end on the next.
func heldTurnsAreMoved(p *port) {
	p.start("v1")
	p.promote("v1")
	p.ask("mv-follow", "helper", "note this", 1)
	p.ask("mv-ask", "careful", "note that", 1)
	p.ask("mv-pin", "fixed", "note it", 1)
	p.start("v2")
	p.promote("v2")
	mover, stranger := p.mover(), p.mover()
	stranger.Binary = "another"
	var not *NotCurrentError
	if _, err := p.drainFor(p.Fleet, DrainOptions{Build: "v1", Move: stranger}, 20); !errors.As(err, &not) {
		p.Errorf("error %v: the current build is not that program", err)
	}
	p.publish("v2")
	p.stop("v1")
	d, err := p.drainFor(p.Fleet, DrainOptions{Build: "v1", Move: mover}, 10)
	if err != nil {
		p.Fatal(err)
	}
	if d.Drained || d.Moved != 2 || len(d.Held) != 1 || d.Held[0].Session != "mv-pin" || len(d.Left) != 1 || d.Left[0].Kind != LeftPinned {
		p.Fatalf("%+v", d)
	}
	for _, turn := range []string{"mv-follow:turn-1", "mv-ask:turn-1"} {
		p.stands(turn, "v1", false) // until its next task
		p.approve(turn)
		p.until(turn+" ends", func() bool { return p.indexed(turn, "ExecutionStatus = 'Completed'") })
		p.stands(turn, "v2", false)
	}
}

func aBuildThatTakesWork(p *port) {
	p.start("v1")
	p.promote("v1")
	p.start("v2")
	var busy *BusyBuildError
	if _, err := p.Drain(p.Context(), DrainOptions{Build: "v1"}); !errors.As(err, &busy) || busy.Standing != Current {
		p.Errorf("the current build: %v", err)
	}
	if _, err := p.Ramp(p.Context(), "v2", 5, false); err != nil {
		p.Fatal(err)
	}
	if _, err := p.Drain(p.Context(), DrainOptions{Build: "v2"}); !errors.As(err, &busy) || busy.Standing != Ramping {
		p.Errorf("the ramping build: %v", err)
	}
	if _, err := p.Ramp(p.Context(), "v2", 0, false); err != nil {
		p.Fatal(err)
	}
	// One that is made current while somebody waits for its end.
	p.ask("busy-a", "helper", "note this", 1)
	p.promote("v2")
	_, err := p.drainFor(p.Fleet, DrainOptions{Build: "v1", Each: func(e DrainEvent) {
		if e.Began != nil {
			p.promote("v1")
		}
	}}, int(patience.Seconds()))
	if !errors.As(err, &busy) || busy.Standing != Current {
		p.Errorf("a build that became current: %v", err)
	}
}

// aSessionThatACanaryLeftBehind is held on a build that was given up.
func aSessionThatACanaryLeftBehind(p *port) {
	p.start("v1")
	p.promote("v1")
	p.talk("left-a", "helper", "hello", 1)
	p.start("v2")
	p.publish("v2")
	if _, err := p.Canary(p.Context(), p.canary("v2", 100)); err != nil {
		p.Fatal(err)
	}
	p.onlyHeld("v2", []string{"left-a"})
	p.publish("v1")
	d, err := p.drainFor(p.Fleet, DrainOptions{
		Build: "v2", Move: p.mover(),
	}, int(patience.Seconds()))
	if err != nil || !d.Drained || d.Moved != 1 {
		p.Fatalf("%+v, %v", d, err)
	}
	p.talk("left-a", "helper", "look here", 2)
	p.stands("left-a:turn-2", "v1", true)
}
