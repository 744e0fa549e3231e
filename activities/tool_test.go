package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// bubble runs a test on a fake clock: waits cost nothing and are exact.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func spec(class agent.Class) tool.Spec {
	return tool.Spec{Name: "pay", Class: class, Timeout: 10 * time.Second}
}

var effects = []agent.Class{agent.ClassOnce, agent.ClassIdempotent, agent.ClassReconcilable}

func TestAnEffectIsRecordedBeforeItIsSentAndAdoptedAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for i, class := range effects {
			var w *world
			var in agent.ToolInput
			f := newFake(t, spec(class), func(ctx context.Context, c tool.Call) (tool.Result, error) {
				if d, ok := w.dispatched(c.Key); !ok || d.Revoked || d.Attempt != 1 || d.SendBy.Sub(d.At) != 20*time.Second {
					t.Errorf("%s: while it runs the dispatch record is %+v, %v", class, d, ok)
				}
				return tool.Result{Data: []byte("paid")}, nil
			})
			w = newWorld(t, "mem://", f)
			in = w.asked("pay", fmt.Sprintf(`{"n":%d}`, i))
			res := w.mustAttempt(1, in)
			wantState(t, res, agent.StateCommitted)
			if res.Text != "paid" || res.Attempt != 1 || res.Adopted || res.Version != f.spec.Version.Short() || res.Build != "b1" || res.At.IsZero() {
				t.Errorf("%s: result %+v", class, res)
			}
			again := w.mustAttempt(2, in)
			wantState(t, again, agent.StateCommitted)
			if f.count() != 1 || !again.Adopted || again.Text != "paid" || again.Attempt != 1 {
				t.Errorf("%s: sent %d times, second result %+v", class, f.count(), again)
			}
			if c := f.calls[0]; c.Key != keyOf(in) || c.Args != in.Args || c.Place != in.Place || c.Scope != in.Scope {
				t.Errorf("%s: the tool got %+v", class, c)
			}
		}
	})
}

func TestOnceIsNeverSentAfterADispatchRecordWithoutResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, class := range []agent.Class{agent.ClassOnce, agent.ClassReconcilable} {
			f := newFake(t, spec(class), nil)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			d := w.dispatch(in, now())
			res := w.mustAttempt(2, in)
			wantState(t, res, agent.StateUncertain)
			if f.count() != 0 || w.recorded(keyOf(in)) {
				t.Errorf("%s: sent %d times, recorded %v", class, f.count(), w.recorded(keyOf(in)))
			}
			if since := time.Since(d.SendBy); since < doGrace+keepGrace {
				t.Errorf("%s: called uncertain %s after send-by, while the earlier attempt may still be at work", class, since)
			}
			if !strings.Contains(res.Text, "Do not repeat it; tell the user") || res.Attempt != 1 {
				t.Errorf("%s: result %+v", class, res)
			}
		}
	})
}

func TestALaterAttemptWaitsForASlowOneAndAdoptsItsOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(9 * time.Second)
			return tool.Result{Data: []byte("paid")}, nil
		})
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		var wg sync.WaitGroup
		wg.Go(func() { wantState(t, w.mustAttempt(1, in), agent.StateCommitted) })
		time.Sleep(time.Second)
		res := w.mustAttempt(2, in)
		wg.Wait()
		wantState(t, res, agent.StateCommitted)
		if !res.Adopted || f.count() != 1 {
			t.Errorf("sent %d times, result %+v", f.count(), res)
		}
	})
}

func TestIdempotentIsSentAgainWithTheSameKeyInsideItsWindowOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := spec(agent.ClassIdempotent)
		s.Window = time.Hour
		for _, c := range []struct {
			age  time.Duration
			sent int
			want agent.State
		}{
			{time.Minute, 1, agent.StateCommitted},
			{time.Hour - 5*time.Second, 0, agent.StateUncertain}, // it might arrive after the window
			{2 * time.Hour, 0, agent.StateUncertain},
		} {
			f := newFake(t, s, nil)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			w.dispatch(in, now().Add(-c.age))
			res := w.mustAttempt(2, in)
			wantState(t, res, c.want)
			if f.count() != c.sent || (c.sent == 1 && f.calls[0].Key != keyOf(in)) {
				t.Errorf("after %s: sent %d times, want %d", c.age, f.count(), c.sent)
			}
		}
	})
}

func TestWhatReconciliationClaimedIsNeverSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, class := range effects {
			f := newFake(t, spec(class), nil)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			out, err := w.reconcile(t.Context(), w.snap, w.scope, agent.Effect{Key: keyOf(in), Class: class})
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, out, agent.StateCancelled)
			wantState(t, w.mustAttempt(1, in), agent.StateCancelled)
			if f.count() != 0 {
				t.Errorf("%s: sent %d times after it was withdrawn", class, f.count())
			}
		}
	})
}

func TestReconcileFindsWhatBecameOfEachEffect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		done, sent, never := w.asked("pay", `{"n":1}`), w.asked("pay", `{"n":2}`), w.asked("pay", `{"n":3}`)
		w.mustAttempt(1, done)
		w.dispatch(sent, now())
		for range 2 { // asking again changes nothing
			for _, c := range []struct {
				in   agent.ToolInput
				want agent.State
			}{{done, agent.StateCommitted}, {sent, agent.StateUncertain}, {never, agent.StateCancelled}} {
				res, err := w.reconcile(t.Context(), w.snap, w.scope, agent.Effect{Key: keyOf(c.in), Class: c.in.Class})
				if err != nil {
					t.Fatal(err)
				}
				wantState(t, res, c.want)
			}
		}
	})
}

func TestNothingSentIsTriedAgainByTheOwnerOfTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries := 0
		f := newFake(t, spec(agent.ClassOnce), func(context.Context, tool.Call) (tool.Result, error) {
			if tries++; tries < 3 {
				return tool.Result{}, tool.NotSent(errors.New("no such host"))
			}
			return tool.Result{Data: []byte("paid")}, nil
		})
		w := newWorld(t, "mem://", f)
		wantState(t, w.mustAttempt(1, w.asked("pay", `{}`)), agent.StateCommitted)
		if f.count() != 3 {
			t.Errorf("tried %d times, want 3", f.count())
		}
	})
}

func TestNothingSentAtAllIsADefiniteFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), fails(tool.NotSent(errors.New("no such host"))))
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		res := w.mustAttempt(1, in)
		wantState(t, res, agent.StateFailed)
		d, _ := w.dispatched(keyOf(in))
		if f.count() < 2 || !strings.Contains(res.Text, "nothing was sent") || now().After(d.SendBy) {
			t.Errorf("tried %d times until %s (send-by %s), text %q", f.count(), now(), d.SendBy, res.Text)
		}
		n := f.count()
		if again := w.mustAttempt(2, in); again.State != agent.StateFailed || !again.Adopted || f.count() != n {
			t.Errorf("a later attempt: %+v, tried %d times", again, f.count())
		}
	})
}

func TestIdempotentThatNeverGotOutFailsForSure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassIdempotent), fails(tool.NotSent(errors.New("connection refused"))))
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		var p Progress
		for n := 1; ; n++ {
			res, next, err := w.attempt(t.Context(), n, p, in)
			if err == nil {
				wantState(t, res, agent.StateFailed)
				if n != sendTries || !w.recorded(keyOf(in)) {
					t.Errorf("ended in attempt %d, recorded %v", n, w.recorded(keyOf(in)))
				}
				return
			}
			wantApp(t, err, agent.ErrTool, false)
			p = next
		}
	})
}

func TestIdempotentWithAnAttemptOfUnknownEndIsUncertain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassIdempotent), fails(tool.NotSent(errors.New("connection refused"))))
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		_, p, err := w.attempt(t.Context(), 1, Progress{}, in)
		wantApp(t, err, agent.ErrTool, false)
		// Attempt 2 died after it had taken its place: it may have sent.
		again := claimOf(keyOf(in)+"/again-1", 2, in.Class, in.Action)
		again.Revoked = false
		if first, _, err := w.space().CreateDispatch(t.Context(), again); err != nil || !first {
			t.Fatal(first, err)
		}
		for n := 3; ; n++ {
			var res agent.ToolResult
			if res, p, err = w.attempt(t.Context(), n, p, in); err == nil {
				wantState(t, res, agent.StateUncertain)
				return
			}
		}
	})
}

