package starter

import (
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
)

// A drainPrinter tells what happens while a build is drained: what holds it on stdout, what changes on stderr; or all of
// it on stdout as JSON.
type drainPrinter struct {
	app   *App
	build string
	flag  string // see deployOptions.flag
	named int    // runs
}

// A drainLine is one such thing with -o json.
type drainLine struct {
	Type string `json:"type"` // held, ended, moved, left or trouble
	*deploy.Held
	Waits   string `json:"waits,omitempty"`   // of held: what the run waits for, in words
	Command string `json:"command,omitempty"` // of held: that answers it
	Kind    string `json:"kind,omitempty"`    // of left
	Why     string `json:"why,omitempty"`     // of left and trouble
}

// shownHeld is how many runs are named with what to do about them.
const shownHeld = 20

func (p *drainPrinter) event(e deploy.DrainEvent) {
	switch {
	case e.Began != nil:
		p.began(e.Began)
	case e.Held != nil:
		p.held(*e.Held)
	case e.Ended != nil:
		p.tell(drainLine{Type: "ended", Held: e.Ended}, line(e.Ended.Workflow, 120)+" needs it no more")
	case e.Moved != nil:
		p.tell(drainLine{Type: "moved", Held: e.Moved}, line(e.Moved.Workflow, 120)+" moves to the current build")
	case e.Left != nil:
		l := e.Left
		if p.app.json() {
			p.tell(drainLine{Type: "left", Held: &deploy.Held{Workflow: l.Workflow, Run: l.Run, Agent: l.Agent}, Kind: l.Kind, Why: l.Why}, "")
			return
		}
		p.app.printOneLeft(*l)
	case e.Trouble != nil:
		p.tell(drainLine{Type: "trouble", Why: e.Trouble.Error()}, "no answer, asking again: "+line(e.Trouble.Error(), lineLimit))
	}
}

func (p *drainPrinter) tell(l drainLine, text string) {
	if p.app.json() {
		_ = p.app.printJSON(l) // a reader that went away ends the program by itself
		return
	}
	p.app.note("%s", text)
}

func (p *drainPrinter) began(d *deploy.Drain) {
	if !p.app.json() && len(d.Held) > 0 {
		fmt.Fprintf(p.app.Out, "%s of build %s; workers that poll: %d\n", need(int64(len(d.Held))), line(p.build, 64), d.Workers)
	}
	for _, h := range d.Held {
		p.held(h)
	}
	if more := p.named - shownHeld; more > 0 && !p.app.json() {
		fmt.Fprintf(p.app.Out, "  and %d more; -o json lists them\n", more)
	}
}

func (p *drainPrinter) held(h deploy.Held) {
	what, command := waits(h, word(p.build)+p.flag, time.Now())
	if p.app.json() {
		p.tell(drainLine{Type: "held", Held: &h, Waits: what, Command: command}, "")
		return
	}
	if p.named++; p.named > shownHeld {
		return
	}
	who := ""
	if h.Agent != "" {
		who = "agent " + line(h.Agent, 64) + "  "
	}
	fmt.Fprintf(p.app.Out, "  %s  %s%s\n", line(h.Workflow, 120), who, what)
	if command != "" {
		fmt.Fprintf(p.app.Out, "      %s\n", command)
	}
}

// waits says what a run waits for, as far as its search attributes tell, and the command that answers it. The build
// is written as a command takes it.
func waits(h deploy.Held, build string, now time.Time) (what, command string) {
	session := line(h.Session, 64)
	switch {
	case h.Type == agent.WorkflowSession:
		return "a session that was put on the build", "holdfast deploy ramp " + build + " --percent 0 --resumed"
	case h.Session == "":
		return "a workflow of type " + line(h.Type, 64), "temporal workflow describe -w '" + line(h.Workflow, 120) + "'"
	case h.Approvals > 0:
		what = "waits for " + count(int(h.Approvals), "approval")
		if !h.Expires.IsZero() {
			what += ", the first expires " + expiry(h.Expires, now)
		}
		return what, "holdfast approvals --session " + session
	case h.Attention == agent.AttentionBudget:
		return "waits for more budget", extendCommand(session, "")
	case h.Attention == agent.AttentionUncertain || h.Uncertain > 0:
		return "waits for a word on an effect whose outcome nobody knows", "holdfast effects " + session
	case h.Attention == agent.AttentionCompensation:
		return "waits for a word on a compensation", "holdfast effects " + session
	case h.Status == string(agent.StatusWaiting):
		return "waits for a person", "holdfast show " + session
	}
	return "works", ""
}

func (p *drainPrinter) drained(d *deploy.Drain) {
	moved := ""
	if d.Moved > 0 {
		moved = fmt.Sprintf(" (%s moved)", count(d.Moved, "run"))
	}
	fmt.Fprintf(p.app.Out, "build %s is drained: no open run needs it%s\n", line(d.Build, 64), moved)
	if d.Workers > 0 {
		p.app.note("its workers can be stopped; those that poll: %d", d.Workers)
	}
}
