package starter

import (
	"fmt"
	"time"
)

const (
	progressOnTerminal = 100 * time.Millisecond
	progressElsewhere  = 10 * time.Second
)

// progress tells on stderr how far a work is: in one line of a terminal, or now and then in a line of its own. The
// second function takes the terminal's line away. Calls must not overlap.
func (a *App) progress(what string) (tell func(done, total int), wipe func()) {
	terminal := isTerminal(a.Err)
	every, last, shown := progressElsewhere, time.Now(), false
	if terminal {
		every = progressOnTerminal
	}
	tell = func(done, total int) {
		if a.quiet || time.Since(last) < every {
			return
		}
		last, shown = time.Now(), true
		if terminal {
			fmt.Fprintf(a.Err, "\r%s: %d of %d", what, done, total)
			return
		}
		a.note("%s: %d of %d", what, done, total)
	}
	return tell, func() {
		if terminal && shown {
			fmt.Fprint(a.Err, "\r\x1b[K")
		}
	}
}