func TestADestinationsNoIsToldToTheModelAndFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, class := range append([]agent.Class{agent.ClassRead}, effects...) {
			f := newFake(t, spec(class), fails(tool.Failed(errors.New("order 7 is closed, token "+hush))))
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			res := w.mustAttempt(1, in)
			wantState(t, res, agent.StateFailed)
			if !strings.Contains(res.Text, "order 7 is closed") || strings.Contains(res.Text+res.Note, hush) {
				t.Errorf("%s: text %q, note %q", class, res.Text, res.Note)
			}
			if got := w.recorded(keyOf(in)); got != (class != agent.ClassRead) {
				t.Errorf("%s: recorded %v", class, got)
			}
			if f.count() != 1 {
				t.Errorf("%s: sent %d times", class, f.count())
			}
		}
	})
}

func TestAnUnknownOutcomeOfOnceIsUncertainAndNotFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), fails(errors.New("status 502, "+hush)))
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		res := w.mustAttempt(1, in)
		wantState(t, res, agent.StateUncertain)
		if w.recorded(keyOf(in)) || strings.Contains(res.Text+res.Note, hush) || !strings.Contains(res.Note, "502") {
			t.Errorf("recorded %v, result %+v", w.recorded(keyOf(in)), res)
		}
	})
}

func TestAnUnknownOutcomeOfIdempotentIsTriedAgainWithinBounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassIdempotent), fails(errors.New("status 502, "+hush)))
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		var p Progress
		for n := 1; ; n++ {
			res, next, err := w.attempt(t.Context(), n, p, in)
			if err == nil {
				wantState(t, res, agent.StateUncertain)
				break
			}
			if app := wantApp(t, err, agent.ErrTool, false); app.NextRetryDelay() <= 0 || strings.Contains(err.Error(), hush) {
				t.Errorf("error %v, delay %s", err, app.NextRetryDelay())
			}
			p = next
		}
		if f.count() != sendTries || w.recorded(keyOf(in)) {
			t.Errorf("sent %d times, recorded %v", f.count(), w.recorded(keyOf(in)))
		}
	})
}

func TestAReadIsTriedAgainAndLeavesNoRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassRead), fails(errors.New("status 503")))
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		var p Progress
		for n := 1; ; n++ {
			res, next, err := w.attempt(t.Context(), n, p, in)
			if err == nil {
				wantState(t, res, agent.StateFailed)
				break
			}
			wantApp(t, err, agent.ErrTool, false)
			p = next
		}
		if _, ok := w.dispatched(keyOf(in)); ok || w.recorded(keyOf(in)) || f.count() != readTries {
			t.Errorf("read %d times, dispatched %v", f.count(), ok)
		}
	})
}

func TestAToolThatChangedIsNotRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", old)
		fresh, sent, done := w.asked("pay", `{"n":1}`), w.asked("pay", `{"n":2}`), w.asked("pay", `{"n":3}`)
		w.dispatch(sent, now())
		w.mustAttempt(1, done)

		s := spec(agent.ClassOnce)
		s.Description = "another"
		changed := newFake(t, s, nil)
		w2 := worldOver(t, w.Store, changed)
		w2.snap.Serial = 4 // newer than what the turn has seen: nobody will do better
		for _, c := range []struct {
			in   agent.ToolInput
			want agent.State
		}{{fresh, agent.StateFailed}, {sent, agent.StateUncertain}, {done, agent.StateCommitted}} {
			wantState(t, w2.mustAttempt(2, c.in), c.want)
		}
		// A zombie of the old build must not send what was called off.
		wantState(t, w.mustAttempt(1, fresh), agent.StateCancelled)
		if changed.count() != 0 || old.count() != 1 {
			t.Errorf("sent %d and %d times", changed.count(), old.count())
		}
	})
}

