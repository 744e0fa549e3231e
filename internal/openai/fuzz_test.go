package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

type fixed struct {
	status int
	body   string
}

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(f.body))}, nil
}

// FuzzAnswer proves that whatever comes under 200, streamed or plain, is an answer that keeps its promises or
// an error that keeps its own.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "data: [DONE]\n\n", ": c\n\n", "<html>", "{}", `{"error":"x"}`, "event: error\ndata: x\n\n", "data: {\"error\":{\"code\":429}}",
		`data: {"choices":[{"index":0,"delta":{"content":"a","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}]}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\ude00\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}` + "\n\ndata: [DONE]\n\n",
		`{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{}]},"finish_reason":"length"}]}`,
		`{"choices":[{"message":{"function_call":{"name":"f","arguments":"{}"}}}]}`,
		"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"},\"finish_reason\":\"stop\"}]}\n",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, body string, stream bool) {
		c, err := New(Config{
			BaseURL: "http://model.invalid", Model: "m", Stream: stream, MaxCalls: 50,
			HTTPClient: &http.Client{Transport: fixed{200, body}},
		})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Ask(context.Background(), Request{Messages: []Message{{Role: RoleUser, Text: "x"}}})
		if err != nil {
			holdsError(t, err)
			return
		}
		if a.Finish == "" || len(a.Calls) > 50 || a.Usage.Calls != 1 || a.Usage.Cached > a.Usage.Input || a.Usage.Reasoning > a.Usage.Output {
			t.Errorf("answer %+v", a)
		}
		ids := map[string]bool{"": true}
		for _, call := range a.Calls {
			if ids[call.ID] || !utf8.ValidString(call.ID+call.Name+call.Args+call.Damaged) {
				t.Errorf("call %+v", call)
			}
			ids[call.ID] = true
		}
		if !utf8.ValidString(a.Text) || !utf8.ValidString(a.Refusal) {
			t.Errorf("text %q, refusal %q", a.Text, a.Refusal)
		}
	})
}

// FuzzErrorBody proves that any status and error body has a class and a message that can be shown.
func FuzzErrorBody(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", `[[[[[{}]]]]]`, `{"error":null}`, `{"error":{"error":{"error":{"error":{"message":1}}}}}`,
		`{"error":{"message":["a"],"code":1e999}}`, `{"detail":[{"msg":"x"}]}`, "<title>x</title>", "\x00\xff\u202e",
	} {
		f.Add(400, seed)
		f.Add(200, seed)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 300 || status > 999 {
			status = 200 + status&0x1ff
		}
		c, err := New(Config{BaseURL: "http://model.invalid", Model: "m", HTTPClient: &http.Client{Transport: fixed{status, body}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(context.Background(), Request{Messages: []Message{{Role: RoleUser, Text: "x"}}}); err != nil {
			holdsError(t, err)
		} else if status >= 300 {
			t.Errorf("an answer under status %d", status)
		}
	})
}

func holdsError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *Error: %v", err)
	}
	if e.Type == "" || e.Message == "" || len(e.Message) > maxMessage+10 || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\n\x1b\x00") {
		t.Errorf("error %#v", e)
	}
}

// FuzzLiteral proves that an undamaged literal is what encoding/json reads, and that a damaged one is told.
func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{`a`, `\ud83d\ude00`, `\ud83d`, `\ude00\ud83d`, `\\ud83d`, `\"`, "\xff", `\u00e4`, `\ud83d\u0061`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, inside []byte) {
		text, damage := literal(inside).text()
		if !utf8.ValidString(text) {
			t.Errorf("%q: %q", inside, text)
		}
		if damage == "" && strings.Contains(text, "\ufffd") && !strings.Contains(strings.ToLower(string(inside)), `\ufffd`) && !strings.Contains(string(inside), "\ufffd") {
			t.Errorf("%q: a replacement that nobody tells", inside)
		}
		if back, damage := escape(inside).text(); utf8.Valid(inside) && (damage != "" || back != string(inside)) {
			t.Errorf("%q comes back as %q (%s)", inside, back, damage)
		}
	})
}
