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

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/transcript"
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

func TestAVerdictIsDecidedAnewFromAnAdoptedAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
	in := w.hears("pay")
	if res := w.mustAsk(in); res.Calls[0].Trouble != "" {
		t.Fatalf("trouble %q", res.Calls[0].Trouble)
	}
	w.snap.Policy = &policy.Policy{}
	res := w.mustAsk(in)
	if c := res.Calls[0]; c.Verdict.Decision != agent.DecisionDeny || !strings.HasPrefix(c.Trouble, "not allowed") || c.Args != "" {
		t.Errorf("call %+v, want today's denial", c)
	}
}

// The turn is reset after the payment was sent, and the tool's declaration or the policy is another one by then.
func TestAnAdoptedCallThatWasSentIsNotDecidedToBeAnotherOne(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"tool": func(w *world) {
			other := spec(agent.ClassOnce)
			other.Description = "Pays, said better."
			w.snap.Tools, _ = tool.NewSet(newFake(t, other, nil))
		},
		"policy": func(w *world) { w.snap.Policy = &policy.Policy{} },
	} {
		for _, sent := range []bool{true, false} {
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
			w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
			in := w.hears("pay")
			first := w.mustAsk(in).Calls[0]
			key := agent.ActionKey(w.scope, agent.Place{Turn: in.Turn, Step: in.Step, Call: 1}, first.Action)
			if sent {
				w.dispatch(agent.ToolInput{Scope: w.scope, Place: agent.Place{Turn: in.Turn, Step: in.Step, Call: 1}, Class: first.Class, Action: first.Action}, now())
			}
			change(w)
			again := w.mustAsk(in).Calls[0]
			if sent && (again.Action != first.Action || again.Trouble != "") {
				t.Errorf("%s changed after it was sent: %+v", name, again)
			}
			if d, ok := w.dispatched(key); !sent && (again.Action == first.Action && again.Trouble == "" || !ok || !d.Revoked) {
				t.Errorf("%s changed before it was sent: %+v, claim %+v", name, again, d)
			}
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

func TestTheActivitiesRunUnderTemporal(t *testing.T) {
	t.Parallel()
	f := newFake(t, spec(agent.ClassOnce), nil)
	w := newWorld(t, "mem://", f)
	w.talk(t, modeltest.Config{Steps: []modeltest.Step{modeltest.Want(call("c1", "pay", `{}`))}})
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Model)
	env.RegisterActivity(w.Tool)
	env.RegisterActivity(w.Open)
	val, err := env.ExecuteLocalActivity(w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: "clerk", Message: agent.Message{ID: "1", Text: "pay"}})
	var opened agent.OpenResult
	if err != nil || val.Get(&opened) != nil || opened.Attempt.Std() != DefaultAttempt || opened.Store != w.Store.ID() || opened.Entry.Text != "pay" {
		t.Fatalf("open: %+v, %v", opened, err)
	}
	in := w.hears("pay")
	in.Definition = opened.Definition.Short()
	val, err = env.ExecuteActivity(w.Model, in)
	var answer agent.ModelResult
	if err != nil || val.Get(&answer) != nil || len(answer.Calls) != 1 {
		t.Fatalf("model: %+v, %v", answer, err)
	}
	c := answer.Calls[0]
	val, err = env.ExecuteActivity(w.Tool, agent.ToolInput{
		Scope: w.scope, Place: agent.Place{Turn: 1, Step: 1, Call: 1}, Definition: opened.Definition.Short(),
		Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action, Serial: 3,
	})
	var done agent.ToolResult
	if err != nil || val.Get(&done) != nil {
		t.Fatal(err)
	}
	wantState(t, done, agent.StateCommitted)
}

func TestAPulseBeatsUntilItIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		beats := 0
		p := &pulse{ctx: t.Context(), beat: func(Progress) { beats++ }, done: make(chan struct{})}
		p.wait.Go(func() { p.run(time.Second) })
		time.Sleep(3500 * time.Millisecond)
		p.stop()
		n := beats
		time.Sleep(10 * time.Second)
		if n != 3 || beats != n {
			t.Errorf("%d beats in 3.5 s, %d after the end", n, beats-n)
		}
	})
}

func TestOpenKeepsWhatTheTurnStartsWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Open)
	open := func(name, text string) (agent.OpenResult, error) {
		val, err := env.ExecuteLocalActivity(w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: name, Message: agent.Message{Text: text}, Serial: 3})
		var res agent.OpenResult
		if err == nil {
			err = val.Get(&res)
		}
		return res, err
	}
	_, err := open("nobody", "hi")
	if app := wantApp(t, err, agent.ErrUnknownAgent, true); !strings.Contains(app.Message(), "clerk") {
		t.Errorf("error %v does not name the agents there are", err)
	}
	long := strings.Repeat("x", agent.InlineText+1)
	res, err := open("clerk", long)
	if err != nil || res.Entry.Body == nil || res.Entry.Text != "" {
		t.Fatalf("entry %+v, %v", res.Entry, err)
	}
	if b, err := w.space().Body(t.Context(), *res.Entry.Body); err != nil || string(b) != long {
		t.Errorf("stored %d bytes, %v", len(b), err)
	}
	// The configuration changes; the turn goes on with its own definition.
	before := w.snap.Agents["clerk"]
	after := before
	after.Instructions = "Be vague."
	changed := &Snapshot{Agents: map[string]agent.Definition{"clerk": after}}
	got, err := w.definition(t.Context(), changed, w.scope, res.Definition.Short())
	if diff := cmp.Diff(before, got); err != nil || diff != "" {
		t.Errorf("definition differs (%v):\n%s", err, diff)
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

// turn plays the workflow's part: it asks, runs what may run, and asks again.
func (w *world) turn(ctx context.Context, text string) (final string, last agent.ModelResult) {
	in := w.hears(text)
	var p Progress
	for n := 1; n < 40; n++ {
		res, left, err := w.askOnce(ctx, n, p, in)
		if err != nil {
			var app interface{ NonRetryable() bool }
			if errors.As(err, &app) && !app.NonRetryable() {
				p = left
				continue
			}
			return "failed: " + err.Error(), last
		}
		last, p = res, Progress{}
		in.Head, in.Entries = res.Head, nil
		switch {
		case res.Finish == agent.FinishRefusal:
			return "refusal", res
		case res.Finish == agent.FinishLength && len(res.Calls) == 0:
			in.Entries = []agent.Entry{{Role: agent.RoleNotice, Text: "go on"}}
		case len(res.Calls) == 0:
			return "done", res
		}
		for i, c := range res.Calls {
			in.Entries = append(in.Entries, w.act(ctx, in, i, c))
		}
		in.Step++
	}
	return "never ended", last
}

func (w *world) act(ctx context.Context, in agent.ModelInput, i int, c agent.Call) agent.Entry {
	if c.Trouble != "" {
		return agent.Entry{Role: agent.RoleTool, Call: c.ID, Text: c.Trouble}
	}
	res, _, err := w.attempt(ctx, 1, Progress{}, agent.ToolInput{
		Scope: in.Scope, Place: agent.Place{Turn: in.Turn, Step: in.Step, Call: i + 1}, Definition: in.Definition,
		Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action, Serial: in.Serial,
	})
	if err != nil {
		w.t.Error(err)
	}
	e := agent.Entry{Role: agent.RoleTool, Call: c.ID, Text: res.Text, Body: res.Body}
	if e.Body != nil {
		e.Text = ""
	}
	return e
}

// caseTools are the tools that tests/cases/turns.json speaks of.
func caseTools(t *testing.T) []*fake {
	t.Helper()
	one := func(name string, class agent.Class, schema string, do doFunc) *fake {
		return newFake(t, tool.Spec{Name: name, Class: class, Parameters: []byte(schema)}, do)
	}
	object := func(properties, required string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
	}
	return []*fake{
		one("list_items", agent.ClassRead, object(``, ``), nil),
		one("get_item", agent.ClassRead, object(`"id":{"type":"string"}`, `"id"`), nil),
		one("add_note", agent.ClassOnce, object(`"text":{"type":"string"}`, `"text"`), nil),
		one("pay", agent.ClassOnce, object(`"to":{"type":"string"},"amount":{"type":"number"},"ref":{"type":"integer"}`, `"to","amount"`), nil),
		one("pay_many", agent.ClassOnce, object(`"items":{"type":"array"}`, `"items"`), nil),
		one("empty", agent.ClassRead, object(``, ``), says("")),
		one("blob", agent.ClassRead, object(`"n":{"type":"integer"},"kind":{"type":"string"}`, `"n"`), func(_ context.Context, c tool.Call) (tool.Result, error) {
			var a struct {
				N    int
				Kind string
			}
			err := json.Unmarshal([]byte(c.Args), &a)
			return tool.Result{Data: []byte(strings.Repeat(map[bool]string{true: "\x00\xff", false: "ab"}[a.Kind == "binary"], a.N/2))}, err
		}),
	}
}

func TestEveryOddModelTurnEndsAsItShould(t *testing.T) {
	t.Parallel()
	cases, err := modeltest.Load("../tests/cases/turns.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			fakes := caseTools(t)
			var tools []tool.Tool
			for _, f := range fakes {
				tools = append(tools, f)
			}
			w := newWorld(t, "mem://", tools...)
			def := w.snap.Agents["clerk"]
			def.Limits.Calls = 256
			w.snap.Agents["clerk"] = def
			srv := modeltest.ForTest(t, modeltest.Config{Steps: c.Steps})
			w.connect(t, srv.URL(), c.Streams(true))
			final, last := w.turn(t.Context(), "go")
			kind, _, _ := strings.Cut(final, ":")
			ok := false
			for _, want := range c.Final {
				ok = ok || want == kind
			}
			if !ok {
				t.Errorf("ended as %q (%+v), want %v: %s", final, last, c.Final, c.Expect)
			}
			for _, f := range fakes {
				if want, told := c.Calls[f.spec.Name]; told && !want.Allows(f.count()) {
					t.Errorf("%s ran %d times, want %v: %s", f.spec.Name, f.count(), want, c.Expect)
				}
			}
			if c.MaxRequests > 0 && srv.Count() > c.MaxRequests {
				t.Errorf("asked %d times, want at most %d", srv.Count(), c.MaxRequests)
			}
		})
	}
}

