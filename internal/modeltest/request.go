package modeltest

import (
	"net/http"
	"time"
)

// A Request is what the server was sent.
type Request struct {
	At       time.Time
	Header   http.Header
	Raw      []byte
	Model    string
	Stream   bool
	Messages []Message
	Tools    []string // names
	// Breaches are what a strict provider would refuse in it.
	Breaches []string

	usage bool // it asked for usage in the stream
}

// A Message is one message of a request.
type Message struct {
	Role    string
	Content string // the text; "" for null
	Calls   []Call
	CallID  string
}

// A Call is a tool call of the model.
type Call struct{ ID, Name, Args string }

// User returns the text of the last user message.
func (r Request) User() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Content
		}
	}
	return ""
}

// Results returns the texts of the tool messages since the last user message, which tells a [Func] how far a
// turn has come.
func (r Request) Results() []string {
	var out []string
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			out = nil
		case "tool":
			out = append(out, m.Content)
		}
	}
	return out
}

func (r Request) tokens() int64 { return tokens(len(r.Raw)) }
