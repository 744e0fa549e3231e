package activities

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

type booking struct {
	key  string
	at   time.Time
	life *life
}

// A life is one attempt as the server sees it.
type life struct {
	*storm
	name   string
	ctx    context.Context //nolint:containedctx // the attempt's
	end    context.CancelCauseFunc
	pulse  *pulse
	once   sync.Once
	lost   chan struct{} // closed when the server has given it up
	dead   bool
	stops  chan struct{}
	stop   sync.Once
	thaws  time.Time
	heals  time.Time
	silent bool // no word of it arrives any more
	said   Progress
}

type lifeKey struct{}

func lifeOf(ctx context.Context) *life {
	l, _ := ctx.Value(lifeKey{}).(*life)
	return l
}

func (l *life) giveUp() { l.once.Do(func() { close(l.lost) }) }

const beats = 10 * time.Second // the heartbeat timeout

// moment is a place at which an attempt may be struck.
func (l *life) moment(what string) {
	if l == nil {
		return
	}
	if l.is(func() bool { return l.dead }) {
		runtime.Goexit()
	}
	if until := l.thaws; time.Now().Before(until) {
		time.Sleep(time.Until(until))
	}
	if !l.strikes(12) {
		return
	}
	switch l.pick(0, 1, 2, 3, 4) {
	case 0:
		l.say("%s dies at %s", l.name, what)
		l.set(func() { l.dead, l.silent = true, true })
		time.AfterFunc(beats, l.giveUp)
		runtime.Goexit()
	case 1, 2:
		d := l.pick(5*time.Second, 12*time.Second, 25*time.Second, 45*time.Second, 2*time.Minute, 10*time.Minute, 3*time.Hour)
		l.say("%s freezes for %s at %s", l.name, d, what)
		if d > beats {
			l.set(func() { l.silent = true })
			time.AfterFunc(beats, l.giveUp)
		}
		l.set(func() { l.thaws = time.Now().Add(d) })
		time.Sleep(d)
		if d > 2*beats {
			l.pulse.mu.Lock()
			l.pulse.gone = true
			l.pulse.mu.Unlock()
		}
		if d > beats {
			time.AfterFunc(l.span(3*time.Second), func() { l.end(errGone) })
		}
	case 3:
		d := beats + l.span(3*time.Minute)
		l.say("%s is cut off for %s at %s", l.name, d, what)
		l.set(func() { l.silent, l.heals = true, time.Now().Add(d) })
		time.AfterFunc(beats, l.giveUp)
		time.AfterFunc(d, func() { l.end(errGone) })
	case 4:
		l.say("the worker of %s stops at %s", l.name, what)
		l.stop.Do(func() { close(l.stops) })
		time.AfterFunc(beats, func() { l.end(errShutdown) })
	}
}

func (s *storm) fault(ctx context.Context, op, name string) (x fault) {
	l := lifeOf(ctx)
	name = name[strings.IndexByte(name, '/')+1:]
	l.moment("before " + op + " " + name)
	x.then = func() { l.moment("after " + op + " " + name) }
	if !s.strikes(10) {
		return x
	}
	switch s.pick(0, 1, 2, 3, 4) {
	case 4:
		if x.torn, x.unsaid = true, s.chance(50); op == "create" && !x.unsaid && !strings.HasPrefix(name, "results/") {
			x.torn = false // a store that says that it has kept what it has not is no store
		}
		s.set(func() { s.torn = true })
	case 0:
		x.lost = true
	case 1:
		x.unsaid = true
	case 2:
		x.before = s.span(20 * time.Second)
	case 3:
		x.after = s.span(20 * time.Second)
	}
	s.say("the store has trouble with %s %s: %+v", op, name, x)
	return x
}

// pay is the destination.
func (s *storm) pay(ctx context.Context, c tool.Call) (tool.Result, error) {
	l := lifeOf(ctx)
	l.moment("sending")
	if s.chance(30) { // it takes a while to get a connection
		d := s.span(s.timeout())
		s.say("%s waits %s for a connection", l.name, d)
		if sleep(ctx, d) != nil {
			return tool.Result{}, tool.NotSent(errors.New("no connection in time"))
		}
	}
	if ctx.Err() != nil {
		return tool.Result{}, tool.NotSent(ctx.Err())
	}
	switch {
	case s.strikes(10):
		s.say("%s sends nothing", l.name)
		return tool.Result{}, tool.NotSent(errors.New("connection refused"))
	case s.strikes(5):
		s.say("%s is told no", l.name)
		return tool.Result{}, tool.Failed(errors.New("no"))
	case s.strikes(10):
		s.say("%s: the request is lost", l.name)
		return tool.Result{}, errors.New("connection reset")
	case s.strikes(10):
		d := s.span(arrival)
		s.say("%s: the request arrives in %s, after the connection broke", l.name, d)
		time.AfterFunc(d, func() { s.book(c.Key, l) })
		return tool.Result{}, errors.New("connection reset")
	}
	s.book(c.Key, l)
	l.moment("having been sent")
	switch {
	case s.strikes(15):
		s.say("%s: the answer is lost", l.name)
		return tool.Result{}, errors.New("connection reset")
	case s.strikes(10):
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Data: []byte("paid")}, nil
}

func (s *storm) timeout() time.Duration {
	t, _ := s.snap.Tools.Lookup("pay")
	return t.Spec().Timeout
}

func (s *storm) book(key string, l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		if s.kind.honours && b.key == key && time.Since(b.at) < s.kind.window {
			return
		}
	}
	s.trace = append(s.trace, fmt.Sprintf("%8.2fs %s: BOOKED under %s", time.Since(s.began).Seconds(), l.name, key))
	s.books = append(s.books, booking{key, time.Now(), l})
}

func (s *storm) booked(key string, until time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		if b.key == key && !b.at.After(until) {
			n++
		}
	}
	return n
}

func (s *storm) find(ctx context.Context, c tool.Call) (tool.Finding, tool.Result, error) {
	l := lifeOf(ctx)
	l.moment("asking")
	if s.strikes(20) {
		return tool.Unknown, tool.Result{}, errors.New("status 503")
	}
	if s.chance(20) {
		time.Sleep(s.span(4 * time.Second))
	}
	seen := time.Now().Add(-s.span(lag))
	if s.booked(c.Key, seen) > 0 {
		return tool.Found, tool.Result{Data: []byte("found")}, nil
	}
	return tool.Absent, tool.Result{}, nil
}

// SignalWorkflow remembers who is told.
type stormSignals struct {
	signals
	s *storm
}

// RecordActivityHeartbeat is what the server says to an attempt that asks whether it counts.
func (c *stormSignals) RecordActivityHeartbeat(ctx context.Context, _ []byte, _ ...any) error {
	l := lifeOf(ctx)
	l.moment("asking the server")
	switch {
	case l.is(func() bool { return time.Now().Before(l.heals) }):
		return errors.New("unavailable")
	case l.is(func() bool { return l.silent }):
		return errGone
	}
	return nil
}

func (c *stormSignals) SignalWorkflow(ctx context.Context, workflow, run, name string, arg any) error {
	l := lifeOf(ctx)
	l.moment("telling")
	if l.is(func() bool { return time.Now().Before(l.heals) }) {
		c.s.set(func() { c.s.deaf = true })
		return errors.New("unavailable")
	}
	x, _ := arg.(agent.Settlement)
	c.s.mu.Lock()
	c.s.late = append(c.s.late, x.Key)
	c.s.mu.Unlock()
	return nil
}
