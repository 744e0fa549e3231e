package activities

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	_ "gocloud.dev/blob/memblob"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/transcript"
)

const hush = "hunter2-is-the-secret"

// A world is one worker over a real store, with tools that count.
type world struct {
	*Activities
	t     *testing.T
	scope agent.Scope
	snap  *Snapshot
	heard *signals
	stops chan struct{} // closed when the worker begins to stop
}

// signals is a client that remembers the signals it sends; workflows that are gone get none.
type signals struct {
	client.Client
	mu   sync.Mutex
	sent []string // "<workflow> <signal> <key>"
	gone map[string]bool
	beat error     // what the server says to a heartbeat
	down time.Time // until when it cannot be reached
	next int32     // attempt of the activity that goes on; 0 if none does
}

func (s *signals) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	out := &workflowservice.DescribeWorkflowExecutionResponse{}
	if s.next > 0 {
		out.PendingActivities = []*workflowpb.PendingActivityInfo{{ActivityId: "another", Attempt: 9}, {Attempt: s.next}}
	}
	return &client.WorkflowExecutionDescription{RawResponse: out}, nil
}

func (s *signals) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return s.beat }

func (s *signals) SignalWorkflow(_ context.Context, workflow, _, name string, arg any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.down) {
		return errors.New("unavailable")
	}
	if s.gone[workflow] {
		return serviceerror.NewNotFound("workflow execution already completed")
	}
	x, _ := arg.(agent.Settlement)
	s.sent = append(s.sent, workflow+" "+name+" "+x.Key)
	return nil
}

func (s *signals) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.sent...)
}

func newWorld(t *testing.T, url string, tools ...tool.Tool) *world {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return worldOver(t, s, tools...)
}

