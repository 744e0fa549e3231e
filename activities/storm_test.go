package activities

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// A storm is a turn with one effect, and then another turn with the same action, over a store that fails, answers late
// and loses answers, a destination with books of its own, and a server that gives attempts up while they go on:
// killed, frozen, cut off, stopped or cancelled at every request that they make. The waits are on a fake clock.
type storm struct {
	*world
	kind   stormKind
	mu     sync.Mutex
	rnd    *rand.Rand
	limit  int // of troubles that are still to come
	books  []booking
	trace  []string
	began  time.Time
	lives  sync.WaitGroup
	lied   bool
	torn   bool
	deaf   bool      // somebody could not be told for a while
	denies bool      // today's policy
	doubt  time.Time // when the latest turn ended
	late   []string  // keys of signals
}

// A stormKind is a kind of destination, and the declaration that is true of it.
type stormKind struct {
	name    string
	class   agent.Class
	honours bool // keys, for the window
	asked   bool
	window  time.Duration
	undo    bool // the action is a compensation, which a person orders again
	atOnce  bool // the identical action comes while the first is under way
}

var stormKinds = []stormKind{
	{"honours keys", agent.ClassIdempotent, true, false, 24 * time.Hour, false, false},
	{"honours keys for a while", agent.ClassIdempotent, true, false, 3 * time.Minute, false, false},
	{"honours keys for a while and can be asked", agent.ClassIdempotent, true, true, 3 * time.Minute, false, false},
	{"can be asked", agent.ClassReconcilable, false, true, 0, false, false},
	{"can be asked, and must not be sent twice", agent.ClassOnce, false, true, 0, false, false},
	{"neither", agent.ClassOnce, false, false, 0, false, false},
	{"undone where keys are honoured", agent.ClassIdempotent, true, false, 24 * time.Hour, true, false},
	{"undone where it can be asked", agent.ClassReconcilable, false, true, 0, true, false},
	{"undone where neither", agent.ClassOnce, false, false, 0, true, false},
	{"at once where keys are honoured", agent.ClassIdempotent, true, false, 24 * time.Hour, false, true},
	{"at once where it can be asked", agent.ClassReconcilable, false, true, 0, false, true},
	{"at once where neither", agent.ClassOnce, false, false, 0, false, true},
}

type booking struct {
	key  string
	at   time.Time
	life *life
}

// How far the destination lags: from what has left to the books, and from the books to what it answers.
const (
	arrival = 2 * time.Second
	lag     = 3 * time.Second
)

func (s *storm) chance(percent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(100) < percent
}

func (s *storm) span(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if most <= 0 {
		return 0
	}
	return time.Duration(s.rnd.Int64N(int64(most)))
}

func (s *storm) pick(d ...time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d[s.rnd.IntN(len(d))]
}

func (s *storm) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, fmt.Sprintf("%8.2fs ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
}

func (s *storm) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *storm) is(f func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// strikes says whether something is to go wrong, of which there is only so much.
func (s *storm) strikes(percent int) bool {
	if !s.chance(percent) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit--
	return s.limit >= 0
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

// begin starts an attempt.
func (s *storm) begin(n int, name string, in agent.ToolInput, prev Progress) (*life, chan struct{}, *agent.ToolResult, *error) {
	l := &life{storm: s, name: fmt.Sprintf("%s.%d", name, n), lost: make(chan struct{}), stops: make(chan struct{}), said: prev}
	ctx, end := context.WithCancelCause(context.WithValue(s.t.Context(), lifeKey{}, l))
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout()+2*time.Minute)
	l.ctx, l.end = ctx, end
	l.pulse = &pulse{ctx: ctx, attempt: n, started: time.Now(), done: make(chan struct{}), stops: l.stops, p: prev, token: []byte("token"), silence: beats}
	l.pulse.beat = func(p Progress) {
		l.set(func() {
			if !l.silent {
				l.said = p
			}
		})
	}
	done := make(chan struct{})
	var res agent.ToolResult
	var err error
	s.lives.Go(func() {
		defer cancel()
		defer close(done)
		l.moment("its beginning")
		l.pulse.began = time.Now()
		if prev != (Progress{}) {
			l.pulse.send()
		}
		res, err = s.tool(l.pulse, in)
		l.say("%s ends: %s %s %v (%s)", l.name, res.State, res.Conflict, err, res.Note)
	})
	go func() {
		<-ctx.Done()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			l.giveUp()
		}
	}()
	return l, done, &res, &err
}

