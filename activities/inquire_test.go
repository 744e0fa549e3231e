package activities

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

func askable(t *testing.T, class agent.Class, absentAfter time.Duration, do doFunc, answers ...tool.Finding) *fake {
	t.Helper()
	s := spec(class)
	s.AbsentAfter = absentAfter
	f := newFake(t, s, do)
	f.finds = func(ctx context.Context, c tool.Call) (tool.Finding, tool.Result, error) {
		return finds(answers[min(f.questions(), len(answers))-1])(ctx, c)
	}
	return f
}

func TestAbsenceProvesNothingBeforeSendByAndTheToolsDelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, 40*time.Second, nil, tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		d := w.dispatch(in, now())
		res := w.mustAttempt(2, in)
		wantState(t, res, agent.StateCommitted)
		if since := time.Since(d.SendBy); since < 40*time.Second || since > 45*time.Second || f.count() != 1 || f.calls[0].Key != in.Key() {
			t.Errorf("sent %d times, %s after send-by", f.count(), since)
		}
		if res.Attempt != 2 || f.questions() < 3 {
			t.Errorf("asked %d times, result %+v", f.questions(), res)
		}
	})
}

func TestARepeatThatMayStillBeSentPutsOffTheProof(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, 0, nil, tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		w.dispatch(in, now().Add(-time.Hour))
		again := claimOf(in.Key()+"/again-1", 2, in.Class, in.Action)
		again.Revoked, again.SendBy = false, now().Add(20*time.Second)
		if _, _, err := w.space().CreateDispatch(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		wantState(t, w.mustAttempt(3, in), agent.StateCommitted)
		if took := time.Since(began); took < 20*time.Second {
			t.Errorf("sent after %s, while another attempt might", took)
		}
		if d, ok := w.dispatched(in.Key() + "/again-2"); !ok || d.SendBy.IsZero() {
			t.Errorf("its own place: %+v", d)
		}
	})
}

func TestWhatTheDestinationKnowsIsAdoptedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, time.Hour, nil, tool.Absent, tool.Found)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		w.dispatch(in, now())
		began := time.Now()
		res := w.mustAttempt(2, in)
		wantState(t, res, agent.StateCommitted)
		if res.Text != "as it was" || res.Evidence != evidenceFound || res.Attempt != 1 || time.Since(began) > 2*time.Second || f.count() != 0 {
			t.Errorf("after %s: %+v, sent %d times", time.Since(began), res, f.count())
		}
		if rec, err := w.space().Result(t.Context(), in.Key()); err != nil || rec.Tool.Evidence != evidenceFound {
			t.Errorf("record %+v, %v", rec, err)
		}
	})
}

func TestAnAttemptOfUnknownEndAsksAndSendsAgainWhatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sends := 0
		do := func(context.Context, tool.Call) (tool.Result, error) {
			if sends++; sends < 3 {
				return tool.Result{}, errors.New("status 502")
			}
			return tool.Result{Data: []byte("paid")}, nil
		}
		f := askable(t, agent.ClassReconcilable, time.Second, do, tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		res := w.mustAttempt(1, in)
		wantState(t, res, agent.StateCommitted)
		if res.Text != "paid" || f.count() != 3 {
			t.Errorf("sent %d times, result %+v", f.count(), res)
		}
	})
}

func TestSendingAgainWhatIsNeverThereHasAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, 0, fails(errors.New("status 502")), tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		res := w.mustAttempt(1, in)
		wantState(t, res, agent.StateFailed)
		if f.count() != sendTries || !w.recorded(in.Key()) {
			t.Errorf("sent %d times, recorded %v", f.count(), w.recorded(in.Key()))
		}
		if again := w.mustAttempt(2, in); !again.Adopted || f.count() != sendTries {
			t.Errorf("sent %d times, result %+v", f.count(), again)
		}
	})
}

func TestADestinationThatPanicsHangsOrErrsKnowsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		for name, f := range map[string]func(context.Context, tool.Call) (tool.Finding, tool.Result, error){
			"panic": func(context.Context, tool.Call) (tool.Finding, tool.Result, error) { panic("boom " + hush) },
			"hang": func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
				<-release
				return tool.Found, tool.Result{}, nil
			},
			"error": func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
				return tool.Found, tool.Result{}, errors.New("status 500 " + hush)
			},
			"nonsense": func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
				return "maybe", tool.Result{}, nil
			},
		} {
			fk := newFake(t, spec(agent.ClassReconcilable), nil)
			fk.finds = f
			w := newWorld(t, "mem://", fk)
			in := w.asked("pay", `{}`)
			w.dispatch(in, now())
			res := w.mustAttempt(2, in)
			wantState(t, res, agent.StateUncertain)
			if fk.questions() != askTries || fk.count() != 0 || strings.Contains(res.Note+res.Text, hush) {
				t.Errorf("%s: asked %d times, sent %d times, note %q", name, fk.questions(), fk.count(), res.Note)
			}
		}
	})
}

