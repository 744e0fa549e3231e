package modeltest

import (
	"encoding/json"
	"net/http"
	"time"
)

// A Step is one answer of the server. Exactly one of Message, Body, SSE or none of them says what is
// answered; none means {"content":"done"}. In its strings "$PAD:n" stands for n letters, "$DEEP:n" for n
// nested arrays and "$RAW:hex" for raw bytes.
type Step struct {
	// Message is the assistant's message, sent as a completion or as a stream, as the request
	// wants it. Finish is its finish reason; empty is "tool_calls" with calls and "stop" without.
	Message json.RawMessage `json:"message,omitempty"`
	Finish  string          `json:"finish,omitempty"`
	// Body is sent as it is; a JSON string is sent as its text.
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

// A Func decides the next answer from the request alone, so that any number of conversations go on at
// once. It is called from many goroutines.
type Func func(Request) Step

// A Request is what the server was sent.
type Request struct {
	At       time.Time
	Header   http.Header
	Raw      []byte
	Model    string
	Stream   bool
	Messages []Message
	Tools    []string // names
}

// A Message is one message of a request.
type Message struct {
	Role    string
	Content string // "" for null
	Calls   []Call
	CallID  string
}

// A Call is a tool call in a request's assistant message.
type Call struct{ ID, Name, Args string }

// Charges is what a provider would have charged for: answers that were sent whole.
type Charges struct {
	Answers       int
	Input, Output int64 // tokens, as reported in each answer's usage
}

// Config says what a server plays.
type Config struct {
	Steps []Step
	// Func, when set, decides instead of Steps.
	Func Func
	// Latency is waited before every answer.
	Latency time.Duration
	// Key, when set, is the bearer token that requests must carry; others get a 401.
	Key string
	// Addr is where to listen; empty is a free port on 127.0.0.1.
	Addr string
	// Forget keeps no requests, for long benchmarks; breaches and charges are still counted.
	Forget bool
}

// A Case is one entry of turns.json.
type Case struct {
	ID     string           `json:"id"`
	Area   string           `json:"area"`
	Tools  []string         `json:"tools"`
	Steps  []Step           `json:"steps"`
	Expect string           `json:"expect"`
	Calls  map[string]Range `json:"calls"`
	Final  OneOf            `json:"final"`
	// MaxRequests bounds how often the model may be asked; 0 when the case does not say.
	MaxRequests int `json:"max_requests"`
	// Stream forces how the client asks; nil leaves it free.
	Stream *bool `json:"stream"`
}

// A Range is how often a tool's body may run: a number, or the least and the most.
type Range struct{ Min, Max int }

// OneOf lists the allowed ends of a turn.
type OneOf []string