func TestAWorkerThatIsNoNewerLetsAnotherTryFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
		in := w.asked("pay", `{}`)
		bare := worldOver(t, w.Store)
		_, p, err := bare.attempt(t.Context(), 1, Progress{}, in)
		wantApp(t, err, agent.ErrStaleConfig, false)
		if _, ok := w.dispatched(keyOf(in)); ok {
			t.Error("it withdrew what another worker can do")
		}
		for n := 2; err != nil; n++ {
			var res agent.ToolResult
			if res, p, err = bare.attempt(t.Context(), n, p, in); err == nil {
				wantState(t, res, agent.StateFailed)
			}
		}
	})
}

func TestPolicyIsAskedAgainAndDoesNotUndoWhatHappened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		fresh, done := w.asked("pay", `{"n":1}`), w.asked("pay", `{"n":2}`)
		w.mustAttempt(1, done)
		w.snap.Policy = &policy.Policy{}
		wantState(t, w.mustAttempt(1, fresh), agent.StateDenied)
		wantState(t, w.mustAttempt(2, done), agent.StateCommitted)
		if f.count() != 1 {
			t.Errorf("sent %d times", f.count())
		}
	})
}

func TestAPanicOrAHangLosesTheAttemptAndNotTheWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		for name, do := range map[string]doFunc{
			"panic": func(context.Context, tool.Call) (tool.Result, error) { panic("boom " + hush) },
			"hang":  func(context.Context, tool.Call) (tool.Result, error) { <-release; return tool.Result{}, nil },
		} {
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), do))
			start := time.Now()
			res := w.mustAttempt(1, w.asked("pay", `{}`))
			wantState(t, res, agent.StateUncertain)
			if took := time.Since(start); took > 13*time.Second || strings.Contains(res.Text, hush) {
				t.Errorf("%s: took %s, text %q", name, took, res.Text)
			}
		}
	})
}

func TestCancelSendsNothingNewAndLetsASentEffectEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			time.Sleep(5 * time.Second)
			return tool.Result{Data: []byte("paid")}, ctx.Err()
		})
		w := newWorld(t, "mem://", f)
		before, during := w.asked("pay", `{"n":1}`), w.asked("pay", `{"n":2}`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := w.attempt(ctx, 1, Progress{}, before); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the cancellation", err)
		}
		if _, ok := w.dispatched(keyOf(before)); ok || f.count() != 0 {
			t.Error("a cancelled action was dispatched")
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		res, _, err := w.attempt(ctx, 1, Progress{}, during)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateCommitted)
		if !w.recorded(keyOf(during)) {
			t.Error("its outcome was not recorded")
		}
	})
}

func TestAnOwnOutcomeThatContradictsTheRecordIsAConflict(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var w *world
		f := newFake(t, spec(agent.ClassIdempotent), func(ctx context.Context, c tool.Call) (tool.Result, error) {
			other := agent.ToolResult{State: agent.StateFailed, Text: "no", Attempt: 2}
			_, _, err := w.space().CreateResult(ctx, store.Result{Key: c.Key, Tool: &other})
			return tool.Result{Data: []byte("paid")}, err
		})
		w = newWorld(t, "mem://", f)
		res := w.mustAttempt(1, w.asked("pay", `{}`))
		wantState(t, res, agent.StateFailed)
		if !res.Adopted || !strings.Contains(res.Conflict, "attempt 1 saw committed") {
			t.Errorf("result %+v", res)
		}
	})
}

func TestAnAttemptThatWasFrozenPastSendByDoesNotSend(t *testing.T) {
	t.Parallel()
	began := time.Now()
	wall := began.Round(0)
	if late(time.Hour, began, wall) {
		t.Error("late although there is an hour left")
	}
	// The wall clock went on while the monotonic one stood still, and the other way round.
	if !late(time.Hour, began, wall.Add(-2*time.Hour)) {
		t.Error("not late by the wall clock")
	}
	if !late(time.Hour, began.Add(-2*time.Hour), wall) {
		t.Error("not late by the monotonic clock")
	}
}

