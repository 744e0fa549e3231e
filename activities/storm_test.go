package activities

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
		res = s.stubborn(func() (agent.ToolResult, error) { return s.reconcile(s.t.Context(), s.snap, in.Scope, e) })
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
	k, _ := agent.ParseKey(key)
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
			out, err = s.settleByRecord(s.t.Context(), s.snap, agent.SettleInput{Scope: k.Scope, Effect: e, Settlement: agent.Settlement{Key: key}})
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
			return s.keepWord(s.t.Context(), s.snap, agent.SettleInput{Scope: k.Scope, Effect: e}, word)
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
	if rec, err := s.recordsOf(key).Result(context.Background(), key); e.State == agent.StateUncertain && err == nil && !s.torn && !s.deaf {
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

// newStorm returns a storm that is about to begin, and the action that it is about.
func newStorm(t *testing.T, seed uint64, kind stormKind) (*storm, agent.ToolInput) {
	t.Helper()
	s := &storm{kind: kind, rnd: rand.New(rand.NewPCG(seed, 1)), began: time.Now()}
	limit := int(1 + seed%5)
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
	return s, in
}

func weather(t *testing.T, seed uint64, kind stormKind) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, in := newStorm(t, seed, kind)
		s.rage(in)
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(s.trace, "\n"))
		}
	})
}

// seeds are those of the storms to go through: so many from the first on.
func seeds(most int) (n int, first uint64) {
	n = most
	if long, err := strconv.Atoi(os.Getenv("HOLDFAST_STORMS")); err == nil {
		n = long
	}
	if seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_STORM"), 10, 64); err == nil {
		n, first = 1, seed
	}
	return n, first
}

func TestNoStormMakesAnEffectHappenTwiceOrTheLedgerLie(t *testing.T) {
	t.Parallel()
	n, first := seeds(40)
	for _, kind := range stormKinds {
		t.Run(kind.name, func(t *testing.T) {
			for seed := first; seed < first+uint64(n); seed++ {
				weather(t, seed, kind)
			}
		})
	}
}