func TestAConversationIsWhatAStrictProviderTakes(t *testing.T) {
	t.Parallel()
	say := func(role agent.Role, text string) transcript.Entry { return transcript.Entry{Role: role, Text: text} }
	asks := func(ids ...string) transcript.Entry {
		e := transcript.Entry{Role: agent.RoleAssistant}
		for _, id := range ids {
			e.Calls = append(e.Calls, transcript.Call{ID: id, Name: "pay", Args: `{"text":"a\ud835b"}`})
		}
		return e
	}
	result := func(id, text string) transcript.Entry {
		return transcript.Entry{Role: agent.RoleTool, Call: id, Text: text}
	}
	th := thread{
		entries: []transcript.Entry{
			say(agent.RoleUser, "one"), say(agent.RoleUser, "two"), say(agent.RoleAssistant, ""),
			asks("a", "b", "c"), say(agent.RoleUser, "wait"), result("c", ""), result("a", strings.Repeat("x", 100)), result("a", "late"), result("z", "stray"),
			asks("d"),
		},
		gaps: []transcript.Gap{{At: 0}, {At: 10}},
	}
	for _, e := range th.entries {
		th.texts = append(th.texts, e.Text)
	}
	var got []string
	for _, m := range th.messages("Be exact.", 60) {
		line := m.Role + " " + m.CallID + " " + m.Text
		for _, c := range m.Calls {
			line += c.ID + c.Args
		}
		got = append(got, line)
	}
	gap := "[notice] A part of the conversation could not be read from the store and is missing here. Do not guess what was said."
	want := []string{
		"system  Be exact.",
		"user  " + gap + "\n\none\n\ntwo",
		"assistant  a{}b{}c{}",
		"tool a " + strings.Repeat("x", 40) + "\n[... 40 of 100 bytes left out here ...]\n" + strings.Repeat("x", 20),
		"tool b " + unanswered,
		"tool c ",
		"user  wait\n\n[notice] A result of the tool call \"a\": late\n\n[notice] A result of the tool call \"z\": stray",
		"assistant  d{}",
		"tool d " + unanswered,
		"user  " + gap,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
}

func TestCallIDsAreUniqueInTheConversationAndTheSameEachTime(t *testing.T) {
	t.Parallel()
	calls := []openai.Call{{ID: "call_1"}, {ID: "call_2"}, {ID: "call_2"}, {ID: ""}, {ID: "a/b"}, {ID: strings.Repeat("x", 41)}}
	used := map[string]bool{"call_1": true}
	ids := callIDs(calls, used, agent.Place{Turn: 1, Step: 2})
	if diff := cmp.Diff(ids, callIDs(calls, used, agent.Place{Turn: 1, Step: 2})); diff != "" {
		t.Errorf("ids are not the same each time:\n%s", diff)
	}
	seen := map[string]bool{"call_1": true}
	for i, id := range ids {
		if seen[id] || !callID.MatchString(id) {
			t.Errorf("id %d is %q", i, id)
		}
		seen[id] = true
	}
	if ids[1] != "call_2" {
		t.Errorf("a good id was changed to %q", ids[1])
	}
}

func TestASummaryIsShortVisibleAndMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	for _, c := range []struct{ args, want string }{
		{`{}`, "pay"},
		{`{"a":{"x":1},"amount":9007199254740993,"n":null,"to":"acme","z":"later"}`, "pay 9007199254740993 acme"},
		{`{"to":"` + hush + `"}`, "pay ***"},
		{"{\"to\":\"ac\u200bme\"}", "pay ac⟨U+200B⟩me"},
		{`{"path":"/srv/notes/of/2026/new.txt","content":"hi"}`, "pay …v/notes/of/2026/new.txt hi"},
		{`{"to":"` + strings.Repeat("x", 10) + hush + strings.Repeat("x", 20) + `"}`, "pay …et]" + strings.Repeat("x", 20)},
	} {
		got := w.snap.summary("pay", c.args)
		if strings.Contains(got, hush) || len([]rune(got)) > maxSummary || (c.want != "pay ***" && got != c.want) {
			t.Errorf("summary of %s is %q, want %q", c.args, got, c.want)
		}
	}
}

func TestResourcesTakeArgumentsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, args, want string }{
		{"", `{}`, ""},
		{"orders/{id}/x", `{"id":9007199254740993}`, "orders/9007199254740993/x"},
		{"orders/{id}", `{"id":"ä\"b"}`, `orders/ä"b`},
		{"orders/{id}", `{"id":[1]}`, "orders/"},
		{"orders/{id", `{"id":"7"}`, "orders/7"},
	} {
		if got := resource(c.template, c.args); got != c.want {
			t.Errorf("resource(%q, %s) = %q, want %q", c.template, c.args, got, c.want)
		}
	}
}

func FuzzTextIsCutBetweenRunes(f *testing.F) {
	f.Add("aäöü€😀", 5)
	f.Add("\xff\xfe\x80\x80\x80", 2)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), 1000)
		h, e := head(s, n), tail(s, n)
		if len(h) > n || len(e) > n || !strings.HasPrefix(s, h) || !strings.HasSuffix(s, e) {
			t.Errorf("head %q, tail %q of %q at %d", h, e, s, n)
		}
		valid := strings.ToValidUTF8(s, "")
		for _, piece := range []string{head(valid, n), tail(valid, n), cut(valid, max(n, 3)), excerpt(valid, n)} {
			if strings.ToValidUTF8(piece, "") != piece {
				t.Errorf("%q is cut inside a rune", piece)
			}
		}
	})
}
