package modeltest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// A Step is one answer of the server: one of Message, Body and SSE says what, and none of them means
// {"content":"done"}. In their strings "$PAD:n" stands for n letters, "$DEEP:n" for n nested arrays and
// "$RAW:hex" for raw bytes.
type Step struct {
	// Message is the assistant's message, sent as a completion or as a stream, as the request
	// wants it. Finish is its finish reason; empty is "tool_calls" with calls and "stop" without.
	Message json.RawMessage `json:"message,omitempty"`
	Finish  string          `json:"finish,omitempty"`
	// Body is sent as it is, whatever was asked for; a JSON string is sent as its text.
	Body    json.RawMessage   `json:"body,omitempty"`
	Status  int               `json:"status,omitempty"` // 0 is 200
	Headers map[string]string `json:"headers,omitempty"`
	// SSE are the lines of an event stream; Done adds "data: [DONE]".
	SSE  []string `json:"sse,omitempty"`
	Done bool     `json:"done,omitempty"`
	// Close cuts the connection: "before" anything is sent, "after_headers" or "half" way.
	Close string `json:"close,omitempty"`
	// Sleep is how many seconds to wait first.
	Sleep float64 `json:"sleep,omitempty"`
}

// Say returns a step in which the model answers with text.
func Say(text string) Step {
	return Step{Message: encode(map[string]any{"role": "assistant", "content": text}), Finish: "stop"}
}

// Want returns a step in which the model asks for calls; an empty ID is left out.
func Want(calls ...Call) Step {
	list := []any{}
	for _, c := range calls {
		one := map[string]any{"type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}}
		if c.ID != "" {
			one["id"] = c.ID
		}
		list = append(list, one)
	}
	m := map[string]any{"role": "assistant", "content": nil, "tool_calls": list}
	return Step{Message: encode(m), Finish: "tool_calls"}
}

// Fail returns a step that answers with an HTTP status and an error object.
func Fail(status int, code, message string) Step {
	return Step{Status: status, Body: encode(map[string]any{
		"error": map[string]any{"message": message, "type": code, "code": code, "param": nil},
	})}
}

// TurnAway returns the step of a provider that answers nobody just now: 429 when there is too much to do, 500 when it is
// broken, 503 when it is closed. With [Step.RetryIn] or [Step.RetryAt] it says when to come again.
func TurnAway(status int) Step {
	code := "server_error"
	if status == http.StatusTooManyRequests {
		code = "rate_limit_exceeded"
	}
	return Fail(status, code, "come again later")
}

// RetryIn returns s with a Retry-After in seconds.
func (s Step) RetryIn(seconds int) Step { return s.header("Retry-After", strconv.Itoa(seconds)) }

// RetryAt returns s with a Retry-After as an HTTP date, which has no fractions of a second: they are cut off.
func (s Step) RetryAt(at time.Time) Step {
	return s.header("Retry-After", at.UTC().Format(http.TimeFormat))
}

func (s Step) header(name, value string) Step {
	headers := maps.Clone(s.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	headers[name] = value
	s.Headers = headers
	return s
}

// Slow returns a step that waits before it does what s does.
func (s Step) Slow(seconds float64) Step {
	s.Sleep = seconds
	return s
}

// OK says whether the step is an HTTP success.
func (s Step) ok() bool { return s.Status == 0 || s.Status == http.StatusOK }

// encode is for values made above, which always have a JSON form.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
