package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

var (
	errUserCancel = temporal.NewCanceledError()
	errGone       = serviceerror.NewNotFound("activity not found")
	errShutdown   = worker.ErrWorkerShutdown
)

// during ends the context of an attempt while its tool runs.
func (w *world) during(in agent.ToolInput, cause error) (agent.ToolResult, error) {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.t.Context())
	time.AfterFunc(time.Second, func() { cancel(cause) })
	res, _, err := w.attempt(ctx, 1, Progress{}, in)
	return res, err
}

// slow is a tool that takes five seconds.
func slow(text string, err error) doFunc {
	return func(context.Context, tool.Call) (tool.Result, error) {
		time.Sleep(5 * time.Second)
		return tool.Result{Data: []byte(text)}, err
	}
}

func TestAnOutcomeThatComesAfterItsAttemptWasGivenUpIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			cause error
			end   error // of the tool
			gone  bool  // the turn has ended
			want  string
		}{
			{"its heartbeat was refused", errGone, nil, false, "s1:turn-1"},
			{"its worker was shut down", errShutdown, nil, false, "s1:turn-1"},
			{"its time was over", context.DeadlineExceeded, nil, false, "s1:turn-1"},
			{"it failed for good", errGone, tool.Failed(errors.New("closed")), false, "s1:turn-1"},
			{"the turn has ended", errGone, nil, true, "s1"},
			{"nobody knows its outcome", errGone, errors.New("status 502"), false, ""},
			{"it was cancelled, and counts", errUserCancel, nil, false, ""},
		} {
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), slow("paid", c.end)))
			w.heard.gone["s1:turn-1"] = c.gone
			in := w.asked("pay", `{}`)
			res, err := w.during(in, c.cause)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			var want []string
			if c.want != "" {
				want = []string{c.want + " settle " + in.Key()}
			}
			if got := w.heard.all(); !slices.Equal(got, want) {
				t.Errorf("%s: told %q, want %q", c.name, got, want)
			}
			if final := res.State != agent.StateUncertain; final != w.recorded(in.Key()) {
				t.Errorf("%s: %s, recorded %v", c.name, res.State, w.recorded(in.Key()))
			}
		}
	})
}

// TestAnAttemptThatWasGivenUpAndHasSentNothingLeavesTheActionToTheNextOne: the worker of the first attempt stood still,
// and the destination could not be reached when it woke. What it knows is final only where nobody comes after it, or where nobody
// may send what it has recorded as dispatched.
func TestAnAttemptThatWasGivenUpAndHasSentNothingLeavesTheActionToTheNextOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			class agent.Class
			next  int32
			left  bool
		}{
			{agent.ClassIdempotent, 2, true},
			{agent.ClassReconcilable, 2, true},
			{agent.ClassOnce, 2, false},
			{agent.ClassIdempotent, 1, false}, // the server still waits for this one
			{agent.ClassIdempotent, 0, false},
			{agent.ClassReconcilable, 0, false},
		} {
			w := newWorld(t, "mem://", newFake(t, spec(c.class), slow("", tool.NotSent(errors.New("refused")))))
			w.heard.next = c.next
			in := w.asked("pay", `{}`)
			_, err := w.during(in, errGone)
			if left := errors.Is(err, errFollowed) && !w.recorded(in.Key()) && len(w.heard.all()) == 0; left != c.left {
				t.Errorf("%s, attempt %d goes on: left to it %v, want %v (%v, recorded %v)", c.class, c.next, left, c.left, err, w.recorded(in.Key()))
			}
			if !c.left && !w.recorded(in.Key()) {
				t.Errorf("%s, attempt %d goes on: what it knows is not on record (%v)", c.class, c.next, err)
			}
		}
	})
}

// TestAnAttemptThatWasHeldUpBeforeItCouldSendTellsTheNextOneThatItMaySend: the store took so long over the dispatch
// record that the time to send was over. Nothing has left, whatever the tool declares.
func TestAnAttemptThatWasHeldUpBeforeItCouldSendTellsTheNextOneThatItMaySend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, class := range []agent.Class{agent.ClassIdempotent, agent.ClassReconcilable, agent.ClassOnce} {
			slow := true
			f := newFake(t, spec(class), nil)
			w := worldOver(t, newUnsteady(t, func(_ context.Context, op, name string) fault {
				if slow && op == "create" && strings.Contains(name, "/dispatches/") {
					slow = false
					return fault{after: f.Spec().Timeout + time.Second}
				}
				return fault{}
			}), f)
			in := w.asked("pay", `{}`)
			_, said, err := w.attempt(t.Context(), 1, Progress{}, in)
			if err == nil || slow || w.recorded(in.Key()) {
				t.Fatalf("%s: the first attempt: %v, recorded %v", class, err, w.recorded(in.Key()))
			}
			res, _, err := w.attempt(t.Context(), 2, said, in)
			if err != nil || res.State != agent.StateCommitted || f.count() != 1 {
				t.Errorf("%s: %+v, sent %d times, %v", class, res, f.count(), err)
			}
		}
	})
}

func TestAnAttemptThatStoodStillForTooLongIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for frozen, gone := range map[time.Duration]bool{15 * time.Second: false, 25 * time.Second: true} {
			p := &pulse{ctx: t.Context(), silence: 10 * time.Second, last: time.Now()}
			time.Sleep(frozen)
			if p.givenUp() != gone {
				t.Errorf("after %s: given up %v", frozen, !gone)
			}
			if p.givenUp() != gone {
				t.Errorf("after %s it forgets", frozen)
			}
		}
		alive := &pulse{ctx: t.Context(), silence: 10 * time.Second, last: time.Now()}
		for range 30 {
			time.Sleep(3 * time.Second)
			alive.ran()
		}
		if alive.givenUp() {
			t.Error("given up although it ran all the time")
		}
	})
}

