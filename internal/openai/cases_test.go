package openai_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// TestOddModels plays each case of turns.json against the client, streamed and plain, and holds the first
// answer to what the case says; then it goes on as a turn would, and no request may break a provider's rules.
func TestOddModels(t *testing.T) {
	t.Parallel()
	cases, err := modeltest.Load("../../tests/cases/turns.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != 31 {
		t.Errorf("%d cases, want 31", len(cases))
	}
	for _, c := range cases {
		for _, stream := range []bool{true, false} {
			if c.Streams(stream) != stream {
				continue
			}
			name := c.ID + "/plain"
			if stream {
				name = c.ID + "/stream"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				want, ok := firstAnswers(c)
				if !ok {
					t.Fatalf("no expectation for the case %q: %s", c.ID, c.Expect)
				}
				s := modeltest.ForTest(t, modeltest.Config{Steps: c.Steps})
				got := converse(t, newClient(t, s.URL(), stream), c.Tools)
				if diff := cmp.Diff(want, got[0]); diff != "" {
					t.Errorf("first answer (-want +got):\n%s\n%s", diff, c.Expect)
				}
				if last := got[len(got)-1]; last.Err == "" && last.Finish != agent.FinishStop && last.Finish != agent.FinishRefusal {
					t.Errorf("the conversation ends with %+v", last)
				}
			})
		}
	}
}

// outcome is what a case looks at in an answer.
type outcome struct {
	Err    string
	Retry  bool
	Finish agent.Finish
	Text   string
	Calls  []string // "name args"
}

// firstAnswers says what must come of a case's first request.
func firstAnswers(c modeltest.Case) (outcome, bool) {
	calls := func(calls ...string) (outcome, bool) {
		return outcome{Finish: agent.FinishCalls, Calls: calls}, true
	}
	failed := func(class string, retry bool) (outcome, bool) {
		return outcome{Err: class, Retry: retry}, true
	}
	switch c.ID {
	case "args-truncated":
		return calls(`add_note {"text":"hel`)
	case "args-empty-string":
		return calls(`list_items `)
	case "args-array":
		return calls(`add_note ["hello"]`)
	case "args-double-encoded":
		return calls(`add_note "{\"text\":\"hello\"}"`)
	case "args-two-objects":
		return calls(`pay {"to":"acme","amount":10}{"to":"acme","amount":10000}`)
	case "args-duplicate-key":
		return calls(`pay {"to":"acme","amount":10,"amount":10000}`)
	case "args-big-int":
		return calls(`pay {"to":"acme","amount":10,"ref":9007199254740993}`)
	case "args-lone-surrogate":
		return calls(`add_note {"text":"a\ud835b"}`)
	case "args-deep":
		return calls(`add_note {"text":"x","extra":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`)
	case "args-zero-width":
		return calls("pay {\"to\":\"ac\u200bme\",\"amount\":10}")
	case "id-missing":
		return calls(`list_items {}`, `get_item {"id":"7"}`)
	case "id-duplicate-in-turn":
		return calls(`get_item {"id":"1"}`, `get_item {"id":"2"}`)
	case "name-unknown-beside-good":
		return calls(`nope {}`, `add_note {"text":"hello"}`)
	case "name-homoglyph":
		return calls("p\u0430y {\"to\":\"acme\",\"amount\":10}")
	case "finish-length-mid-call":
		return outcome{Finish: agent.FinishLength, Calls: []string{`pay {"to":"acme","amo`}}, true
	case "finish-stop-with-calls", "sse-name-late":
		return calls(`list_items {}`)
	case "refusal":
		return outcome{Finish: agent.FinishRefusal, Text: "I can't help with that."}, true
	case "content-and-calls":
		return outcome{Finish: agent.FinishCalls, Text: "I'll add the note now.", Calls: []string{`add_note {"text":"hello"}`}}, true
	case "error-in-200":
		return failed(agent.ErrOverloaded, true)
	case "parallel-one-needs-approval":
		return calls(`list_items {}`, `pay {"to":"acme","amount":10}`, `add_note {"text":"paid"}`)
	case "parallel-200":
		var all []string
		for n := range 200 {
			all = append(all, `get_item {"id":"`+itoa(n)+`"}`)
		}
		return calls(all...)
	case "rejected-then-same-again":
		return calls(`pay {"to":"acme","amount":10}`)
	case "http-429-retry-after":
		return failed(agent.ErrRateLimit, true)
	case "http-429-insufficient-quota":
		return failed(agent.ErrQuota, false)
	case "http-400-context-length":
		return failed(agent.ErrContextLength, false)
	case "conn-cut-half", "sse-cut-after-name":
		return failed(agent.ErrStreamCut, true)
	case "sse-keepalive-comments":
		return outcome{Finish: agent.FinishStop, Text: "done"}, true
	case "empty-tool-result":
		return calls(`empty {}`)
	case "binary-tool-result":
		return calls(`blob {"n":100,"kind":"binary"}`)
	}
	return outcome{}, false
}

// converse goes on as a turn would, with tools that return nothing, and returns what came of each request.
func converse(t *testing.T, c *openai.Client, tools []string) []outcome {
	t.Helper()
	r := openai.Request{Messages: []openai.Message{
		{Role: openai.RoleSystem, Text: "Be brief."}, {Role: openai.RoleUser, Text: "Go on."},
	}}
	for _, name := range tools {
		r.Tools = append(r.Tools, openai.Tool{Name: name})
	}
	var out []outcome
	ids := map[string]bool{}
	for range 8 {
		a, err := c.Ask(context.Background(), r)
		out = append(out, look(t, a, err))
		if now := out[len(out)-1]; now.Err != "" && !now.Retry || now.Err == "" && len(a.Calls) == 0 {
			return out
		}
		if err == nil {
			r.Messages = append(r.Messages, follow(a, ids)...)
		}
	}
	t.Errorf("no end after %d requests: %+v", len(out), out)
	return out
}

// follow returns the answer and empty results for its calls in the form in which they are sent back.
func follow(a openai.Answer, ids map[string]bool) []openai.Message {
	said := openai.Message{Role: openai.RoleAssistant, Text: a.Text}
	var results []openai.Message
	for _, call := range a.Calls {
		for ids[call.ID] {
			call.ID += "x"
		}
		ids[call.ID] = true
		call.Args = openai.ObjectText(call.Args)
		said.Calls = append(said.Calls, call)
		results = append(results, openai.Message{Role: openai.RoleTool, CallID: call.ID})
	}
	return append([]openai.Message{said}, results...)
}

func look(t *testing.T, a openai.Answer, err error) outcome {
	t.Helper()
	if err != nil {
		var e *openai.Error
		if !errors.As(err, &e) {
			t.Fatalf("not an *openai.Error: %v", err)
		}
		return outcome{Err: e.Type, Retry: e.Retry}
	}
	o := outcome{Finish: a.Finish, Text: a.Text + a.Refusal}
	seen := map[string]bool{"": true}
	for _, call := range a.Calls {
		if seen[call.ID] || call.Damaged != "" {
			t.Errorf("call %+v: id empty or repeated, or damaged", call)
		}
		seen[call.ID] = true
		o.Calls = append(o.Calls, call.Name+" "+call.Args)
	}
	return o
}