func TestTwoAttemptsAtOnceSendOnce(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		var mu sync.Mutex
		sent := map[string]int{}
		s := spec(agent.ClassOnce)
		f := newFake(t, s, func(_ context.Context, c tool.Call) (tool.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			sent[c.Key]++
			return tool.Result{Data: []byte("paid")}, nil
		})
		w := newWorld(t, url, f)
		var wg sync.WaitGroup
		for i := range 10 {
			in := w.asked("pay", fmt.Sprintf(`{"n":%d}`, i))
			for n := range 3 {
				wg.Go(func() {
					res, _, err := w.attempt(t.Context(), n+1, Progress{}, in)
					if err != nil || res.State != agent.StateCommitted {
						t.Errorf("%s: %v, %+v", url, err, res)
					}
				})
			}
		}
		wg.Wait()
		for key, n := range sent {
			if n != 1 {
				t.Errorf("%s: %s was sent %d times", url, key, n)
			}
		}
		if len(sent) != 10 {
			t.Errorf("%s: %d actions were sent, want 10", url, len(sent))
		}
	}
}

func TestResultsAreMaskedAndBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		long := strings.Repeat("é", 200) + hush
		binary := append([]byte{0, 0xff, 0xfe}, hush...)
		for _, c := range []struct {
			name     string
			out      tool.Result
			inline   bool
			bodyType string
			bodyHas  string
		}{
			{"empty", tool.Result{}, true, "", ""},
			{"short", tool.Result{Data: []byte("ok " + hush)}, true, "", ""},
			{"long", tool.Result{Data: []byte(long)}, false, "", "éé"},
			{"json", tool.Result{Data: []byte(`"` + long + `"`), Type: "application/json"}, false, "application/json", "éé"},
			{"not utf-8", tool.Result{Data: binary}, false, "application/octet-stream", "\xff"},
			{"image", tool.Result{Data: []byte("GIF89a"), Type: "image/gif"}, false, "image/gif", "GIF89a"},
		} {
			for _, class := range []agent.Class{agent.ClassRead, agent.ClassOnce} {
				f := newFake(t, spec(class), func(context.Context, tool.Call) (tool.Result, error) { return c.out, nil })
				w := newWorld(t, "mem://", f)
				res := w.mustAttempt(1, w.asked("pay", `{}`))
				if len(res.Text) > agent.InlineText || strings.Contains(res.Text, hush) || strings.ContainsRune(res.Text, '\uFFFD') {
					t.Errorf("%s: text %q", c.name, res.Text)
				}
				if c.inline {
					if res.Body != nil {
						t.Errorf("%s: body %+v", c.name, res.Body)
					}
					continue
				}
				if res.Body == nil || res.Body.Type != c.bodyType {
					t.Fatalf("%s: body %+v, want type %q", c.name, res.Body, c.bodyType)
				}
				b, err := w.space().Body(t.Context(), *res.Body)
				if err != nil || strings.Contains(string(b), hush) || !strings.Contains(string(b), c.bodyHas) {
					t.Errorf("%s: stored %q, %v", c.name, b, err)
				}
			}
		}
	})
}

func TestASecretInALongErrorIsMaskedBeforeItIsCut(t *testing.T) {
	t.Parallel()
	long := tool.Failed(errors.New(strings.Repeat("x", maxFailure-len(hush)+2) + hush))
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), fails(long)))
	res := w.mustAttempt(1, w.asked("pay", `{}`))
	b, err := w.space().Body(t.Context(), *res.Body)
	if err != nil || strings.Contains(string(b), hush[:6]) {
		t.Errorf("error %v; the text ends in %q", err, b[len(b)-40:])
	}
}

func TestWorkThatAnotherWorkerMustDoIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
		stale, strange := w.asked("pay", `{}`), w.asked("pay", `{}`)
		stale.Serial = 4
		strange.Store = "000000000000"
		_, _, err := w.attempt(t.Context(), 1, Progress{}, stale)
		wantApp(t, err, agent.ErrStaleConfig, false)
		_, _, err = w.attempt(t.Context(), 1, Progress{}, strange)
		wantApp(t, err, agent.ErrWrongStore, false)
	})
}
