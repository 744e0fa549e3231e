package openai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// TestPiecesBecomeCalls holds how tool-call chunks of many servers are put together.
func TestPiecesBecomeCalls(t *testing.T) {
	t.Parallel()
	tc := func(pieces ...string) string { return `{"tool_calls":[` + strings.Join(pieces, ",") + `]}` }
	type calls = []openai.Call
	for _, c := range []struct {
		name   string
		deltas []string
		want   calls
	}{
		{"spread arguments", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
			tc(`{"index":0,"function":{"arguments":"{\"x\":"}}`), tc(`{"index":0,"function":{"arguments":"1}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":1}`}}},
		{"interleaved by index", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":1,"id":"b","function":{"name":"g"}}`),
			tc(`{"index":1,"function":{"arguments":"{\"y\""}}`, `{"index":0,"function":{"arguments":"{\"x\""}}`),
			tc(`{"index":0,"function":{"arguments":":1}"}}`, `{"index":1,"function":{"arguments":":2}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":1}`}, {ID: "b", Name: "g", Args: `{"y":2}`}}},
		{"no index, told apart by id", []string{
			tc(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), tc(`{"function":{"arguments":"1}"}}`),
			tc(`{"id":"b","function":{"name":"f","arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":1}`}, {ID: "b", Name: "f", Args: `{}`}}},
		{"no index and no id in one chunk", []string{
			tc(`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"f","arguments":"{}"}}`),
		}, calls{{ID: "call_1", Name: "f", Args: `{}`}, {ID: "call_2", Name: "f", Args: `{}`}}},
		{"no index and no id in two chunks", []string{
			tc(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`), tc(`{"function":{"name":"f","arguments":"{\"x\":2}"}}`),
		}, calls{{ID: "call_1", Name: "f", Args: `{"x":1}`}, {ID: "call_2", Name: "f", Args: `{"x":2}`}}},
		{"every call has index 0", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`),
			tc(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{}`}, {ID: "b", Name: "g", Args: `{}`}}},
		{"every call has index 0 and an empty id", []string{
			tc(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`),
			tc(`{"index":0,"id":"","function":{"name":"g","arguments":"{}"}}`),
		}, calls{{ID: "call_1", Name: "f", Args: `{}`}, {ID: "call_2", Name: "g", Args: `{}`}}},
		{"no index, no id, the first unfinished", []string{
			tc(`{"function":{"name":"f","arguments":"{\"x\":"}}`), tc(`{"function":{"name":"g","arguments":"{}"}}`),
		}, calls{{ID: "call_1", Name: "f", Args: `{"x":`}, {ID: "call_2", Name: "g", Args: `{}`}}},
		{"one id and no index for two calls", []string{
			tc(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), tc(`{"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":1}`}, {ID: "call_2", Name: "f", Args: `{"x":2}`}}},
		{"a name that grows", []string{
			tc(`{"index":0,"id":"a","function":{"name":"list"}}`), tc(`{"index":0,"function":{"name":"list_items","arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "list_items", Args: `{}`}}},
		{
			"an id that is no UTF-8",
			[]string{tc("{\"index\":0,\"id\":\"\xff\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}")},
			calls{{ID: "call_1", Name: "f", Args: `{}`}},
		},
		{
			"an id that is a number",
			[]string{tc(`{"index":0,"id":7,"function":{"name":"f","arguments":"{}"}}`)},
			calls{{ID: "7", Name: "f", Args: `{}`}},
		},
		{"name after id", []string{
			tc(`{"index":0,"id":"a","function":{"arguments":""}}`), tc(`{"index":0,"function":{"name":"f"}}`),
			tc(`{"index":0,"function":{"arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{}`}}},
		{"id after name", []string{
			tc(`{"index":0,"function":{"name":"f","arguments":"{"}}`), tc(`{"index":0,"id":"a","function":{"arguments":"}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{}`}}},
		{"name and id repeated in every chunk", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":1}`}}},
		{"name and id in pieces", []string{
			tc(`{"index":0,"id":"call_","function":{"name":"list_"}}`),
			tc(`{"index":0,"id":"7","function":{"arguments":"{}"}}`), tc(`{"index":0,"function":{"name":"items"}}`),
		}, calls{{ID: "call_7", Name: "list_items", Args: `{}`}}},
		{"whole call repeated at the end", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), tc(`{"index":0,"function":{"arguments":"1}"}}`),
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":1}`}}},
		{"two objects stay two", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), tc(`{"index":0,"function":{"arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{}{}`}}},
		{
			"arguments as an object",
			[]string{tc(`{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 9007199254740993}}}`)},
			calls{{ID: "a", Name: "f", Args: `{"n": 9007199254740993}`}},
		},
		{
			"null arguments",
			[]string{tc(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`)},
			calls{{ID: "a", Name: "f"}},
		},
		{"one id for two calls", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{}`}, {ID: "call_2", Name: "f", Args: `{}`}}},
		{"a made-up id gives way to a given one", []string{
			tc(`{"index":0,"function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"call_1","function":{"name":"f","arguments":"{}"}}`),
		}, calls{{ID: "call_2", Name: "f", Args: `{}`}, {ID: "call_1", Name: "f", Args: `{}`}}},
		{"the older function_call", []string{
			`{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{\"x\":1}"}}`,
		}, calls{{ID: "call_1", Name: "f", Args: `{"x":1}`}}},
		{"both forms of one call", []string{
			`{"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
		}, calls{{ID: "a", Name: "f", Args: `{}`}}},
		{"a huge and a negative index", []string{
			tc(`{"index":2147483647,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":-1,"id":"b","function":{"name":"g","arguments":"{}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{}`}, {ID: "b", Name: "g", Args: `{}`}}},
		{
			"an empty name",
			[]string{tc(`{"index":0,"id":"a","function":{"name":"","arguments":"{}"}}`)},
			calls{{ID: "a", Args: `{}`}},
		},
		{"a pair cut between its halves", []string{
			tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}`),
			tc(`{"index":0,"function":{"arguments":"\ude00\"}"}}`),
		}, calls{{ID: "a", Name: "f", Args: `{"x":"` + "\U0001F600" + `"}`}}},
		{"a letter cut between its bytes", []string{
			tc("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\\\"\xc3\"}}"),
			tc("{\"index\":0,\"function\":{\"arguments\":\"\xa4\\\"}\"}}"),
		}, calls{{ID: "a", Name: "f", Args: `{"x":"ä"}`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, e := ask(says(t, true, chunks("tool_calls", c.deltas...)))
			if e != nil {
				t.Fatal(e)
			}
			if diff := cmp.Diff(c.want, a.Calls); diff != "" || a.Finish != agent.FinishCalls {
				t.Errorf("finish %q, calls (-want +got):\n%s", a.Finish, diff)
			}
		})
	}
}

// TestDamagedArgumentsAreMarked proves that what encoding/json would replace in silence is told.
func TestDamagedArgumentsAreMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ inside, name, want string }{
		"bytes that are not UTF-8":     {"{\\\"to\\\":\\\"a\xff\\\"}", "pay", "not UTF-8"},
		"half a pair":                  {`{\"to\":\"a\ud835b\"}`, "pay", "surrogate"},
		"the second half of a pair":    {`{\"to\":\"a\udc00b\"}`, "pay", "surrogate"},
		"the second half twice":        {`{\"to\":\"\udc00\udc00\"}`, "pay", "surrogate"},
		"the halves the wrong way":     {`{\"to\":\"\udc00\ud835\"}`, "pay", "surrogate"},
		"half a pair before an escape": {`{\"to\":\"\ud835\n\"}`, "pay", "surrogate"},
		"a bad name":                   {`{}`, "pa\xffy", "name"},
		"an escaped pair is whole":     {`{\"to\":\"\ud83d\ude00\"}`, "pay", ""},
		"the model's own escape":       {`{\"to\":\"a\\ud835b\"}`, "pay", ""},
		"U+FFFD written by the model":  {`{\"to\":\"a\ufffd\"}`, "pay", ""},
	} {
		call := `"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"` + c.name + `","arguments":"` + c.inside + `"}}]`
		plain := `{"choices":[{"index":0,"message":{"content":null,` + call + `},"finish_reason":"tool_calls"}]}`
		for _, client := range []*openai.Client{says(t, true, chunks("tool_calls", `{`+call+`}`)), says(t, false, plain)} {
			a, e := ask(client)
			if e != nil || len(a.Calls) != 1 {
				t.Fatalf("%s: %+v, %v", name, a, e)
			}
			if d := a.Calls[0].Damaged; c.want == "" && d != "" || !strings.Contains(d, c.want) {
				t.Errorf("%s: damaged %q, want %q", name, d, c.want)
			}
		}
	}
}

// TestAnswersOfManyShapes holds what else may stand in a stream or a plain answer.
func TestAnswersOfManyShapes(t *testing.T) {
	t.Parallel()
	end := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	text := func(s string) openai.Answer {
		return openai.Answer{Text: s, Finish: agent.FinishStop, Usage: agent.Usage{Calls: 1}}
	}
	counted := text("hi")
	counted.Usage = agent.Usage{Input: 10, Cached: 4, Output: 7, Reasoning: 5, Calls: 1}
	counted.Model, counted.Fingerprint = "m-2026", "fp"
	usage := `"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}`
	for _, c := range []struct {
		name, body string
		want       openai.Answer
	}{
		{"text", chunks("stop", `{"role":"assistant"}`, `{"content":"h"}`, `{"content":"i"}`), text("hi")},
		{"usage in the last chunk", `data: {"model":"m-2026","system_fingerprint":"fp","choices":[{"delta":{"content":"hi"}}]}` + "\n\ndata: " + end + "\n\n" + `data: {"choices":[],` + usage + "}\n\ndata: [DONE]\n\n", counted},
		{"usage in every chunk", `data: {"model":"m-2026","system_fingerprint":"fp","usage":null,"choices":[{"delta":{"content":"hi"}}]}` + "\n\n" + `data: {"usage":{"prompt_tokens":10,"completion_tokens":1},"choices":[]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop",` + usage + "}]}\n\n", counted},
		{"usage of another kind", `data: {"usage":{"prompt_tokens":"10","completion_tokens":-7.5,"prompt_cache_hit_tokens":99},"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}` + "\n\n", openai.Answer{Text: "hi", Finish: agent.FinishStop, Usage: agent.Usage{Input: 10, Cached: 10, Calls: 1}}},
		{"unreadable usage", `{"usage":[1],"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`, text("hi")},
		{"no [DONE]", strings.TrimSuffix(chunks("stop", `{"content":"hi"}`), "data: [DONE]\n\n"), text("hi")},
		{"no line break at the end", strings.TrimSuffix(chunks("stop", `{"content":"hi"}`), "\n\ndata: [DONE]\n\n"), text("hi")},
		{"carriage returns", strings.ReplaceAll(chunks("stop", `{"content":"hi"}`), "\n", "\r\n"), text("hi")},
		{"byte order mark", "\xef\xbb\xbf" + chunks("stop", `{"content":"hi"}`), text("hi")},
		{"no blanks", strings.ReplaceAll(chunks("stop", `{"content":"hi"}`), "data: ", "data:"), text("hi")},
		{"a null error in front", `data: {"error":null,"choices":[{"delta":{"content":"hi"}}]}` + "\n\n" + `data: {"error":null,"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", text("hi")},
		{"other fields of events", "retry: 10\nid: 1\nevent: message\n" + chunks("stop", `{"content":"hi"}`), text("hi")},
		{"the word error in the text", chunks("stop", `{"content":"\"error\": {}"}`), text(`"error": {}`)},
		{"choices beside the first", `data: {"choices":[{"index":0,"delta":{"content":"hi"}},{"index":1,"delta":{"content":"yo"}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{"content":"yo"},"finish_reason":"stop"}]}` + "\n\ndata: " + end + "\n\n", text("hi")},
		{"a plain answer to a stream", `{"choices":[{"index":1,"message":{"content":"yo"}},{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`, text("hi")},
		{"content in parts", `{"choices":[{"message":{"content":[{"type":"text","text":"h"},{"type":"image_url"},{"type":"text","text":"i"}]},"finish_reason":"stop"}]}`, text("hi")},
		{"content in parts of a stream", chunks("stop", `{"content":[{"type":"text","text":"h"}]}`, `{"content":[{"text":"i"}]}`), text("hi")},
		{"bad bytes in the text", chunks("stop", "{\"content\":\"h\xff\"}"), text("h\ufffd")},
		{"no finish reason in a plain answer", `{"choices":[{"message":{"content":"hi"}}]}`, text("hi")},
		{"an unknown finish reason", chunks("eos", `{"content":"hi"}`), text("hi")},
		{"tool_calls without calls", chunks("tool_calls", `{"content":"hi"}`), text("hi")},
		{"nothing said", chunks("stop"), text("")},
		{"cut off", chunks("length", `{"content":"hi"}`), openai.Answer{Text: "hi", Finish: agent.FinishLength, Usage: agent.Usage{Calls: 1}}},
		{"filtered", chunks("content_filter", `{"content":"hi"}`), openai.Answer{Text: "hi", Finish: agent.FinishFilter, Usage: agent.Usage{Calls: 1}}},
		{"filtered in a call", chunks("content_filter", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), openai.Answer{Calls: []openai.Call{{ID: "a", Name: "f", Args: "{}"}}, Finish: agent.FinishFilter, Usage: agent.Usage{Calls: 1}}},
		{"refusal", chunks("stop", `{"refusal":"I "}`, `{"refusal":"won't"}`), openai.Answer{Refusal: "I won't", Finish: agent.FinishRefusal, Usage: agent.Usage{Calls: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, e := ask(says(t, true, c.body))
			if e != nil {
				t.Fatal(e)
			}
			if diff := cmp.Diff(c.want, a); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHalfAnswersAreNone holds the ways in which a stream ends too early.
func TestHalfAnswersAreNone(t *testing.T) {
	t.Parallel()
	whole := chunks("stop", `{"content":"hi"}`)
	for name, body := range map[string]string{
		"nothing":                      "",
		"only comments":                ": a\n\n: b\n\n",
		"only [DONE]":                  "data: [DONE]\n\n",
		"[DONE] without finish reason": `data: {"choices":[{"delta":{"content":"hi"}}]}` + "\n\ndata: [DONE]\n\n",
		"finish reason null":           `data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"null"}]}` + "\n\ndata: [DONE]\n\n",
		"cut in a line":                whole[:strings.Index(whole, "finish_reason\":\"stop")+5],
		"finish reason behind [DONE]":  "data: [DONE]\n\n" + whole,
	} {
		if a, e := ask(says(t, true, body)); e == nil || e.Type != agent.ErrStreamCut || !e.Retry {
			t.Errorf("%s: %+v, %v, want %s", name, a, e, agent.ErrStreamCut)
		}
	}
	for _, body := range []string{"upstream connect error\n", "data: {\"choices\":5}\n\n", "data: {\n\ndata: }\n\n"} {
		if a, e := ask(says(t, true, body)); e == nil || e.Type != agent.ErrBadAnswer || !e.Retry {
			t.Errorf("%q: %+v, %v, want %s", body, a, e, agent.ErrBadAnswer)
		}
	}
}
