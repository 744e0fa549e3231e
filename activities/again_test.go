package activities

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// byAttempt is a tool whose attempts end in different ways.
func byAttempt(t *testing.T, ends map[int]func() error) *fake {
	t.Helper()
	return newFake(t, spec(agent.ClassIdempotent), func(_ context.Context, c tool.Call) (tool.Result, error) {
		if end := ends[c.Attempt]; end != nil {
			return tool.Result{}, end()
		}
		return tool.Result{Data: []byte("paid")}, nil
	})
}

func always(err error) func() error { return func() error { return err } }

var (
	errLost    = tool.Ambiguous(errors.New("it may have been done, and the connection broke"))
	errRefused = tool.Failed(errors.New("401 the token has expired"))
	errUnsent  = tool.NotSent(errors.New("connection refused"))
)

func TestARepeatThatIsRefusedProvesNothingAboutTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "mem://", byAttempt(t, map[int]func() error{1: always(errLost), 2: always(errRefused)}))
		in := w.asked("pay", `{}`)
		_, p, err := w.attempt(t.Context(), 1, Progress{}, in)
		wantApp(t, err, agent.ErrTool, false)
		res, _, err := w.attempt(t.Context(), 2, p, in)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateUncertain)
		if w.recorded(keyOf(in)) || !strings.Contains(res.Note, "401") {
			t.Errorf("recorded %v, note %q", w.recorded(keyOf(in)), res.Note)
		}
	})
}

func TestARepeatThatIsRefusedAfterNothingWasSentHasFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := byAttempt(t, map[int]func() error{1: always(errUnsent), 2: always(errRefused)})
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		_, p, err := w.attempt(t.Context(), 1, Progress{}, in)
		wantApp(t, err, agent.ErrTool, false)
		res, _, err := w.attempt(t.Context(), 2, p, in)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateFailed)
		if !w.recorded(keyOf(in)) || !strings.Contains(res.Text, "401") {
			t.Errorf("recorded %v, text %q", w.recorded(keyOf(in)), res.Text)
		}
	})
}

// A worker loses its network after the dispatch record: another one takes over and sends, and what the first
// one learns of its own attempt says nothing about that.
func TestAZombieDoesNotSpeakForTheAttemptThatTookOver(t *testing.T) {
	for name, end := range map[string]error{"not sent": errUnsent, "refused": errRefused} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sending, healed := make(chan struct{}), make(chan struct{})
				w := newWorld(t, "mem://", byAttempt(t, map[int]func() error{
					1: func() error { close(sending); <-healed; return end },
					2: always(errLost),
				}))
				in := w.asked("pay", `{}`)
				ctx, lost := context.WithCancel(t.Context())
				zombie := make(chan agent.ToolResult)
				go func() {
					res, _, _ := w.attempt(ctx, 1, Progress{}, in)
					zombie <- res
				}()
				<-sending
				_, p, err := w.attempt(t.Context(), 2, Progress{}, in)
				wantApp(t, err, agent.ErrTool, false)
				lost() // its heartbeat is refused
				close(healed)
				wantState(t, <-zombie, agent.StateUncertain)
				res, _, err := w.attempt(t.Context(), 3, p, in)
				if err != nil {
					t.Fatal(err)
				}
				wantState(t, res, agent.StateCommitted)
			})
		})
	}
}

func TestWhatAllAttemptsDidNotDoIsNotSentByAZombie(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := byAttempt(t, map[int]func() error{2: always(errRefused)})
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		r := &toolRun{
			Activities: w.Activities, pulse: &pulse{ctx: t.Context(), attempt: 1, beat: func(Progress) {}}, snap: w.snap, in: in,
			space: w.space(), key: keyOf(in), tool: tool.Tool(f), spec: f.spec, admitted: time.Now(),
		}
		// The zombie has looked for an outcome and found none when attempt 2 is refused for good.
		wantState(t, w.mustAttempt(2, in), agent.StateFailed)
		standing, _ := w.dispatched(keyOf(in))
		sent := f.count()
		res, err := r.again(standing)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateFailed)
		if f.count() != sent || !res.Adopted {
			t.Errorf("sent %d times more: %+v", f.count()-sent, res)
		}
	})
}

func TestACancelledRepeatIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := byAttempt(t, nil)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		standing := w.dispatch(in, now())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := &toolRun{
			Activities: w.Activities, pulse: &pulse{ctx: ctx, attempt: 2, beat: func(Progress) {}}, snap: w.snap, in: in,
			space: w.space(), key: keyOf(in), tool: tool.Tool(f), spec: f.spec, admitted: time.Now(),
		}
		res, err := r.again(standing)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateUncertain)
		if f.count() != 0 {
			t.Errorf("sent %d times", f.count())
		}
	})
}
