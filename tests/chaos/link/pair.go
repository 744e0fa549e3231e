//go:build unix

package link

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const maxPiece = 32 << 10 // bytes

// dialTime bounds the wait for a target that does not answer. It is on the same machine.
const dialTime = 5 * time.Second

// A pair is one connection of a client and the one to the target that belongs to it.
type pair struct {
	link   *Link
	client *net.TCPConn

	// The link's mutex guards these.
	target *net.TCPConn // nil until the target is dialled
	torn   bool         // something of it was swallowed: it cannot go on
	over   bool         // it was reset
}

// serve carries a connection until both directions are through.
func (p *pair) serve() {
	defer p.close()
	if p.link.swallows(p, false) {
		_, _ = io.Copy(io.Discard, p.client) // the target does not even hear that somebody came
		return
	}
	target, ok := p.dial()
	if !ok {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(p.client, target, false) })
	both.Go(func() { p.carry(target, p.client, true) })
	both.Wait()
}

// dial connects to the target, and says whether there is still somebody to do it for.
func (p *pair) dial() (*net.TCPConn, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", p.link.target)
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if err == nil {
		p.target, _ = conn.(*net.TCPConn)
	}
	if err != nil || p.over {
		p.reset()
		return nil, false
	}
	return p.target, true
}

// carry takes what comes from one end to the other, as the mode wants it.
func (p *pair) carry(from, to *net.TCPConn, answers bool) {
	buffer := make([]byte, maxPiece)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.hand(to, buffer[:n], answers) {
			return
		}
		if err != nil {
			p.end(to, err, answers)
			return
		}
	}
}

// hand passes a piece on, or swallows it, and says whether there may be another.
func (p *pair) hand(to *net.TCPConn, piece []byte, answers bool) bool {
	p.link.hold(func(m mode) time.Duration { return m.delay })
	for len(piece) > 0 {
		part := p.link.part(piece)
		p.link.hold(func(m mode) time.Duration { return m.takes(part) })
		if !p.link.swallows(p, answers) {
			if _, err := to.Write(piece[:part]); err != nil {
				return p.link.swallows(p, !answers) || p.broken()
			}
		}
		piece = piece[part:]
	}
	return true
}

// end tells the other end that there will be no more, unless that is swallowed too.
func (p *pair) end(to *net.TCPConn, err error, answers bool) {
	if p.link.swallows(p, answers) {
		return
	}
	if !errors.Is(err, io.EOF) || to.CloseWrite() != nil {
		p.broken()
	}
}

// broken resets both ends, as a connection is that has broken. It is false, as there is nothing more to come.
func (p *pair) broken() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	p.reset()
	return false
}

// reset ends both connections at once and without a goodbye. The link's mutex is held.
func (p *pair) reset() {
	p.over = true
	for _, conn := range []*net.TCPConn{p.client, p.target} {
		if conn != nil {
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
	}
}

// close forgets a pair of which nothing more is to come.
func (p *pair) close() {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	delete(p.link.pairs, p)
	_ = p.client.Close()
	if p.target != nil {
		_ = p.target.Close()
	}
}