func TestALateOutcomeThatContradictsTheRecordStaysInSight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var w *world
		f := newFake(t, spec(agent.ClassOnce), func(ctx context.Context, c tool.Call) (tool.Result, error) {
			time.Sleep(5 * time.Second)
			person := agent.ToolResult{State: agent.StateFailed, Attempt: 1, Evidence: "settled by ann: the bank has nothing"}
			_, _, err := w.space().CreateResult(ctx, store.Result{Key: c.Key, Tool: &person})
			return tool.Result{Data: []byte("paid")}, err
		})
		w = newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		res, err := w.during(in, errGone)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.heard.all()) != 1 || res.Conflict == "" {
			t.Errorf("told %q, result %+v", w.heard.all(), res)
		}
		// Whoever reads the record later hears of it as well.
		for range 2 {
			if res := w.asking(in); res.State != agent.StateFailed || !strings.Contains(res.Conflict, "attempt 1 saw committed") {
				t.Errorf("the record says %+v", res)
			}
		}
		told, err := w.settleByRecord(t.Context(), w.snap, agent.SettleInput{Scope: w.scope, Effect: agent.Effect{Key: in.Key(), State: agent.StateFailed}})
		if err != nil || told.Why != "" || told.Result.Conflict == "" {
			t.Errorf("the signal leads to %+v, %v", told, err)
		}
		if res := w.mustAttempt(2, in); res.State != agent.StateFailed || res.Conflict == "" || f.count() != 1 {
			t.Errorf("a later attempt says %+v", res)
		}
	})
}

// An attempt that was given up asks the destination what became of its call, and what it hears is told like its own.
func TestWhatAGivenUpAttemptFindsOutIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			name     string
			cause    error
			finding  tool.Finding
			standing agent.State // what a person has said by then
			want     agent.State
			told     bool
		}{
			{"found", errGone, tool.Found, "", agent.StateCommitted, true},
			{"absent", errGone, tool.Absent, "", agent.StateFailed, true},
			{"unknown", errGone, tool.Unknown, "", agent.StateUncertain, false},
			{"found, against a person's word", errGone, tool.Found, agent.StateFailed, agent.StateFailed, true},
			{"found, and the attempt counts", errUserCancel, tool.Found, "", agent.StateCommitted, false},
		} {
			f := askable(t, agent.ClassReconcilable, 0, slow("", errors.New("status 502")), c.finding)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			if c.standing != "" {
				time.AfterFunc(2*time.Second, func() {
					said := agent.ToolResult{State: c.standing, Attempt: 1}
					if _, _, err := w.space().CreateResult(t.Context(), store.Result{Key: in.Key(), Tool: &said}); err != nil {
						t.Error(err)
					}
				})
			}
			res, err := w.during(in, c.cause)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, res, c.want)
			if told := len(w.heard.all()) > 0; told != c.told {
				t.Errorf("%s: told %q", c.name, w.heard.all())
			}
			if _, err := w.space().Result(t.Context(), lateKey(in.Key())); (err == nil) != (c.standing != "") {
				t.Errorf("%s: its contradiction: %v", c.name, err)
			}
		}
	})
}

// The turn is cancelled while the tool runs, and then the worker is cut off for so long that the server gives the
// attempt up: its context does not say so any more.
func TestAnAttemptThatMayHaveBeenGivenUpAsksWhetherItStillCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			said    error // by the server
			cancel  bool
			silence time.Duration
			told    bool
		}{
			{said: nil, cancel: true},
			{said: errUserCancel, cancel: true},
			{said: errGone, cancel: true, told: true},
			{said: errors.New("unavailable"), cancel: true, told: true},
			{said: nil, silence: 3 * time.Second},
			{said: errGone, silence: 3 * time.Second, told: true}, // cut off, and it has not heard it
			{said: errGone, silence: 6 * time.Second},             // too young to be given up: it does not ask
		} {
			said, told := c.said, c.told
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), slow("paid", nil)))
			w.heard.beat = said
			in := w.asked("pay", `{}`)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() {
				if c.cancel {
					cancel(errUserCancel)
				}
			})
			p := &pulse{
				ctx: ctx, attempt: 1, started: time.Now(), began: time.Now(), beat: func(Progress) {}, token: []byte("token"), silence: c.silence,
			}
			res, err := w.tool(p, in)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, res, agent.StateCommitted)
			cancel(nil)
			if got := len(w.heard.all()) > 0; got != told {
				t.Errorf("%+v: told %q", c, w.heard.all())
			}
		}
	})
}

func TestAServerThatCannotBeReachedIsToldWhenItCan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for outage, told := range map[time.Duration]bool{10 * time.Minute: true, time.Hour: false} {
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), slow("paid", nil)))
			w.heard.down = time.Now().Add(outage)
			in := w.asked("pay", `{}`)
			if _, err := w.during(in, context.DeadlineExceeded); err != nil {
				t.Fatal(err)
			}
			if got := len(w.heard.all()) > 0; got != told {
				t.Errorf("after %s: told %q", outage, w.heard.all())
			}
		}
		// A worker that stops does not wait for that.
		w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), slow("paid", nil)))
		w.heard.down, w.stops = time.Now().Add(time.Hour), make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(w.stops) })
		began := time.Now()
		if _, err := w.during(w.asked("pay", `{}`), errGone); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Minute || took > 70*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}
