package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

func TestACancelIsAskedOfTheToolOnceAndItsAnswerIsAFact(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stopped := tool.Failed(errors.New("stopped"))
		yes, no := func(tool.Call) error { return nil }, func(tool.Call) error { return errors.New("too late") }
		for _, c := range []struct {
			name  string
			cause error
			stops func(tool.Call) error // nil: the tool cannot
			end   error                 // of the call
			asks  int
			state agent.State
			fact  agent.CancelFact
		}{
			{"the tool stops it", errUserCancel, yes, stopped, 1, agent.StateFailed, agent.CancelAccepted},
			{"the tool says it will, and it commits", errUserCancel, yes, nil, 1, agent.StateCommitted, agent.CancelCompleted},
			{"the tool will not", errUserCancel, no, nil, 1, agent.StateCommitted, agent.CancelRefused},
			{"the tool cannot", errUserCancel, nil, nil, 0, agent.StateCommitted, agent.CancelRefused},
			{"the tool panics", errUserCancel, func(tool.Call) error { panic("boom") }, nil, 1, agent.StateCommitted, agent.CancelRefused},
			{"nobody knows what it came to", errUserCancel, yes, errors.New("cut off"), 1, agent.StateUncertain, agent.CancelAccepted},
			{"the worker stops", errShutdown, yes, nil, 0, agent.StateCommitted, ""},
			{"the attempt was given up", errGone, yes, nil, 0, agent.StateCommitted, ""},
		} {
			f := newFake(t, spec(agent.ClassOnce), slow("paid", c.end))
			asks := 0
			if c.stops != nil {
				f.stops = func(call tool.Call) error {
					asks++
					if call.Key == "" {
						t.Errorf("%s: asked about nothing", c.name)
					}
					return c.stops(call)
				}
			}
			w := newWorld(t, "mem://", f)
			res, err := w.during(w.asked("pay", `{}`), c.cause)
			if err != nil {
				t.Fatal(err)
			}
			if asks != c.asks || res.Cancel != c.fact || res.State != c.state {
				t.Errorf("%s: asked %d times, %s, fact %q; want %d, %s, %q", c.name, asks, res.State, res.Cancel, c.asks, c.state, c.fact)
			}
		}
	})
}

func TestACallThatEndsBeforeTheCancelHasNoFact(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		f.stops = func(tool.Call) error { t.Error("asked"); return nil }
		w := newWorld(t, "mem://", f)
		if res := w.mustAttempt(1, w.asked("pay", `{}`)); res.Cancel != "" {
			t.Errorf("fact %q", res.Cancel)
		}
	})
}

func TestACancelledCallOfUnknownEndIsAskedAbout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for finding, want := range map[tool.Finding]agent.State{
			tool.Found: agent.StateCommitted, tool.Absent: agent.StateFailed, tool.Unknown: agent.StateUncertain,
		} {
			f := newFake(t, spec(agent.ClassReconcilable), slow("", errors.New("cut off")))
			f.finds = finds(finding)
			w := newWorld(t, "mem://", f)
			in := w.asked("pay", `{}`)
			res, err := w.during(in, errUserCancel)
			if err != nil {
				t.Fatal(err)
			}
			if res.State != want || f.count() != 1 {
				t.Errorf("%s: %s (%s), sent %d times", finding, res.State, res.Note, f.count())
			}
		}
	})
}

// stopsWhile is a tool whose worker begins to stop while it cannot reach its destination.
func stopsWhile(t *testing.T, class agent.Class) (*world, *fake) {
	t.Helper()
	var w *world
	f := newFake(t, spec(class), nil)
	f.do = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Attempt == 1 {
			close(w.stops)
			return tool.Result{}, tool.NotSent(errors.New("connection refused"))
		}
		return says("paid")(ctx, c)
	}
	w = newWorld(t, "mem://", f)
	w.stops = make(chan struct{})
	return w, f
}

func TestAWorkerThatStopsBeforeItHasSentLeavesTheCallToAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, class := range effects {
			w, f := stopsWhile(t, class)
			in := w.asked("pay", `{}`)
			began := time.Now()
			_, p, err := w.attempt(t.Context(), 1, Progress{}, in)
			wantApp(t, err, agent.ErrTool, false)
			if w.recorded(in.Key()) || time.Since(began) > time.Second {
				t.Errorf("%s: after %s, recorded %v", class, time.Since(began), w.recorded(in.Key()))
			}
			w.stops = nil
			res, _, err := w.attempt(t.Context(), 2, p, in)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, res, agent.StateCommitted)
			if f.count() != 2 || res.Attempt != 2 {
				t.Errorf("%s: sent %d times, result %+v", class, f.count(), res)
			}
		}
	})
}

func TestALostWordOfTheStoppedWorkerMeansThatNobodyKnows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, f := stopsWhile(t, agent.ClassOnce)
		in := w.asked("pay", `{}`)
		_, p, _ := w.attempt(t.Context(), 1, Progress{}, in)
		w.stops = nil
		// The next one took its place and died.
		again := claimOf(in.Key()+"/again-1", 2, in.Class, in.Action)
		again.Revoked = false
		if _, _, err := w.space().CreateDispatch(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		for _, p := range []Progress{p, {}} {
			res, _, err := w.attempt(t.Context(), 3, p, in)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, res, agent.StateUncertain)
		}
		if f.count() != 1 {
			t.Errorf("sent %d times", f.count())
		}
	})
}

func TestAStoppedCallThatPolicyNoLongerAllowsIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, d := range []agent.Decision{agent.DecisionDeny, agent.DecisionAsk} {
			w, f := stopsWhile(t, agent.ClassOnce)
			in := w.asked("pay", `{}`)
			_, p, _ := w.attempt(t.Context(), 1, Progress{}, in)
			w.stops = nil
			w.snap.Policy = saying(t, d)
			res, _, err := w.attempt(t.Context(), 2, p, in)
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, res, agent.StateFailed)
			if f.count() != 1 || !w.recorded(in.Key()) {
				t.Errorf("%s: sent %d times, recorded %v", d, f.count(), w.recorded(in.Key()))
			}
		}
	})
}

func TestAStoppingWorkerBeginsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		w.stops = make(chan struct{})
		close(w.stops)
		in := w.asked("pay", `{}`)
		_, _, err := w.attempt(t.Context(), 1, Progress{}, in)
		wantApp(t, err, agent.ErrTool, false)
		if _, ok := w.dispatched(in.Key()); ok || f.count() != 0 {
			t.Errorf("dispatched %v, sent %d times", ok, f.count())
		}
		// Nor does it keep its stop waiting for an earlier attempt.
		w.dispatch(in, now())
		began := time.Now()
		if _, _, err = w.attempt(t.Context(), 2, Progress{}, in); err == nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
