package demo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A printer prints whole lines from any goroutine, each event with the seconds since the story began.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	bold  func(string) string
	start time.Time
}

func newPrinter(out io.Writer, bold func(string) string) *printer {
	if bold == nil {
		bold = func(s string) string { return s }
	}
	return &printer{out: out, bold: bold, start: time.Now()}
}

// begin starts the clock of the timeline.
func (p *printer) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = time.Now()
	fmt.Fprintln(p.out)
}

func (p *printer) plain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// part says what a part is and where.
func (p *printer) part(name, format string, args ...any) {
	p.plain("  %-17s %s", name, fmt.Sprintf(format, args...))
}

// event adds a line to the timeline.
func (p *printer) event(who, format string, args ...any) {
	p.line(who, fmt.Sprintf(format, args...), func(s string) string { return s })
}

// shout is an event that nobody should miss.
func (p *printer) shout(who, format string, args ...any) {
	p.line(who, fmt.Sprintf(format, args...), p.bold)
}

func (p *printer) line(who, what string, style func(string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Since(p.start).Seconds()
	fmt.Fprintln(p.out, style(fmt.Sprintf("%6.1f s  %-9s %s", at, who, what)))
}
