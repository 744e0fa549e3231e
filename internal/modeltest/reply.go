package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// A reply is a step as it goes over the wire.
type reply struct {
	status  int
	headers map[string]string
	body    []byte
	stream  bool
	close   string
	output  int64 // tokens to be charged for; 0 when it is no completion
}

// pieces returns the parts that are sent one by one: events of a stream, else all in one and the last byte.
func (p reply) pieces() [][]byte {
	if p.stream {
		events := bytes.SplitAfter(p.body, []byte("\n\n"))
		return events[:len(events)-1] // behind the last there is nothing
	}
	if len(p.body) < 2 {
		return [][]byte{p.body}
	}
	last := len(p.body) - 1
	return [][]byte{p.body[:last], p.body[last:]}
}

func render(s Step, q Request) reply {
	p := reply{status: s.Status, close: s.Close, headers: map[string]string{}}
	if p.status == 0 {
		p.status = http.StatusOK
	}
	switch {
	case len(s.SSE) > 0 || s.Done:
		p.lines(s)
	case len(s.Body) > 0:
		p.asItIs(s)
	default:
		if len(s.Message) == 0 {
			s.Message, s.Finish = Say("done").Message, "stop"
		}
		p.completion(s, q)
	}
	for name, value := range s.Headers {
		p.headers[name] = value
	}
	return p
}

func (p *reply) lines(s Step) {
	p.stream = true
	p.headers["Content-Type"] = "text/event-stream"
	lines := s.SSE
	if s.Done {
		lines = append(lines[:len(lines):len(lines)], "data: [DONE]")
	}
	text := expand([]byte(strings.Join(lines, "\n\n") + "\n\n"))
	p.body = text
	p.output = tokens(len(text))
}

func (p *reply) asItIs(s Step) {
	p.headers["Content-Type"] = "application/json"
	p.body = s.Body
	var text string
	if json.Unmarshal(s.Body, &text) == nil && s.Body[0] == '"' {
		p.body = []byte(text)
		p.headers["Content-Type"] = http.DetectContentType(p.body)
	}
	p.body = expand(p.body)
	if s.ok() && bytes.Contains(p.body, []byte(`"choices"`)) {
		p.output = tokens(len(p.body))
	}
}

func (p *reply) completion(s Step, q Request) {
	message := expand(s.Message)
	if s.ok() {
		p.output = tokens(len(message))
	}
	finish := s.Finish
	if finish == "" {
		finish = "stop"
		if bytes.Contains(message, []byte(`"tool_calls"`)) {
			finish = "tool_calls"
		}
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		q.tokens(), p.output, q.tokens()+p.output)
	if q.Stream {
		p.stream = true
		p.headers["Content-Type"] = "text/event-stream"
		p.body = stream(s.Message, finish, usage, q)
		return
	}
	p.headers["Content-Type"] = "application/json"
	p.body = fmt.Appendf(nil, `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":%s,`+
		`"choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":%s}`,
		encode(q.Model), message, finish, usage)
}

// stream cuts a message into the chunks of a stream as providers do.
func stream(message json.RawMessage, finish, usage string, q Request) []byte {
	var out bytes.Buffer
	event := func(choices, rest string) {
		fmt.Fprintf(&out, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":%s,"choices":[%s]%s}`+"\n\n",
			encode(q.Model), choices, rest)
	}
	for _, d := range deltas(message) {
		event(fmt.Sprintf(`{"index":0,"delta":%s,"finish_reason":null}`, d), "")
	}
	event(fmt.Sprintf(`{"index":0,"delta":{},"finish_reason":%q}`, finish), "")
	if q.usage {
		event("", `,"usage":`+usage)
	}
	out.WriteString("data: [DONE]\n\n")
	return expand(out.Bytes())
}

// deltas returns a message in pieces; one of an unknown shape is a single piece.
func deltas(message json.RawMessage) []string {
	var m struct {
		Content json.RawMessage   `json:"content"`
		Refusal json.RawMessage   `json:"refusal"`
		Calls   []json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(message, &m) != nil {
		return []string{string(message)}
	}
	out := []string{`{"role":"assistant","content":null}`}
	for _, s := range cut(m.Content) {
		out = append(out, `{"content":`+s+`}`)
	}
	for _, s := range cut(m.Refusal) {
		out = append(out, `{"refusal":`+s+`}`)
	}
	for i, c := range m.Calls {
		for _, s := range callDeltas(c, i) {
			out = append(out, `{"tool_calls":[`+s+`]}`)
		}
	}
	return out
}

// callDeltas returns a call's id, name and the rest of its members first, then its arguments bit by bit.
func callDeltas(raw json.RawMessage, index int) []string {
	var c, f map[string]json.RawMessage
	if json.Unmarshal(raw, &c) != nil || c == nil {
		return []string{string(raw)}
	}
	c["index"] = encode(index)
	if json.Unmarshal(c["function"], &f) != nil || f["arguments"] == nil {
		return []string{string(encode(c))}
	}
	bits := cut(f["arguments"])
	f["arguments"] = json.RawMessage(`""`)
	c["function"] = encode(f)
	out := []string{string(encode(c))}
	for _, s := range bits {
		out = append(out, fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, index, s))
	}
	return out
}

// unit matches what must not be cut inside a JSON string: an escape, a mark to be expanded, a letter.
var unit = regexp.MustCompile(`(?s)\\u[0-9a-fA-F]{4}|\\.|\$(?:PAD|DEEP):\d+|\$RAW:(?:[0-9a-fA-F]{2})+|.`)

// cut returns a JSON string as up to four of them, and anything else as it is; nothing for null.
func cut(raw json.RawMessage) []string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if raw[0] != '"' || len(raw) == 2 {
		return []string{string(raw)}
	}
	inside := raw[1 : len(raw)-1]
	units := unit.FindAll(inside, -1)
	size := (len(units) + 3) / 4
	var out []string
	for len(units) > 0 {
		n := min(size, len(units))
		out = append(out, `"`+string(bytes.Join(units[:n], nil))+`"`)
		units = units[n:]
	}
	return out
}

// tokens makes a count out of a number of bytes, the usual four to a token.
func tokens(bytes int) int64 { return int64(bytes/4 + 1) }
