package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

func TestErrorsOfAModelEndOrAreTriedAgainAsTheirClassSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step  modeltest.Step
		kind  string
		final bool
		wait  time.Duration
	}{
		{modeltest.Step{Status: 429, Headers: map[string]string{"Retry-After": "7"}}, agent.ErrRateLimit, false, 7 * time.Second},
		{modeltest.Step{Status: 429, Headers: map[string]string{"Retry-After": "300"}}, agent.ErrRateLimit, false, maxRetryAfter},
		{modeltest.Fail(503, "overloaded", "come back"), agent.ErrOverloaded, false, 0},
		{modeltest.Fail(401, "invalid_api_key", "your key is "+hush), agent.ErrAuthentication, true, 0},
		{modeltest.Fail(400, "context_length_exceeded", "maximum context length is 8192"), agent.ErrContextLength, true, 0},
		{modeltest.Fail(429, "insufficient_quota", "quota"), agent.ErrQuota, true, 0},
		{modeltest.Step{Message: json.RawMessage(`{"role":"assistant","content":"x"}`), Close: "half"}, agent.ErrStreamCut, false, 0},
	} {
		w := newWorld(t, "mem://")
		w.talk(t, modeltest.Config{Steps: []modeltest.Step{c.step}})
		_, p, err := w.askOnce(t.Context(), 1, Progress{}, w.hears("hello"))
		app := wantApp(t, err, c.kind, c.final)
		if c.wait != 0 && app.NextRetryDelay() != c.wait || !c.final && (app.NextRetryDelay() <= 0 || p.Troubles != 1 || p.Since.IsZero()) {
			t.Errorf("%s: delay %s, progress %+v", c.kind, app.NextRetryDelay(), p)
		}
		if strings.Contains(err.Error(), hush) {
			t.Errorf("%s: the error shows the key: %v", c.kind, err)
		}
	}
}

func TestACallIsGivenUpWhenItsTimeSinceTheFirstTroubleIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	w.talk(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step { return modeltest.Fail(503, "overloaded", "no") }})
	in := w.hears("hello")
	young := Progress{Troubles: 30, Since: time.Now().Add(-DefaultCall + time.Minute)}
	_, p, err := w.askOnce(t.Context(), 31, young, in)
	wantApp(t, err, agent.ErrOverloaded, false)
	if p.Since != young.Since {
		t.Error("the first trouble's time moved")
	}
	_, _, err = w.askOnce(t.Context(), 32, Progress{Troubles: 30, Since: time.Now().Add(-DefaultCall)}, in)
	wantApp(t, err, agent.ErrOverloaded, true)
}

func TestAnswersThatCannotBeReadAreAskedForThreeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	srv := w.talk(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step {
		return modeltest.Step{Body: json.RawMessage(`"<html>sign in</html>"`), Headers: map[string]string{"Content-Type": "text/html"}}
	}})
	in := w.hears("hello")
	var p Progress
	var err error
	for n := 1; n < badTries; n++ {
		_, p, err = w.askOnce(t.Context(), n, p, in)
		wantApp(t, err, agent.ErrBadAnswer, false)
	}
	_, _, err = w.askOnce(t.Context(), badTries, p, in)
	wantApp(t, err, agent.ErrBadAnswer, true)
	if srv.Count() != badTries {
		t.Errorf("asked %d times", srv.Count())
	}
}

func TestCancelEndsARunningCallAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	srv := modeltest.ForTest(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step { return modeltest.Say("late").Slow(30) }})
	w.connect(t, srv.URL(), true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	_, _, err := w.askOnce(ctx, 1, Progress{}, w.hears("hello"))
	if !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestOnlySoManyRequestsAreOpenAtAModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	var mu sync.Mutex
	open, most := 0, 0
	w.talk(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		time.Sleep(30 * time.Millisecond)
		mu.Lock()
		open--
		mu.Unlock()
		return modeltest.Say("hi")
	}})
	m := w.snap.Models["m"]
	m.Concurrent = 2
	w.snap.Models["m"] = m
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if _, _, err := w.askOnce(t.Context(), 1, Progress{}, w.hears(fmt.Sprint("hello ", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most > 2 {
		t.Errorf("%d requests were open at once, want 2", most)
	}
}
