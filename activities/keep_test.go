package activities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"gocloud.dev/blob/memblob"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

func TestAStoreThatFailsAfterTheCommitDoesNotChangeWhatHappened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bucket := memblob.OpenBucket(nil)
		s, err := store.OpenBucket(t.Context(), bucket, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := newFake(t, spec(agent.ClassOnce), func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Data: []byte("paid")}, bucket.Close()
		})
		w := worldOver(t, s, f)
		res := w.mustAttempt(1, w.asked("pay", `{}`))
		wantState(t, res, agent.StateCommitted)
		if res.Text != "paid" || !strings.Contains(res.Note, "record could not be written") {
			t.Errorf("result %+v", res)
		}
	})
}

func TestAPaidAnswerIsKeptByAStoreThatComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		w := newWorld(t, "file://"+dir)
		in := w.hears("hello")
		p := &pulse{ctx: t.Context(), attempt: 1, beat: func(Progress) {}}
		key, err := modelKey(in)
		if err != nil {
			t.Fatal(err)
		}
		r := &modelRun{
			Activities: w.Activities, pulse: p, snap: w.snap, in: in, space: w.space(), key: key,
			desk: desk{snap: w.snap, def: w.snap.Agents["clerk"], scope: w.scope, place: in.Place},
		}
		// A file where the folder was: nothing can be read or written.
		if err := errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.AfterFunc(20*time.Second, func() {
			if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
				t.Error(err)
			}
		})
		res, err := r.keep(thread{}, openai.Answer{Text: "hi", Finish: agent.FinishStop})
		if err != nil || res.Head.Seq != 1 || time.Since(start) < 20*time.Second {
			t.Fatalf("after %s: %+v, %v", time.Since(start), res, err)
		}
		if !w.recorded(key) {
			t.Error("the answer has no record")
		}
	})
}

func TestWritingIsGivenUpInTimeAndSoonAfterACancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := func(context.Context) (int, error) { return 0, errors.New("no store") }
		start := time.Now()
		_, err := persist(t.Context(), broken)
		if took := time.Since(start); err == nil || took > keepFor || took < keepFor-longWait {
			t.Errorf("gave up after %s: %v", took, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		_, err = persist(ctx, broken)
		if took := time.Since(start); err == nil || took > keepGrace {
			t.Errorf("after a cancellation it went on for %s: %v", took, err)
		}
		tries := 0
		_, err = persist(t.Context(), func(context.Context) (int, error) { tries++; return 0, store.ErrDamaged })
		if tries != 1 || !errors.Is(err, store.ErrDamaged) {
			t.Errorf("tried %d times although the object is damaged: %v", tries, err)
		}
	})
}

func TestRecordsThatCannotBeTrustedMakeAnEffectUncertain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, kind := range []store.Kind{store.KindDispatches, store.KindResults} {
			for _, class := range effects {
				f := newFake(t, spec(class), nil)
				w := newWorld(t, "mem://", f)
				in := w.asked("pay", `{}`)
				if kind == store.KindResults {
					w.dispatch(in, now())
				}
				if _, _, err := w.space().Create(t.Context(), kind, keyOf(in), []byte("{}")); err != nil {
					t.Fatal(err)
				}
				wantState(t, w.mustAttempt(2, in), agent.StateUncertain)
				rec, err := w.reconcile(t.Context(), w.snap, w.scope, agent.Effect{Key: keyOf(in), Class: class})
				if err != nil {
					t.Fatal(err)
				}
				wantState(t, rec, agent.StateUncertain)
				if f.count() != 0 {
					t.Errorf("%s, %s: sent %d times", kind, class, f.count())
				}
			}
		}
	})
}

func TestErrorsAreMaskedBeforeTheyAreCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	// The cut would fall into the secret.
	err := w.snap.retryable(agent.ErrStore, 0, "%s%s%s", strings.Repeat("x", maxError-len(hush)/2-1), hush, "tail")
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || len(app.Message()) > maxError || strings.Contains(app.Message(), hush[:6]) {
		t.Errorf("error of %d bytes ends %q", len(app.Message()), tail(app.Message(), 40))
	}
}

func TestWaitsGrowAndAreCapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked    time.Duration
		troubles int
		min, max time.Duration
	}{
		{0, 0, 300 * time.Millisecond, 500 * time.Millisecond},
		{0, 1, 300 * time.Millisecond, 500 * time.Millisecond},
		{0, 3, 1500 * time.Millisecond, 2 * time.Second},
		{0, 1000, 20 * time.Second, 30 * time.Second},
		{time.Second, 9, time.Second, time.Second},
		{time.Hour, 1, maxRetryAfter, maxRetryAfter},
	} {
		if got := pause(c.asked, c.troubles); got < c.min || got > c.max {
			t.Errorf("pause(%s, %d) = %s, want %s to %s", c.asked, c.troubles, got, c.min, c.max)
		}
	}
}
