package openai

import (
	"encoding/json"

	"github.com/holdfast-run/holdfast/agent"
)

// The roles of a [Message].
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// A Request is one conversation to be continued by the model.
type Request struct {
	// Messages are sent in order. A conversation that a strict provider would refuse is refused
	// here: every call answered by exactly one tool message, in the order asked for, right after the
	// message that asked; call ids unique in the whole conversation; arguments a JSON object text
	// (see [ObjectText]); all text valid UTF-8.
	Messages []Message
	// Tools are what the model may ask for; their names are unique and match [A-Za-z0-9_-]{1,64}.
	Tools []Tool
	// Progress, when set, is called with the number of bytes that have arrived so far: with 0 once
	// the headers are there, then whenever bytes come, keep-alive comments included. It is called on
	// the goroutine of Ask and holds it up.
	Progress func(bytes int)
}

// A Message is one message of a conversation.
type Message struct {
	Role string
	Text string
	// Refusal is what an assistant said instead of an answer. It is sent as the message's content
	// when Text is empty, because many servers do not know a refusal member.
	Refusal string
	Calls   []Call // RoleAssistant only
	CallID  string // RoleTool: the ID of the call that it answers
}

// A Call is a tool call that the model asked for.
type Call struct {
	// ID is unique within an answer: a missing or repeated one is made up from the call's position
	// ("call_3"), so that the same bytes give the same ids. The caller makes it unique in the
	// conversation.
	ID string
	// Name is as the model wrote it. A name that no provider takes back (empty, letters outside
	// [A-Za-z0-9_-]) is mended in what is sent, never here.
	Name string
	// Args are the arguments exactly as the model wrote them, whatever they are; "" when it wrote
	// none.
	Args string
	// Damaged says why Args or Name are not what the model wrote: bytes that were not UTF-8, or half
	// a surrogate pair, and U+FFFD now stands in their place. Such a call must not be run.
	Damaged string
}

// A Tool is offered to the model.
type Tool struct {
	Name, Description string
	// Parameters is a JSON schema of an object; empty means a tool without parameters.
	Parameters json.RawMessage
}

// An Answer is a whole answer of the model.
type Answer struct {
	Text    string // valid UTF-8
	Refusal string
	// Calls may run only when Finish is [agent.FinishCalls]. With any other reason the model did not
	// finish writing.
	Calls  []Call
	Finish agent.Finish
	Usage  agent.Usage // zeros where the server did not say; Calls is 1
	// Model and Fingerprint are as the server reported them.
	Model, Fingerprint string
}
