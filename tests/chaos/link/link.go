//go:build unix

package link

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// A kind is what a link does with what comes.
type kind int

const (
	pass kind = iota
	slow
	halfOpen
	deaf
	cut
)

// A mode is a kind, and the figures of a slow one.
type mode struct {
	kind  kind
	delay time.Duration // before each piece
	rate  int           // bytes in a second; 0 is as fast as it goes
}

// A Link is a proxy for one address. It is safe for concurrent use.
type Link struct {
	target   string
	listener *net.TCPListener
	running  sync.WaitGroup

	mu      sync.Mutex
	mode    mode
	changed chan struct{} // closed when the mode is another
	pairs   map[*pair]struct{}
	hits    int
	closed  bool
}

// New returns a link to a target, such as "127.0.0.1:7233", that listens on a free port of 127.0.0.1. The target is
// dialled anew for each connection, so that it need not be there yet, or all the time; a client whose connection it
// refuses is reset.
func New(target string) (*Link, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("link to %q: %w; want host:port", target, err)
	}
	listener, err := listen()
	if err != nil {
		return nil, fmt.Errorf("link to %q: %w", target, err)
	}
	l := &Link{target: target, listener: listener, changed: make(chan struct{}), pairs: map[*pair]struct{}{}}
	l.running.Go(l.accept)
	return l, nil
}

// Addr returns where the link listens, as host:port. It is the same for the link's life.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// URL returns the address as that of an HTTP server.
func (l *Link) URL() string { return "http://" + l.Addr() }

// Pass lets everything through at once, as a new link does.
func (l *Link) Pass() { l.set(mode{kind: pass}) }

// Slow holds each piece back for delay, in both directions, and lets no more than rate bytes through in a second, in
// each; a rate of 0 does not bound them. A piece is what arrived together, 32 KiB at most.
func (l *Link) Slow(delay time.Duration, rate int) { l.set(mode{slow, delay, rate}) }

// HalfOpen is a connection whose other end is not there any more, and nobody says so: connections are accepted, and
// what is sent, in either direction, is never heard of again. Nor is that one end has closed.
func (l *Link) HalfOpen() { l.set(mode{kind: halfOpen}) }

// Deaf lets requests through and swallows what is answered, also that the target has closed the connection.
func (l *Link) Deaf() { l.set(mode{kind: deaf}) }

// Cut resets what is open and refuses what comes, until another mode.
func (l *Link) Cut() { l.set(mode{kind: cut}) }

// Hits is how often a mode has done harm since the link was made: pieces and ends that were held back or swallowed,
// connections that were reset. By it a harness knows that its fault has struck; a connection that was refused is not
// counted, since the link does not see it.
func (l *Link) Hits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits
}

// Close resets what is open, gives the port back and waits until nothing of the link runs.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	for p := range l.pairs {
		p.reset()
	}
	close(l.changed)
	err := l.listener.Close()
	l.mu.Unlock()
	l.running.Wait()
	return err
}

// set makes m the mode: it resets what cannot go on under it, and shuts the door or opens it.
func (l *Link) set(m mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	was := l.mode.kind
	l.mode = m
	close(l.changed)
	l.changed = make(chan struct{})
	for p := range l.pairs {
		if m.kind == cut && !p.over {
			l.hits++
		}
		if m.kind == cut || p.torn && m.kind != was {
			p.reset()
		}
	}
	switch {
	case m.kind == cut:
		shut(l.listener)
	case was == cut:
		open(l.listener)
	}
}
