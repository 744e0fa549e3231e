//go:build unix

package link

import "time"

// silent says whether the mode swallows one of the directions.
func (m mode) silent(answers bool) bool {
	return m.kind == halfOpen || m.kind == deaf && answers
}

// takes is how long the mode's rate makes some bytes take.
func (m mode) takes(bytes int) time.Duration {
	if m.rate <= 0 {
		return 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(m.rate)
}

// swallows says whether what a pair has for one of its directions goes nowhere, and notes that the pair is torn.
func (l *Link) swallows(p *pair, answers bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mode.silent(answers) {
		return false
	}
	l.hits++
	p.torn = true
	return true
}

// part returns how much of a piece goes at once: a twentieth of what may go in a second, so that the flow is even.
func (l *Link) part(piece []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode.rate <= 0 {
		return len(piece)
	}
	return min(len(piece), max(1, l.mode.rate/20))
}

// hold waits as long as the mode wants it, whichever it is by then.
func (l *Link) hold(wanted func(mode) time.Duration) {
	for counted := false; ; counted = true {
		l.mu.Lock()
		wait, changed := wanted(l.mode), l.changed
		if wait > 0 && !counted && !l.closed {
			l.hits++
		}
		closed := l.closed
		l.mu.Unlock()
		if wait <= 0 || closed {
			return
		}
		select {
		case <-time.After(wait):
			return
		case <-changed:
		}
	}
}