// worldOver is another worker over the same store.
func worldOver(t *testing.T, s *store.Store, tools ...tool.Tool) *world {
	t.Helper()
	for i, tl := range tools {
		if f, ok := tl.(*fake); ok {
			tools[i] = able(f)
		}
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	def := agent.Definition{Name: "clerk", Instructions: "Be exact.", Model: "m", Limits: agent.Limits{Calls: 8}}
	for _, tl := range tools {
		def.Tools = append(def.Tools, agent.ToolRef{Name: tl.Spec().Name, Version: tl.Spec().Version})
	}
	w := &world{t: t, scope: agent.NewScope("s1", "run-1"), heard: &signals{gone: map[string]bool{}}}
	allowed, err := policy.New(policy.Config{Rules: []policy.Rule{{Name: "everything", Then: agent.DecisionAllow}}})
	if err != nil {
		t.Fatal(err)
	}
	w.snap = &Snapshot{
		Serial: 3, Agents: map[string]agent.Definition{"clerk": def}, Models: map[string]Model{"m": {Name: "m"}},
		Tools: set, Policy: allowed, Mask: secret.New(hush),
	}
	a, err := New(Deps{
		Store: s, Log: transcript.New(s, 1<<20), Current: func() *Snapshot { return w.snap },
		Client: w.heard, Build: "b1",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Activities = a
	return w
}

func (w *world) space() *store.Space { return w.Store.Space(w.scope) }

// recordsOf is where the records of a key are: in the part of the store of the session that the key names.
func (w *world) recordsOf(key string) *store.Space {
	k, ok := agent.ParseKey(key)
	if !ok {
		return w.space()
	}
	return w.Store.Space(k.Scope)
}

// definition puts the agent's definition where a turn finds it.
func (w *world) digest() agent.Digest {
	w.t.Helper()
	d, err := w.keepDefinition(w.t.Context(), w.scope, w.snap.Agents["clerk"])
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// asked returns the input of the tool activity for a call of a tool, as the model activity decided on it.
func (w *world) asked(name, args string) agent.ToolInput {
	w.t.Helper()
	tl, ok := w.snap.Tools.Lookup(name)
	if !ok {
		w.t.Fatalf("no tool %q", name)
	}
	place := agent.Place{Turn: 1, Step: 2, Call: 1}
	return agent.ToolInput{
		Scope: w.scope, Place: place, Definition: w.digest().Short(), Tool: name, Args: args,
		Class: tl.Spec().Class, Action: action(tl.Spec(), args, place).Digest(), Store: w.Store.ID(), Serial: 3,
	}
}

// at gives an action another place in its turn, and so another key.
func (w *world) at(in agent.ToolInput, step int) agent.ToolInput {
	tl, _ := w.snap.Tools.Lookup(in.Tool)
	in.Step = step
	in.Action = action(tl.Spec(), in.Args, in.Place).Digest()
	return in
}

func keyOf(in agent.ToolInput) string { return agent.ActionKey(in.Scope, in.Place, in.Action) }

// attempt runs one attempt of a tool call after another that left prev behind, and returns what it leaves.
func (w *world) attempt(ctx context.Context, n int, prev Progress, in agent.ToolInput) (agent.ToolResult, Progress, error) {
	p := &pulse{ctx: ctx, attempt: n, started: time.Now(), began: time.Now(), beat: func(Progress) {}, done: make(chan struct{}), stops: w.stops, p: prev}
	res, err := w.tool(p, in)
	return res, p.progress(), err
}

func (w *world) mustAttempt(n int, in agent.ToolInput) agent.ToolResult {
	w.t.Helper()
	res, _, err := w.attempt(w.t.Context(), n, Progress{}, in)
	if err != nil {
		w.t.Fatalf("attempt %d: %v", n, err)
	}
	return res
}

func (w *world) recorded(key string) bool {
	w.t.Helper()
	_, err := w.recordsOf(key).Result(w.t.Context(), key)
	if err != nil && !errors.Is(err, store.ErrAbsent) {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) dispatched(key string) (store.Dispatch, bool) {
	w.t.Helper()
	d, err := w.recordsOf(key).Dispatch(w.t.Context(), key)
	if err != nil && !errors.Is(err, store.ErrAbsent) {
		w.t.Fatal(err)
	}
	return d, err == nil
}

// dispatch puts a dispatch record there, as an attempt leaves it that died after sending.
func (w *world) dispatch(in agent.ToolInput, at time.Time) store.Dispatch {
	w.t.Helper()
	d := store.Dispatch{Key: keyOf(in), Attempt: 1, Token: "dead", Class: in.Class, Action: in.Action, At: at, SendBy: at.Add(30 * time.Second)}
	if first, _, err := w.Store.Space(in.Scope).CreateDispatch(w.t.Context(), d); err != nil || !first {
		w.t.Fatalf("dispatch: %v, %v", first, err)
	}
	return d
}

// A fake is a tool that counts, and remembers its calls. What it can do besides is what is set of it: see able.
type fake struct {
	spec tool.Spec
	do   func(ctx context.Context, c tool.Call) (tool.Result, error)

	finds func(ctx context.Context, c tool.Call) (tool.Finding, tool.Result, error)
	sees  func() (string, error)
	stops func(c tool.Call) error

	mu    sync.Mutex
	calls []tool.Call
	asked int
}

func newFake(t *testing.T, spec tool.Spec, do func(context.Context, tool.Call) (tool.Result, error)) *fake {
	t.Helper()
	if len(spec.Parameters) == 0 {
		spec.Parameters = []byte(`{"type":"object"}`)
	}
	spec, err := tool.Declare(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if do == nil {
		do = says("done")
	}
	f := &fake{spec: spec, do: do}
	if spec.Class == agent.ClassReconcilable {
		f.finds = finds(tool.Unknown)
	}
	return f
}

func finds(f tool.Finding) func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Finding, tool.Result, error) {
		return f, tool.Result{Data: []byte("as it was")}, nil
	}
}

func (f *fake) Spec() tool.Spec { return f.spec }

func (f *fake) Do(ctx context.Context, c tool.Call) (tool.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	return f.do(ctx, c)
}

// able returns the fake as a tool that has the methods of what is set of it, and no others.
func able(f *fake) tool.Tool {
	type (
		asks  struct{ reconciling }
		looks struct{ observing }
		stops struct{ cancelling }
	)
	switch asked, seen, stopped := (reconciling{f}), (observing{f}), (cancelling{f}); {
	case f.finds != nil && f.sees != nil:
		return struct {
			*fake
			asks
			looks
		}{f, asks{asked}, looks{seen}}
	case f.finds != nil && f.stops != nil:
		return struct {
			*fake
			asks
			stops
		}{f, asks{asked}, stops{stopped}}
	case f.finds != nil:
		return struct {
			*fake
			asks
		}{f, asks{asked}}
	case f.sees != nil:
		return struct {
			*fake
			looks
		}{f, looks{seen}}
	case f.stops != nil:
		return struct {
			*fake
			stops
		}{f, stops{stopped}}
	}
	return f
}

type reconciling struct{ f *fake }

func (r reconciling) Reconcile(ctx context.Context, c tool.Call) (tool.Finding, tool.Result, error) {
	r.f.mu.Lock()
	r.f.asked++
	r.f.mu.Unlock()
	return r.f.finds(ctx, c)
}

type observing struct{ f *fake }

func (o observing) Observe(context.Context, tool.Call) (tool.Result, error) {
	text, err := o.f.sees()
	return tool.Result{Data: []byte(text)}, err
}

type cancelling struct{ f *fake }

func (c cancelling) Cancel(_ context.Context, call tool.Call) error { return c.f.stops(call) }

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

type doFunc = func(context.Context, tool.Call) (tool.Result, error)

// questions counts how often it was asked what became of a call.
func (f *fake) questions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func says(text string) doFunc {
	return func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Data: []byte(text)}, nil }
}

func fails(err error) doFunc {
	return func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, err }
}

// wantApp holds an error to be an application error of a type, final or to be tried again.
func wantApp(t *testing.T, err error, kind string, final bool) *temporal.ApplicationError {
	t.Helper()
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != kind || app.NonRetryable() != final {
		t.Fatalf("error %v: want type %q, final %v", err, kind, final)
	}
	return app
}

func wantState(t *testing.T, r agent.ToolResult, s agent.State) {
	t.Helper()
	if r.State != s {
		t.Fatalf("state %q (text %q, note %q), want %q", r.State, r.Text, r.Note, s)
	}
	if s == agent.StateUncertain && r.Attempt == 0 {
		t.Error("an uncertain result names no attempt")
	}
	if (s == agent.StateCancelled || s == agent.StateDenied) && r.Attempt != 0 {
		t.Errorf("a result of which nothing was sent names attempt %d", r.Attempt)
	}
}
