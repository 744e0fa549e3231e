package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
)

// MaxInline is the longest text in bytes that stands in a segment. A longer one is a body of its own, which
// repeats name by its digest.
const MaxInline = 4 << 10

// An Entry is one message of a conversation.
type Entry struct {
	Role agent.Role
	Call string // RoleTool: the provider's id of the call that this answers
	// Text holds all of it when Body is nil. With a Body it is what the writer gave beside it, such as
	// a preview, and Log.Texts has the whole.
	Text    string
	Body    *agent.Body
	Calls   []Call // RoleAssistant: what the model asked for
	Refusal string
}

// A Call is one tool call as the model wrote it.
type Call struct {
	ID, Name string
	// Args is the text exactly as the model wrote it, whether or not it parses.
	Args string
	// Body names Args in the store when it is longer than MaxInline. Args is filled in all the same,
	// unless the body is lost: then there is a Gap for it.
	Body *agent.Body
}

// A Conversation is a transcript up to a head. It is shared: nothing in it may be changed.
type Conversation struct {
	Entries []Entry
	// Gaps are the places where something is missing, in order.
	Gaps []Gap
}

// A Gap is a place in a conversation where entries are missing.
type Gap struct {
	// From and To are the first and the last missing segment.
	From, To int64
	// At is the index in Entries of the first entry after the gap.
	At int
	// Reason says, for a person, what was found.
	Reason string
	// Unverified says that the segments before the gap were found in the store but that nothing
	// proves that they belong to this conversation.
	Unverified bool
}

// The stored form of entries is a JSON array on one line. It is written once and from then on copied as it
// is, never encoded again, because digests are over its bytes.
type (
	storedEntry struct {
		Role    agent.Role   `json:"role"`
		Call    text         `json:"call,omitempty"`
		Text    text         `json:"text,omitempty"`
		Body    *agent.Body  `json:"body,omitempty"`
		Calls   []storedCall `json:"calls,omitempty"`
		Refusal text         `json:"refusal,omitempty"`
	}
	storedCall struct {
		ID   text        `json:"id"`
		Name text        `json:"name"`
		Args text        `json:"args,omitempty"`
		Body *agent.Body `json:"body,omitempty"`
	}
)

// A text is a JSON string, or {"base64": ...} when it is not valid UTF-8: a JSON encoder would replace what
// is not, and what a model wrote is kept to the byte.
type text string

type rawText struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return marshal(string(t))
	}
	return marshal(rawText{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("{")) {
		var raw rawText
		err := json.Unmarshal(b, &raw)
		*t = text(raw.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// marshal is json.Marshal without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// encodeEntries returns the line that holds entries.
func encodeEntries(entries []Entry) ([]byte, error) {
	stored := make([]storedEntry, len(entries))
	for i, e := range entries {
		stored[i] = storedEntry{
			Role: e.Role, Call: text(e.Call), Text: text(e.Text), Body: e.Body, Refusal: text(e.Refusal),
		}
		for _, c := range e.Calls {
			s := storedCall{ID: text(c.ID), Name: text(c.Name), Args: text(c.Args), Body: c.Body}
			if c.Body != nil {
				s.Args = ""
			}
			stored[i].Calls = append(stored[i].Calls, s)
		}
	}
	return marshal(stored)
}

// decodeEntries reads a line. Members that this build does not know are left alone.
func decodeEntries(line []byte) ([]Entry, error) {
	var stored []storedEntry
	if err := json.Unmarshal(line, &stored); err != nil {
		return nil, fmt.Errorf("entries: %w", err)
	}
	entries := make([]Entry, len(stored))
	for i, s := range stored {
		entries[i] = Entry{
			Role: s.Role, Call: string(s.Call), Text: string(s.Text), Body: s.Body, Refusal: string(s.Refusal),
		}
		for _, c := range s.Calls {
			entries[i].Calls = append(entries[i].Calls, Call{ID: string(c.ID), Name: string(c.Name), Args: string(c.Args), Body: c.Body})
		}
	}
	return entries, nil
}