// activity runs an action as the server does, and returns false when it was cancelled without a result.
func (s *storm) activity(name string, in agent.ToolInput) (agent.ToolResult, bool) {
	var asked bool
	var l *life
	if s.chance(15) {
		time.AfterFunc(s.span(time.Minute), func() {
			s.say("the turn is cancelled")
			s.mu.Lock()
			defer s.mu.Unlock()
			if asked = true; !l.silent { // who is cut off does not hear of it
				l.end(errUserCancel)
			}
		})
	}
	if s.chance(15) {
		deny := func(denies bool) func() {
			return func() {
				s.say("policy denies: %v", denies)
				s.set(func() { s.denies = denies })
			}
		}
		time.AfterFunc(s.span(time.Minute), deny(true))
		time.AfterFunc(time.Minute+s.span(time.Minute), deny(false))
	}
	over := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return asked }
	var prev Progress
	wait := time.Second
	for n := 1; n < 60; n++ {
		next, done, res, err := s.begin(n, name, in, prev)
		s.mu.Lock()
		l = next
		s.mu.Unlock()
		answered := false
		select {
		case <-done:
			answered = l.is(func() bool { return !l.silent })
		case <-l.lost:
		}
		if !answered {
			<-l.lost
			l.set(func() { l.silent = true })
			s.say("the server gives %s up", l.name)
			prev = l.said
			if over() {
				return agent.ToolResult{}, false
			}
			continue
		}
		if *err == nil && res.State != "" {
			return *res, true
		}
		if over() {
			return agent.ToolResult{}, false
		}
		prev = l.pulse.progress()
		var app *temporal.ApplicationError
		delay := wait
		if errors.As(*err, &app) && app.NextRetryDelay() > 0 {
			delay = app.NextRetryDelay()
		}
		wait = min(2*wait, 10*time.Second)
		time.Sleep(delay)
	}
	s.t.Fatal("no end")
	return agent.ToolResult{}, false
}

// turn runs an action to its end in the ledger.
func (s *storm) turn(name string, in agent.ToolInput, l *effect.Ledger) {
	key := in.Key()
	e := agent.Effect{Key: key, Tool: in.Tool, Place: in.Place, Class: in.Class, State: agent.StateAuthorized, Action: in.Action}
	if err := l.Add(e); err != nil {
		s.t.Fatal(err)
	}
	res, ok := s.activity(name, in)
	if !ok {
		res = s.stubborn(func() (agent.ToolResult, error) { return s.reconcile(s.t.Context(), s.snap, s.scope, e) })
		s.say("reconciled: %s (%s)", res.State, res.Note)
	}
	s.set(func() { s.doubt = time.Now() })
	if err := l.Settle(key, res, time.Now(), ""); err != nil {
		s.t.Error(err)
	}
}

// stubborn repeats an activity for as long as the store is in trouble.
func (s *storm) stubborn(f func() (agent.ToolResult, error)) agent.ToolResult {
	for range 50 {
		res, err := f()
		if err == nil {
			return res
		}
		time.Sleep(time.Second)
	}
	s.t.Error("the store never comes back")
	return agent.ToolResult{State: agent.StateUncertain, Attempt: 1}
}