func TestAProofThatTakesLongerThanAnAttemptIsLeftToALaterOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, time.Hour, nil, tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		w.dispatch(in, now())
		var p Progress
		for n := 2; n < 10; n++ {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			res, next, err := w.attempt(ctx, n, p, in)
			ended := ctx.Err()
			cancel()
			if err == nil {
				wantState(t, res, agent.StateCommitted)
				if n != 3 {
					t.Errorf("sent by attempt %d", n)
				}
				return
			}
			if ended != nil {
				t.Fatal("the attempt ran into its timeout")
			}
			p = next
			time.Sleep(wantApp(t, err, agent.ErrTool, false).NextRetryDelay())
		}
		t.Error("never sent")
	})
}

func TestAnAttemptTakenForDeadDoesNotSpeakForTheOneThatFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		healed := make(chan struct{})
		f := askable(t, agent.ClassReconcilable, 0, nil, tool.Absent)
		f.do = func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if c.Attempt == 1 {
				<-healed
				return tool.Result{}, tool.NotSent(errors.New("connection refused"))
			}
			time.Sleep(5 * time.Second)
			return tool.Result{}, errors.New("status 502")
		}
		f.finds = func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
			if f.count() > 1 {
				return tool.Unknown, tool.Result{}, nil
			}
			return tool.Absent, tool.Result{}, nil
		}
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		zombie := make(chan agent.ToolResult)
		go func() {
			res, _, _ := w.attempt(t.Context(), 1, Progress{}, in)
			zombie <- res
		}()
		time.AfterFunc(11*time.Second, func() { close(healed) }) // within its own timeout and grace
		time.Sleep(time.Second)
		second := make(chan agent.ToolResult)
		go func() { // by a clock that has jumped
			p := &pulse{ctx: t.Context(), attempt: 2, started: time.Now().Add(15 * time.Second), began: time.Now(), beat: func(Progress) {}}
			res, err := w.tool(p, in)
			if err != nil {
				t.Error(err)
			}
			second <- res
		}()
		wantState(t, <-zombie, agent.StateUncertain)
		if w.recorded(in.Key()) {
			t.Error("a zombie ended what another attempt was sending")
		}
		wantState(t, <-second, agent.StateUncertain)
	})
}

func TestOfTwoAttemptsThatFindAbsenceOneSends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, 0, nil, tool.Absent)
		answers := make(chan struct{})
		f.finds = func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
			<-answers // both have asked before either goes on
			return tool.Absent, tool.Result{}, nil
		}
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		w.dispatch(in, now().Add(-time.Hour))
		ended := make(chan error)
		for n := range 2 {
			go func() {
				_, _, err := w.attempt(t.Context(), n+2, Progress{}, in)
				ended <- err
			}()
		}
		time.Sleep(time.Second)
		close(answers)
		one, other := <-ended, <-ended
		if f.count() != 1 || (one == nil) == (other == nil) {
			t.Errorf("sent %d times: %v, %v", f.count(), one, other)
		}
	})
}

// asking runs the reconciliation of one effect.
func (w *world) asking(in agent.ToolInput) agent.ToolResult {
	w.t.Helper()
	res, err := w.reconcile(w.t.Context(), w.snap, w.scope, agent.Effect{Key: in.Key(), Class: in.Class, Action: in.Action, Attempt: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// left puts the whole dispatch record of an attempt there that was killed after it.
func (w *world) left(in agent.ToolInput, at time.Time) {
	w.t.Helper()
	tl, _ := w.snap.Tools.Lookup(in.Tool)
	r := &toolRun{Activities: w.Activities, pulse: quietly(w.t.Context(), 1), snap: w.snap, in: in, space: w.space(), key: in.Key(), spec: tl.Spec()}
	d, err := r.whole(r.sending(0))
	d.At, d.SendBy = at, at.Add(10*time.Second)
	if err == nil {
		_, _, err = w.space().CreateDispatch(w.t.Context(), d)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestReconcileAsksTheDestinationAndSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, class := range effects {
			for finding, want := range map[tool.Finding]agent.State{
				tool.Found: agent.StateCommitted, tool.Absent: agent.StateFailed, tool.Unknown: agent.StateUncertain,
			} {
				f := askable(t, class, 5*time.Second, nil, finding)
				w := newWorld(t, "mem://", f)
				in := w.asked("pay", `{}`)
				w.left(in, now())
				began := time.Now()
				res := w.asking(in)
				if res.State != want || f.count() != 0 {
					t.Errorf("%s %s: %s (%s), sent %d times", class, finding, res.State, res.Note, f.count())
				}
				if finding == tool.Absent && time.Since(began) < 15*time.Second {
					t.Errorf("%s: failed after %s", class, time.Since(began))
				}
				if want == agent.StateUncertain {
					continue
				}
				if !w.recorded(in.Key()) {
					t.Errorf("%s %s: no record", class, finding)
				}
				// A zombie finds the end of it.
				if res := w.mustAttempt(2, in); res.State != want || f.count() != 0 {
					t.Errorf("%s %s: then %s, sent %d times", class, finding, res.State, f.count())
				}
			}
		}
	})
}

func TestReconcileDoesNotWaitForALongProof(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, time.Hour, nil, tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		w.left(in, now())
		began := time.Now()
		res := w.asking(in)
		wantState(t, res, agent.StateUncertain)
		if time.Since(began) > time.Second || !strings.Contains(res.Note, "has nothing of it") {
			t.Errorf("after %s: %q", time.Since(began), res.Note)
		}
		time.Sleep(2 * time.Hour)
		wantState(t, w.asking(in), agent.StateFailed)
	})
}

func TestAToolThatHasChangedIsNotAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, 0, nil, tool.Absent)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		w.left(in, now().Add(-time.Hour))
		s := spec(agent.ClassReconcilable)
		s.Description = "another"
		other := newFake(t, s, nil)
		other.finds = finds(tool.Absent)
		w2 := worldOver(t, w.Store, other)
		wantState(t, w2.asking(in), agent.StateUncertain)
		if other.questions() != 0 {
			t.Error("another destination was asked")
		}
		wantState(t, worldOver(t, w.Store).asking(in), agent.StateUncertain)
	})
}

// A Go function sends when it is ready to, which may be at the end of its time.
func TestAbsenceProvesNothingWhileAFunctionMayStillSend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, time.Second, nil)
		var books atomic.Int32
		var tried atomic.Bool
		f.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
			time.Sleep(9 * time.Second)
			if !tried.Swap(true) {
				return tool.Result{}, tool.NotSent(errors.New("no connection"))
			}
			books.Add(1)
			return tool.Result{Data: []byte("paid")}, nil
		}
		f.finds = func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
			if books.Load() > 0 {
				return tool.Found, tool.Result{Data: []byte("paid")}, nil
			}
			return tool.Absent, tool.Result{}, nil
		}
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		taken := make(chan agent.ToolResult)
		go func() { taken <- w.mustAttempt(1, in) }()
		time.Sleep(time.Second)
		wantState(t, w.mustAttempt(2, in), agent.StateCommitted)
		wantState(t, <-taken, agent.StateCommitted)
		if n := books.Load(); n != 1 {
			t.Errorf("paid %d times", n)
		}
	})
}

// The server had started the attempt long before it came to a machine that had stood still.
func TestAnAttemptThatComesLateToItsWorkerSaysUntilWhenItSends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := askable(t, agent.ClassReconcilable, 0, fails(errors.New("status 502")), tool.Unknown)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		began := now()
		p := &pulse{ctx: t.Context(), attempt: 1, started: began.Add(-time.Minute), began: time.Now(), beat: func(Progress) {}}
		if _, err := w.tool(p, in); err != nil {
			t.Fatal(err)
		}
		if d, _ := w.dispatched(in.Key()); d.SendBy.Before(began.Add(10 * time.Second)) {
			t.Errorf("it sends until %s, and its record says %s", began.Add(10*time.Second), d.SendBy)
		}
	})
}

// TestAClockThatIsAheadIsNotTakenForAMachineThatStoodStill: to whoever finds the record it would say that its attempt may
// send for as long as the clock is ahead. The server is asked which of the two it is; where it does not wait for the
// attempt any more, that sends nothing.
func TestAClockThatIsAheadIsNotTakenForAMachineThatStoodStill(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, given := range []bool{false, true} {
			f := newFake(t, spec(agent.ClassReconcilable), nil)
			w := newWorld(t, "mem://", f)
			if given {
				w.heard.beat = errGone
			}
			in := w.asked("pay", `{}`)
			p := &pulse{
				ctx: t.Context(), attempt: 1, started: now().Add(-time.Hour), began: time.Now(), wall: time.Now().Round(0),
				silence: 10 * time.Second, last: time.Now(), token: []byte("x"), beat: func(Progress) {},
			}
			_, err := w.tool(p, in)
			d, recorded := w.dispatched(in.Key())
			switch {
			case given && (err == nil || recorded || f.count() != 0):
				t.Errorf("given up before it came: %v, recorded %v, sent %d times", err, recorded, f.count())
			case !given && (err != nil || f.count() != 1 || d.SendBy.Sub(d.At) > maxSendBy+f.Spec().Timeout):
				t.Errorf("its clock is ahead: %v, sent %d times, may send for %s", err, f.count(), d.SendBy.Sub(d.At))
			}
		}
	})
}
