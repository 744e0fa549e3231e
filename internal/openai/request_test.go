package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// TestWhatIsSentIsComplete proves that empty members are there and that odd names are sent in a form that
// providers take.
func TestWhatIsSentIsComplete(t *testing.T) {
	t.Parallel()
	r := openai.Request{
		Messages: []openai.Message{
			{Role: "system", Text: ""},
			{Role: "user", Text: "a <b> & \u2028 \x00"},
			{Role: "assistant", Refusal: "No."},
			{Role: "user"},
			{Role: "assistant", Calls: []openai.Call{{ID: "1", Name: "p\u0430y", Args: ` {"n":9007199254740993,"s":"\ud835"}`}, {ID: "2", Name: "", Args: "{}"}}},
			{Role: "tool", CallID: "1"},
			{Role: "tool", CallID: "2", Text: "x"},
			{Role: "assistant", Text: ""},
		},
		Tools: []openai.Tool{{Name: "a"}, {Name: "b", Description: "B", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`)}},
	}
	s := modeltest.ForTest(t, modeltest.Config{})
	zero := float32(0)
	c := newClient(t, s.URL(), true, func(c *openai.Config) { c.Temperature, c.MaxOutput = &zero, 77 })
	if _, err := c.Ask(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	var body struct {
		Messages            []json.RawMessage
		Temperature         json.RawMessage
		MaxCompletionTokens int `json:"max_completion_tokens"`
		Stream              bool
	}
	if err := json.Unmarshal(got.Raw, &body); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"role":"system","content":""}`,
		`{"role":"user","content":"a <b> & \u2028 \u0000"}`,
		`{"role":"assistant","content":"No."}`,
		`{"role":"user","content":""}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"p_y","arguments":" {\"n\":9007199254740993,\"s\":\"\\ud835\"}"}},{"id":"2","type":"function","function":{"name":"unnamed","arguments":"{}"}}]}`,
		`{"role":"tool","content":"","tool_call_id":"1"}`,
		`{"role":"tool","content":"x","tool_call_id":"2"}`,
		`{"role":"assistant","content":""}`,
	}
	var sent []string
	for _, m := range body.Messages {
		sent = append(sent, string(m))
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if string(body.Temperature) != "0" || body.MaxCompletionTokens != 77 || !body.Stream {
		t.Errorf("temperature %s, max_completion_tokens %d, stream %t", body.Temperature, body.MaxCompletionTokens, body.Stream)
	}
	for _, part := range []string{`"include_usage":true`, `{"maximum":9007199254740993}`, `"parameters":{"type":"object","properties":{}}`} {
		if !strings.Contains(string(got.Raw), part) {
			t.Errorf("not sent: %s", part)
		}
	}
	if auth := got.Header.Get("Authorization"); auth != "Bearer "+key {
		t.Errorf("authorization %q", auth)
	}
}

// TestAConversationThatBreaksTheRulesIsNotSent holds the rules that the caller keeps.
func TestAConversationThatBreaksTheRulesIsNotSent(t *testing.T) {
	t.Parallel()
	user := openai.Message{Role: "user", Text: "x"}
	calls := func(calls ...openai.Call) openai.Message { return openai.Message{Role: "assistant", Calls: calls} }
	result := func(id string) openai.Message { return openai.Message{Role: "tool", CallID: id} }
	a, b := openai.Call{ID: "a", Name: "f", Args: "{}"}, openai.Call{ID: "b", Name: "f", Args: "{}"}
	for name, r := range map[string]openai.Request{
		"nothing":                        {},
		"an unknown role":                {Messages: []openai.Message{{Role: "function"}}},
		"bad text":                       {Messages: []openai.Message{{Role: "user", Text: "\xff"}}},
		"an unanswered call at the end":  {Messages: []openai.Message{user, calls(a)}},
		"an unanswered call in between":  {Messages: []openai.Message{user, calls(a), user}},
		"half of the calls answered":     {Messages: []openai.Message{user, calls(a, b), result("a"), user}},
		"answers in another order":       {Messages: []openai.Message{user, calls(a, b), result("b"), result("a")}},
		"an answer too much":             {Messages: []openai.Message{user, calls(a), result("a"), result("a")}},
		"an answer to nothing":           {Messages: []openai.Message{user, result("a")}},
		"an answer to another":           {Messages: []openai.Message{user, calls(a), result("b")}},
		"an id twice in a message":       {Messages: []openai.Message{user, calls(a, a), result("a"), result("a")}},
		"an id twice":                    {Messages: []openai.Message{user, calls(a), result("a"), calls(a), result("a")}},
		"no id":                          {Messages: []openai.Message{user, calls(openai.Call{Name: "f", Args: "{}"}), result("")}},
		"empty arguments":                {Messages: []openai.Message{user, calls(openai.Call{ID: "a", Name: "f"}), result("a")}},
		"arguments that are no object":   {Messages: []openai.Message{user, calls(openai.Call{ID: "a", Name: "f", Args: `[1]`}), result("a")}},
		"arguments that are two objects": {Messages: []openai.Message{user, calls(openai.Call{ID: "a", Name: "f", Args: `{}{}`}), result("a")}},
		"arguments that are no UTF-8":    {Messages: []openai.Message{user, calls(openai.Call{ID: "a", Name: "f", Args: "{\"x\":\"\xff\"}"}), result("a")}},
		"calls of a user":                {Messages: []openai.Message{{Role: "user", Calls: []openai.Call{a}}, result("a")}},
		"a user's call id":               {Messages: []openai.Message{{Role: "user", CallID: "a"}}},
		"a tool twice":                   {Messages: []openai.Message{user}, Tools: []openai.Tool{{Name: "f"}, {Name: "f"}}},
		"a tool without name":            {Messages: []openai.Message{user}, Tools: []openai.Tool{{}}},
		"a tool with an odd name":        {Messages: []openai.Message{user}, Tools: []openai.Tool{{Name: "a.b"}}},
		"a tool with bad parameters":     {Messages: []openai.Message{user}, Tools: []openai.Tool{{Name: "f", Parameters: json.RawMessage(`{`)}}},
	} {
		s := modeltest.ForTest(t, modeltest.Config{})
		_, err := newClient(t, s.URL(), true).Ask(context.Background(), r)
		var e *openai.Error
		if !errors.As(err, &e) || e.Type != agent.ErrBadRequest || e.Retry || e.Status != 0 || !strings.Contains(e.Message, "not sent") {
			t.Errorf("%s: %v", name, err)
		}
		if s.Count() != 0 {
			t.Errorf("%s: it was sent", name)
		}
	}
}

// TestTheDialectIsLearntOnce proves that a server that does not know a member is asked without it, once, and
// from then on at once.
func TestTheDialectIsLearntOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ member, complaint, instead string }{
		{"stream_options", `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`, ""},
		{"stream_options", `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`, ""},
		{"max_completion_tokens", `{"error":{"message":"Unsupported parameter: 'max_completion_tokens'"}}`, `"max_tokens":9`},
	} {
		var asked []string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = append(asked, string(body))
			if strings.Contains(string(body), `"`+c.member+`"`) {
				w.WriteHeader(400)
				fmt.Fprint(w, c.complaint)
				return
			}
			fmt.Fprint(w, chunks("stop", `{"content":"hi"}`))
		})
		client := newClient(t, url, true, func(c *openai.Config) { c.MaxOutput = 9 })
		for range 2 {
			if a, e := ask(client); e != nil || a.Text != "hi" {
				t.Errorf("%s: %+v, %v", c.member, a, e)
			}
		}
		if len(asked) != 3 || !strings.Contains(asked[2], c.instead) {
			t.Errorf("%s: asked %d times, the last %s", c.member, len(asked), asked[len(asked)-1])
		}
	}
}

// TestALastingComplaintIsNotAskedForEver proves the bound of what the test above shows.
func TestALastingComplaintIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{Func: func(modeltest.Request) modeltest.Step {
		return modeltest.Fail(400, "x", "unknown: stream_options, max_completion_tokens")
	}})
	client := newClient(t, s.URL(), true, func(c *openai.Config) { c.MaxOutput = 9 })
	if _, e := ask(client); e == nil || e.Type != agent.ErrBadRequest {
		t.Error(e)
	}
	if s.Count() > 3 {
		t.Errorf("asked %d times", s.Count())
	}
}

// TestTheLibrarysOwnRulesAreABadRequest: go-openai refuses some combinations before it sends them.
func TestTheLibrarysOwnRulesAreABadRequest(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{})
	r := hello()
	r.Tools = []openai.Tool{{Name: "f"}}
	_, err := newClient(t, s.URL(), true, func(c *openai.Config) { c.Model = goopenai.GPT6Sol }).Ask(context.Background(), r)
	var e *openai.Error
	if !errors.As(err, &e) || e.Type != agent.ErrBadRequest || e.Retry || s.Count() != 0 {
		t.Errorf("%v after %d requests", err, s.Count())
	}
}