// look is what happens to an effect after its turn: late words, a person who looks, somebody who asks again.
func (s *storm) look(key string, l *effect.Ledger) {
	e, ok := l.Get(key)
	if !ok {
		return
	}
	s.mu.Lock()
	told := slices.Contains(s.late, key)
	s.late = slices.DeleteFunc(s.late, func(k string) bool { return k == key })
	s.mu.Unlock()
	switch {
	case told || e.State == agent.StateUncertain && s.chance(10):
		if e.State != agent.StateUncertain && effect.Open(e.State) {
			return
		}
		var out agent.SettleResult
		s.stubborn(func() (agent.ToolResult, error) {
			var err error
			out, err = s.settleByRecord(s.t.Context(), s.snap, agent.SettleInput{Scope: s.scope, Effect: e, Settlement: agent.Settlement{Key: key}})
			return out.Result, err
		})
		s.say("a word on %s leads to %s %s %s", key, out.Result.State, out.Result.Conflict, out.Why)
		if out.Why == "" {
			if err := l.Settle(key, out.Result, time.Now(), ""); err != nil {
				s.t.Error(err)
			}
		}
	case e.State == agent.StateUncertain && time.Since(s.doubt) > time.Minute && s.chance(20): // not before what has left has arrived
		says := agent.StateFailed
		if s.booked(key, time.Now()) > 0 {
			says = agent.StateCommitted
		}
		if s.chance(20) {
			s.lied = true
			says = map[agent.State]agent.State{agent.StateFailed: agent.StateCommitted, agent.StateCommitted: agent.StateFailed}[says]
		}
		word := agent.ToolResult{State: says, Attempt: 1, Note: "settled by ann"}
		res := s.stubborn(func() (agent.ToolResult, error) {
			return s.keepWord(s.t.Context(), s.snap, agent.SettleInput{Scope: s.scope, Effect: e}, word)
		})
		s.say("a person says %s (lied before: %v), which leads to %s %s", says, s.lied, res.State, res.Conflict)
		if err := l.Settle(key, res, time.Now(), "ann"); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *storm) judge(key string, l *effect.Ledger) {
	e, ok := l.Get(key)
	if !ok { // it never came to that
		return
	}
	n := s.booked(key, time.Now())
	s.say("%s is %s (%s) conflict %q, %d in the books", key, e.State, e.Note, e.Conflict, n)
	died := false
	for _, b := range s.books {
		died = died || b.key == key && b.life.dead
	}
	shown := e.State == agent.StateCommitted || e.State == agent.StateUncertain || e.Conflict != ""
	// What a person said of an attempt that died is nobody else's to correct.
	said := s.lied || died && e.Trail[len(e.Trail)-1].By != ""
	switch {
	case n > 1:
		s.t.Errorf("done %d times", n)
	case n == 1 && !shown && !said:
		s.t.Errorf("done, and the ledger says %s", e.State)
	case n == 0 && e.State == agent.StateCommitted && e.Conflict == "" && !s.lied:
		s.t.Errorf("not done, and the ledger says %s", e.State)
	}
	if rec, err := s.space().Result(context.Background(), key); e.State == agent.StateUncertain && err == nil && !s.torn && !s.deaf {
		s.t.Errorf("its record says %s, and the ledger %s", rec.Tool.State, e.State)
	}
}

// due says whether an action is to be done, which for a compensation a plan says by the records of those before.
func (s *storm) due(in agent.ToolInput) bool {
	if in.Undoes == "" {
		return true
	}
	p := &planner{Activities: s.Activities, snap: s.snap, space: s.space()}
	t := task{effect: agent.Effect{Key: in.Undoes, State: agent.StateCommitted}}
	s.stubborn(func() (agent.ToolResult, error) {
		keys, err := s.space().List(s.t.Context(), store.KindDispatches, agent.TurnKeys(s.scope, in.Turn))
		if err == nil {
			err = p.undone(s.t.Context(), &t, keys)
		}
		return agent.ToolResult{}, err
	})
	s.say("before %s: %s, %q", in.Key(), t.effect.State, t.before)
	return t.before == "" && t.effect.State == agent.StateCommitted
}

// rage takes an action and one that is identical to it, or a compensation and the next of the same effect, through the
// storm: one after the other, or both at once.
func (s *storm) rage(in agent.ToolInput) {
	var l, other effect.Ledger
	again := s.at(in, 7)
	if in.Undoes != "" {
		again = in
		again.Undo = 2
	}
	if s.kind.atOnce {
		var both sync.WaitGroup
		both.Go(func() { s.turn("A", in, &l) })
		time.Sleep(s.span(time.Minute))
		both.Go(func() { s.turn("B", again, &other) })
		both.Wait()
	} else {
		s.turn("A", in, &l)
		for range 20 {
			s.look(in.Key(), &l)
			time.Sleep(s.pick(time.Second, 5*time.Second, 20*time.Second, time.Minute))
		}
		if s.due(again) {
			s.turn("B", again, &other)
		}
	}
	s.lives.Wait()
	time.Sleep(4 * time.Hour) // whatever was left behind has ended
	for range 5 {
		s.look(in.Key(), &l)
		s.look(again.Key(), &other)
		time.Sleep(time.Minute)
	}
	s.judge(in.Key(), &l)
	s.judge(again.Key(), &other)
	if n := s.booked(in.Key(), time.Now()) + s.booked(again.Key(), time.Now()); n > 1 && !s.lied {
		s.t.Errorf("two identical actions were done %d times", n)
	}
}

func weather(t *testing.T, seed uint64, kind stormKind) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &storm{kind: kind, rnd: rand.New(rand.NewPCG(seed, 1)), began: time.Now()}
		s.limit = int(1 + seed%5)
		sp := spec(kind.class)
		sp.Window, sp.Timeout = kind.window, s.pick(10*time.Second, 40*time.Second)
		if kind.asked {
			sp.AbsentAfter = arrival + lag
		}
		f := newFake(t, sp, s.pay)
		f.finds = nil
		if kind.asked {
			f.finds = s.find
		}
		limit := s.limit
		s.limit = 0
		s.world = worldOver(t, newUnsteady(t, s.fault), f)
		s.Client = &stormSignals{s: s}
		s.snap.Policy = repeating(t, policy.RepeatDeny)
		stricter := &Snapshot{
			Serial: s.snap.Serial, Agents: s.snap.Agents, Models: s.snap.Models, Tools: s.snap.Tools,
			Policy: saying(t, agent.DecisionDeny), Mask: s.snap.Mask,
		}
		s.Current = func() *Snapshot {
			if s.is(func() bool { return s.denies }) {
				return stricter
			}
			return s.snap
		}
		in := s.asked("pay", `{}`)
		if kind.undo {
			in.Undoes, in.Undo = agent.ActionKey(s.scope, agent.Place{Turn: 1, Step: 1, Call: 1}, agent.DigestOf(nil)), 1
		}
		s.limit = limit
		s.rage(in)
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(s.trace, "\n"))
		}
	})
}

func TestNoStormMakesAnEffectHappenTwiceOrTheLedgerLie(t *testing.T) {
	t.Parallel()
	n, first := 40, uint64(0)
	if long, err := strconv.Atoi(os.Getenv("HOLDFAST_STORMS")); err == nil {
		n = long
	}
	if seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_STORM"), 10, 64); err == nil {
		n, first = 1, seed
	}
	for _, kind := range stormKinds {
		t.Run(kind.name, func(t *testing.T) {
			for seed := first; seed < first+uint64(n); seed++ {
				weather(t, seed, kind)
			}
		})
	}
}
