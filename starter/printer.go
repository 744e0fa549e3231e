package starter

import (
	"fmt"
	"sync"
)

// A printer shows the events of a turn: lines on stderr, or JSON on stdout.
type printer struct {
	app     *App
	session string
	lines   bool // lines are the result and belong on stdout
	mu      sync.Mutex
}

func (p *printer) notice(text string) { p.event(event{Type: evNotice, Text: text}) }

// event prints one event. It is safe for concurrent use.
func (p *printer) event(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.app
	e.Session = p.session
	switch {
	case a.json():
		_ = a.printJSON(e) // a reader that went away ends the program by itself
	case e.Type == evNotice:
		a.note("%s %s", a.paint(a.Err, yellow, "note:"), e.Text)
	case p.lines:
		fmt.Fprintln(a.Out, p.line(e))
	case !a.quiet:
		fmt.Fprintln(a.Err, p.line(e))
	}
}

func (p *printer) line(e event) string {
	w := p.app.Err
	if p.lines {
		w = p.app.Out
	}
	text := e.Text // made visible where it was composed
	switch e.Type {
	case evTurnEnded, evTurnWaiting, evSessionEnded, evApprovalRequested:
		text = p.app.paint(w, bold, text)
	case evModelFailed, evToolFailed, evToolRefused, evWorkerLost, evWorkerStuck,
		evApprovalRefused, evApprovalVoid, evEffectUncertain, evEffectRefused, evEffectConflict, evUndoFailed, evBudget:
		text = p.app.paint(w, red, text)
	}
	return p.app.paint(w, dim, e.Time.Local().Format("15:04:05")) + "  " + text
}
