package modeltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/internal/modeltest"
)

const hello = `{"model":"m","messages":[{"role":"user","content":"Hello."}]}`

// post sends a request and returns what came, in bytes.
func post(t *testing.T, s *modeltest.Server, body string) (status int, header http.Header, got []byte, err error) {
	t.Helper()
	resp, err := http.Post(s.URL()+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	got, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, got, err
}

func streamed(body string) string { return strings.Replace(body, "{", `{"stream":true,`, 1) }

func TestStepsArePlayedInOrderAndThenDone(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{Steps: []modeltest.Step{
		modeltest.Say("first"),
		{Status: 503, Headers: map[string]string{"Retry-After": "3"}, Body: json.RawMessage(`{"error":{}}`)},
		{Body: json.RawMessage(`"<html>x</html>"`)},
		{SSE: []string{": a", "data: {}"}, Done: true},
		{SSE: []string{"data: {}"}},
	}})
	for _, want := range []struct {
		status     int
		kind, body string
	}{
		{200, "application/json", `"content":"first"`},
		{503, "application/json", `{"error":{}}`},
		{200, "text/html; charset=utf-8", `<html>x</html>`},
		{200, "text/event-stream", ": a\n\ndata: {}\n\ndata: [DONE]\n\n"},
		{200, "text/event-stream", "data: {}\n\n"},
		{200, "application/json", `"content":"done"`},
		{200, "application/json", `"content":"done"`},
	} {
		status, header, got, err := post(t, s, hello)
		if err != nil || status != want.status || header.Get("Content-Type") != want.kind || !strings.Contains(string(got), want.body) {
			t.Errorf("%d %v %s (%v), want %+v", status, header, got, err, want)
		}
		if status == 503 && header.Get("Retry-After") != "3" {
			t.Errorf("headers %v", header)
		}
	}
}

// TestAStormIsAnsweredAsItSays holds that neither form of Retry-After is lost, and that it costs nothing to be turned
// away.
func TestAStormIsAnsweredAsItSays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 999, time.FixedZone("", 7200))
	s := modeltest.ForTest(t, modeltest.Config{Steps: []modeltest.Step{
		modeltest.TurnAway(429).RetryIn(1), modeltest.TurnAway(500).RetryIn(2), modeltest.TurnAway(503).RetryAt(at), modeltest.TurnAway(503),
	}})
	for _, want := range []struct {
		status      int
		again, code string
	}{
		{429, "1", "rate_limit_exceeded"},
		{500, "2", "server_error"},
		{503, "Wed, 01 Jul 2026 10:00:00 GMT", "server_error"},
		{503, "", "server_error"},
	} {
		status, header, got, err := post(t, s, hello)
		if err != nil || status != want.status || header.Get("Retry-After") != want.again || !strings.Contains(string(got), want.code) {
			t.Errorf("%d %q %s (%v), want %+v", status, header.Get("Retry-After"), got, err, want)
		}
	}
	if n := s.Charges().Answers; n != 0 {
		t.Errorf("%d answers were charged for", n)
	}
}

// TestMarksAreExpandedOnTheWire proves it for each kind of step, also where a stream is cut into pieces.
func TestMarksAreExpandedOnTheWire(t *testing.T) {
	t.Parallel()
	message := json.RawMessage(`{"role":"assistant","content":"a$PAD:9b","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":$DEEP:3,\"y\":\"$RAW:ff00e9\"}"}}]}`)
	s := modeltest.ForTest(t, modeltest.Config{Steps: []modeltest.Step{
		{Message: message},
		{Message: message},
		{Body: json.RawMessage(`{"x":"$RAW:fe"}`)},
		{SSE: []string{"data: $PAD:4"}},
	}})
	_, _, plain, _ := post(t, s, hello)
	for _, want := range []string{`"axxxxxxxxxb"`, `{\"x\":[[[]]],\"y\":\"` + "\xff\x00\xe9" + `\"}`, `"finish_reason":"tool_calls"`} {
		if !bytes.Contains(plain, []byte(want)) {
			t.Errorf("plain: no %q in %q", want, plain)
		}
	}
	_, _, stream, _ := post(t, s, streamed(hello))
	content, args := joined(stream, "content"), joined(stream, "arguments")
	if content != "axxxxxxxxxb" || !strings.Contains(args, "\xff\x00\xe9") || strings.Contains(args, "$") {
		t.Errorf("stream: content %q, arguments %q", content, args)
	}
	if n := strings.Count(string(stream), `"arguments"`); n < 4 {
		t.Errorf("the arguments came in %d pieces", n)
	}
	if _, _, body, _ := post(t, s, hello); string(body) != "{\"x\":\"\xfe\"}" {
		t.Errorf("body %q", body)
	}
	if _, _, body, _ := post(t, s, hello); string(body) != "data: xxxx\n\n" {
		t.Errorf("lines %q", body)
	}
}

