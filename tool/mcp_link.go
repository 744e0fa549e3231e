package tool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-run/holdfast/internal/secret"
)

// An mcpLink holds the one session with a server and makes a new one when it is needed: never by itself,
// and after a growing pause when the last ones failed.
type mcpLink struct {
	cfg  MCPConfig
	mask *secret.Mask
	open func(context.Context) (*mcpSession, error)
	base time.Duration // the first pause
	ctx  context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	current  *mcpSession
	previous *mcpSession   // may still be ending
	starting chan struct{} // closed when the start that is under way is over; nil if none is
	failures int           // sessions in a row that gave no answer
	next     time.Time     // no start before
	last     error         // why the latest start failed or session ended
}

const (
	basePause = time.Second
	maxPause  = time.Minute
)

var errMCPClosed = errors.New("the connection to the server is closed because the worker stops or reads its configuration anew")

func newMCPLink(cfg MCPConfig, mask *secret.Mask) *mcpLink {
	l := &mcpLink{cfg: cfg, mask: mask, base: basePause}
	l.open = func(ctx context.Context) (*mcpSession, error) { return openMCP(ctx, cfg) }
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// session returns the live session, or starts one. Who waits gives up with ctx; the start goes on for the
// others.
func (l *mcpLink) session(ctx context.Context) (*mcpSession, error) {
	for {
		s, wait, err := l.live() //nolint:contextcheck // a start is for all who wait, not for one call
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, NotSent(fmt.Errorf("mcp server %q is still starting: %w", l.cfg.Name, ctx.Err()))
		}
	}
}

// first is session for the first time: there is no talk of another start in its error.
func (l *mcpLink) first(ctx context.Context) (*mcpSession, error) {
	s, err := l.session(ctx)
	if err == nil {
		return s, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		return nil, l.last
	}
	return nil, err
}

func (l *mcpLink) live() (*mcpSession, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, nil, NotSent(l.about(errMCPClosed))
	}
	if l.current != nil && l.current.over() {
		l.lost(l.current)
	}
	if l.current != nil {
		return l.current, nil, nil
	}
	if l.starting != nil {
		return nil, l.starting, nil
	}
	if pause := time.Until(l.next); pause > 0 {
		return nil, nil, mark(OutcomeNotSent, fmt.Errorf("%w (it will be started anew in %s at the earliest)",
			l.last, pause.Round(100*time.Millisecond)), pause)
	}
	l.starting = make(chan struct{})
	go l.start(l.starting)
	return nil, l.starting, nil
}

func (l *mcpLink) start(done chan struct{}) {
	l.mu.Lock()
	previous := l.previous
	l.mu.Unlock()
	if previous != nil && l.cfg.URL == "" {
		previous.close() // two of a server could be in each other's way
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.cfg.ListTimeout)
	defer cancel()
	s, err := l.open(ctx)
	if err == nil {
		if err = s.list(ctx); err != nil {
			err = s.explain(err)
			s.close()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(done)
	l.starting = nil
	switch {
	case err != nil:
		l.failed(err)
		l.next = time.Now().Add(max(l.base, time.Until(l.next))) // who waited is told instead of starting it again
	case l.ctx.Err() != nil:
		s.close()
	default:
		l.current = s
	}
}

// failed counts a session that gave no answer. After the first one there is no pause: a server that died
// once is wanted back.
func (l *mcpLink) failed(err error) {
	l.last = l.about(err)
	l.failures++
	if l.failures > 1 {
		l.next = time.Now().Add(min(l.base<<min(l.failures-2, 10), maxPause))
	}
}

// lost forgets a session that is over or broken. l.mu is held.
func (l *mcpLink) lost(s *mcpSession) {
	if l.current != s {
		return
	}
	l.current = nil
	if s.answered.Load() {
		l.failures = 0
	}
	l.failed(s.explain(errors.New("its connection ended")))
	l.previous = s
	go s.close()
}

func (l *mcpLink) drop(s *mcpSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost(s)
}

// about names the server and masks what it may have said.
func (l *mcpLink) about(err error) error {
	return l.mask.Error(fmt.Errorf("mcp server %q: %w", l.cfg.Name, err))
}

func (l *mcpLink) close() {
	l.end()
	l.mu.Lock()
	sessions, starting := []*mcpSession{l.previous, l.current}, l.starting
	l.mu.Unlock()
	if starting != nil {
		<-starting
	}
	for _, s := range sessions {
		if s != nil {
			s.close()
		}
	}
}
