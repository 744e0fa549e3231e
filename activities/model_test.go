package activities

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// talk points the world's model at a scripted server.
func (w *world) talk(t *testing.T, c modeltest.Config) *modeltest.Server {
	t.Helper()
	srv := modeltest.ForTest(t, c)
	w.connect(t, srv.URL(), true)
	return srv
}

func (w *world) connect(t *testing.T, url string, stream bool) {
	t.Helper()
	client, err := openai.New(openai.Config{BaseURL: url, Model: "test-model", Key: hush, Stream: stream, AttemptTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w.snap.Models = map[string]Model{"m": {Name: "m", Client: client, Price: Price{Input: 2, CachedInput: 1, Output: 8}}}
}

func (w *world) hears(text string) agent.ModelInput {
	return agent.ModelInput{
		Scope: w.scope, Place: agent.Place{Turn: 1, Step: 1}, Definition: w.digest().Short(),
		Entries: []agent.Entry{{Role: agent.RoleUser, Text: text}}, Store: w.Store.ID(), Serial: 3,
	}
}

func (w *world) askOnce(ctx context.Context, n int, prev Progress, in agent.ModelInput) (agent.ModelResult, Progress, error) {
	p := &pulse{ctx: ctx, attempt: n, beat: func(Progress) {}, done: make(chan struct{}), p: prev}
	res, err := w.model(p, in)
	return res, p.progress(), err
}

func (w *world) mustAsk(in agent.ModelInput) agent.ModelResult {
	w.t.Helper()
	res, _, err := w.askOnce(w.t.Context(), 1, Progress{}, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func call(id, name, args string) modeltest.Call {
	return modeltest.Call{ID: id, Name: name, Args: args}
}

func TestAnAnswerIsKeptAndAnAdoptedOneIsNotPaidForAgain(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, url, f)
		srv := w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{"n": 1, "to":"acme"}`))}})
		in := w.hears("pay acme")
		res := w.mustAsk(in)
		want := agent.Place{Turn: 1, Step: 1, Call: 1}
		if len(res.Calls) != 1 || res.Calls[0].Args != `{"n":1,"to":"acme"}` || res.Calls[0].Action != action(f.spec, `{"n":1,"to":"acme"}`, want).Digest() {
			t.Fatalf("calls %+v", res.Calls)
		}
		if c := res.Calls[0]; c.Verdict.Decision != agent.DecisionAllow || c.Timeout.Std() != 10*time.Second || c.Class != agent.ClassOnce || c.Intent == "" || c.Summary != "pay 1 acme" {
			t.Errorf("call %+v", c)
		}
		if res.Head.Seq != 1 || res.Usage.Calls != 1 || res.Usage.Micros != 2*(res.Usage.Input-res.Usage.Cached)+res.Usage.Cached+8*res.Usage.Output || res.Producer.Build != "b1" || res.Producer.Tools != "" {
			t.Errorf("result %+v", res)
		}
		// A later attempt, on a worker that knows nothing and could not ask: the first one died after its record.
		w2 := worldOver(t, w.Store, f)
		again := w2.mustAsk(in)
		res.Adopted = true
		if diff := cmp.Diff(res, again); diff != "" {
			t.Errorf("adopted differs (-first +adopted):\n%s", diff)
		}
		if n := srv.Charges().Answers; n != 1 {
			t.Errorf("paid %d times", n)
		}
		conv, err := w2.Log.Read(t.Context(), w.scope, again.Head)
		if err != nil || len(conv.Entries) != 2 || conv.Entries[1].Calls[0].Args != `{"n": 1, "to":"acme"}` {
			t.Errorf("transcript %+v, %v: want the arguments as they were written", conv.Entries, err)
		}
	}
}

func TestTwoAttemptsAtOnceEndWithOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	n := 0
	var mu sync.Mutex
	w.talk(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step {
		mu.Lock()
		defer mu.Unlock()
		n++
		return modeltest.Say(fmt.Sprintf("answer %d", n)).Slow(0.05)
	}})
	in := w.hears("hello")
	var wg sync.WaitGroup
	results := make([]agent.ModelResult, 4)
	for i := range results {
		wg.Go(func() { results[i], _, _ = w.askOnce(t.Context(), i+1, Progress{}, in) })
	}
	wg.Wait()
	for _, r := range results[1:] {
		if r.Text != results[0].Text || r.Head != results[0].Head || r.Text == "" {
			t.Errorf("answers %q %v and %q %v", results[0].Text, results[0].Head, r.Text, r.Head)
		}
	}
}

func TestALongAnswerGoesToTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	text := strings.Repeat("ä", agent.MaxAnswer/2+1)
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Say(text)}})
	res := w.mustAsk(w.hears("hello"))
	if res.Body == nil || len(res.Text) > agent.MaxAnswer || !strings.HasPrefix(text, res.Text) {
		t.Fatalf("text of %d bytes, body %+v", len(res.Text), res.Body)
	}
	if b, err := w.space().Body(t.Context(), *res.Body); err != nil || string(b) != text {
		t.Errorf("stored %d bytes, %v", len(b), err)
	}
	conv, err := w.Log.Read(t.Context(), w.scope, res.Head)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := w.Log.Texts(t.Context(), w.scope, conv.Entries[1:]); err != nil || got[0] != text {
		t.Errorf("transcript has %.100q, %v", got, err)
	}
}