// joined returns the values of a member over all of a stream, as they stand there.
func joined(stream []byte, member string) string {
	var all []byte
	for _, m := range regexp.MustCompile(`(?s)"`+member+`":"((?:[^"\\]|\\.)*)"`).FindAllSubmatch(stream, -1) {
		all = append(all, m[1]...)
	}
	return string(all)
}

// TestBreachesAreSeen holds each rule of a strict provider, and that a good request breaks none.
func TestBreachesAreSeen(t *testing.T) {
	t.Parallel()
	with := func(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }
	call := func(id, name, args string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"` + name + `"` + args + `}}`
	}
	said := func(calls ...string) string {
		return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	result := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":""}` }
	ok := `,"arguments":"{}"`
	user := `{"role":"user","content":"x"}`
	for _, c := range []struct{ body, want string }{
		{hello, ""},
		{with(user + "," + said(call("a", "f", ok), call("b", "g", ok)) + "," + result("a") + "," + result("b") + "," + user), ""},
		{`{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"messages":[` + user + `]}`, ""},
		{`{`, "not JSON"},
		{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "not valid UTF-8"},
		{`{"messages":[` + user + `]}`, "no model"},
		{with(``), "empty"},
		{`{"model":"m","messages":[` + user + `],"tools":[]}`, "tools array is empty"},
		{`{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a.b"}}]}`, "bad name"},
		{`{"model":"m","messages":[` + user + `],"stream_options":{}}`, "without stream"},
		{`{"model":"m","messages":[` + user + `],"max_tokens":1,"max_completion_tokens":1}`, "beside"},
		{with(`{"role":"user"}`), "no content member"},
		{with(`{"role":"user","content":null}`), "null content"},
		{with(`{"role":"robot","content":""}`), `role "robot"`},
		{with(`{"role":"user","content":"","tool_calls":[]}`), "tool_calls in a message"},
		{with(`{"role":"assistant","content":null,"tool_calls":[]}`), "empty"},
		{with(said(call("a", "f", "")) + "," + result("a")), "no arguments member"},
		{with(said(call("a", "f", `,"arguments":""`)) + "," + result("a")), "not the text of a JSON object"},
		{with(said(call("a", "f", `,"arguments":"[]"`)) + "," + result("a")), "not the text of a JSON object"},
		{with(said(call("a", "f", `,"arguments":{}`)) + "," + result("a")), "not the text of a JSON object"},
		{with(said(call("", "f", ok))), "without id"},
		{with(said(call("a", "f", ok), call("a", "f", ok))), "twice"},
		{with(said(call("a", "p\u0430y", ok)) + "," + result("a")), "bad tool name"},
		{with(said(call("a", "", ok)) + "," + result("a")), "bad tool name"},
		{with(said(call("a", "f", ok))), "before the answers to a"},
		{with(said(call("a", "f", ok)) + "," + user), "before the answers to a"},
		{with(said(call("a", "f", ok), call("b", "f", ok)) + "," + result("b") + "," + result("a")), `where "a" comes next`},
		{with(user + "," + result("a")), "no such call"},
		{with(said(call("a", "f", ok)) + "," + result("a") + "," + result("a")), "no such call"},
		{with(said(call("a", "f", ok)) + `,{"role":"tool","tool_call_id":"a"}`), "no content member"},
	} {
		s, err := modeltest.Start(modeltest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := post(t, s, c.body); err != nil {
			t.Error(err)
		}
		got := strings.Join(s.Breaches(), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s:\n  breaches %q, want %q", c.body, got, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAFuncHoldsManyConversations proves that a Func tells conversations apart by what they say.
func TestAFuncHoldsManyConversations(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{Forget: true, Func: func(r modeltest.Request) modeltest.Step {
		if n := len(r.Results()); n < 3 {
			return modeltest.Want(modeltest.Call{ID: fmt.Sprint("c", n), Name: "f", Args: `{}`})
		}
		return modeltest.Say("bye " + r.User())
	}})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			messages := []string{fmt.Sprintf(`{"role":"user","content":"u%d"}`, n)}
			for step := range 4 {
				_, _, got, err := post(t, s, `{"model":"m","messages":[`+strings.Join(messages, ",")+`]}`)
				if err != nil {
					t.Error(err)
					return
				}
				if step == 3 && !strings.Contains(string(got), fmt.Sprintf("bye u%d", n)) {
					t.Errorf("%s", got)
				}
				messages = append(messages,
					fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, step),
					fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"r"}`, step))
			}
		})
	}
	wg.Wait()
	if s.Count() != 32 || s.Charges().Answers != 32 || len(s.Requests()) != 0 {
		t.Errorf("%d requests, %d charged, %d kept", s.Count(), s.Charges().Answers, len(s.Requests()))
	}
}

// TestOnlyWholeAnswersAreCharged proves that a failure, a cut answer and a client that went away cost nothing.
func TestOnlyWholeAnswersAreCharged(t *testing.T) {
	t.Parallel()
	half := modeltest.Say("half")
	half.Close = "half"
	asked := make(chan struct{}, 8)
	steps := []modeltest.Step{half, modeltest.Fail(429, "x", "x"), modeltest.Say("never seen").Slow(3600), modeltest.Say("whole")}
	var mu sync.Mutex
	s := modeltest.ForTest(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step {
		mu.Lock()
		defer mu.Unlock()
		step := steps[0]
		steps = steps[1:]
		asked <- struct{}{}
		return step
	}})
	if _, _, got, err := post(t, s, hello); err == nil {
		t.Errorf("a cut answer came whole: %s", got)
	}
	_, _, _, _ = post(t, s, hello)
	<-asked
	<-asked
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		t.Error("it came before its time")
	}
	if got := s.Charges(); got != (modeltest.Charges{}) {
		t.Errorf("charged %+v", got)
	}
	_, _, got, err := post(t, s, hello)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Usage struct {
			In  int64 `json:"prompt_tokens"`
			Out int64 `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(got, &answer); err != nil {
		t.Fatal(err)
	}
	want := modeltest.Charges{Answers: 1, Input: answer.Usage.In, Output: answer.Usage.Out}
	if diff := cmp.Diff(want, s.Charges()); diff != "" || want.Input == 0 || want.Output == 0 {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
}

func TestUsageComesOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{})
	if _, _, got, _ := post(t, s, streamed(hello)); strings.Contains(string(got), "usage") || !strings.HasSuffix(string(got), "data: [DONE]\n\n") {
		t.Errorf("%s", got)
	}
	if _, _, got, _ := post(t, s, strings.Replace(streamed(hello), "{", `{"stream_options":{"include_usage":true},`, 1)); !strings.Contains(string(got), `"prompt_tokens"`) {
		t.Errorf("%s", got)
	}
}

func TestRequestsAreKeptWithTheirTime(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{})
	before := time.Now()
	_, _, _, _ = post(t, s, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	got := s.Requests()
	if len(got) != 1 || got[0].At.Before(before) || got[0].User() != "ab" || got[0].Model != "m" || len(got[0].Tools) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAKeyIsAskedFor(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{Key: "k"})
	if status, _, _, err := post(t, s, hello); err != nil || status != 401 {
		t.Errorf("%d %v", status, err)
	}
	if resp, err := http.Get(s.URL() + "/models"); err != nil || resp.StatusCode != 404 {
		t.Errorf("%v %v", resp, err)
	}
}

func TestCasesAreReadStrictly(t *testing.T) {
	t.Parallel()
	cases, err := modeltest.Load("../../tests/cases/turns.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.ID == "" || len(c.Steps) == 0 || len(c.Final) == 0 || len(c.Calls) == 0 {
			t.Errorf("case %+v", c)
		}
		if c.ID == "rejected-then-same-again" && (c.Calls["pay"] != modeltest.Range{Min: 1, Max: 2} || c.Calls["pay"].Allows(3)) {
			t.Errorf("calls %+v", c.Calls)
		}
	}
	for _, path := range []string{"no-such-file", "server_test.go"} {
		if _, err := modeltest.Load(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
