package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// A wireMessage has the members that go-openai leaves out when they are empty: a tool message without
// content and a call without arguments are refused by providers.
type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func encodeMessages(messages []Message) ([]byte, error) {
	out := make([]wireMessage, len(messages))
	for i, m := range messages {
		text := m.Text
		if text == "" {
			text = m.Refusal
		}
		w := wireMessage{Role: m.Role, Content: &text, ToolCallID: m.CallID}
		for _, c := range m.Calls {
			w.ToolCalls = append(w.ToolCalls, wireCall{c.ID, "function", wireFunction{mendName(c.Name), c.Args}})
		}
		if len(m.Calls) > 0 && text == "" {
			w.Content = nil // null, as providers write it themselves; some refuse an empty text here
		}
		out[i] = w
	}
	return marshal(out)
}

// fill puts the messages and the temperature into the body that go-openai made.
func (x *exchange) fill(req *http.Request) error {
	old, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(old, &members); err != nil {
		return err
	}
	delete(members, "messages")
	if x.cfg.Temperature != nil {
		if members["temperature"], err = json.Marshal(*x.cfg.Temperature); err != nil {
			return err
		}
	}
	rest, err := marshal(members)
	if err != nil {
		return err
	}
	// Joined by hand: a long conversation is not read once more only to be copied.
	body := slices.Concat([]byte(`{"messages":`), x.messages, []byte(","), rest[1:])
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, err = req.GetBody()
	return err
}

// marshal is json.Marshal without the escapes for HTML, which cost tokens with servers that count bytes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

const maxName = 64

func validName(name string) bool {
	return name != "" && len(name) <= maxName && strings.IndexFunc(name, notInName) < 0
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// mendName returns name in a form that a provider takes back. A model may ask for a tool by a name that no
// provider accepts in the conversation that follows.
func mendName(name string) string {
	if validName(name) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), maxName)]
}
