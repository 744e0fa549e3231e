package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// A judgment reads a request as the strictest provider would: each rule here is one by which some provider or
// local server answers 400.
type judgment struct {
	Request
	ids  map[string]bool
	open []string // calls that no tool message has answered yet
}

type object = map[string]json.RawMessage

// judge reads a request and notes its breaches.
func judge(raw []byte) Request {
	j := &judgment{Request: Request{Raw: raw}, ids: map[string]bool{}}
	if !utf8.Valid(raw) {
		j.breach("the body is not valid UTF-8")
	}
	var body object
	if err := json.Unmarshal(raw, &body); err != nil {
		j.breach("the body is not JSON: %v", err)
		return j.Request
	}
	if j.Model = text(body["model"]); j.Model == "" {
		j.breach("it names no model")
	}
	j.Stream = string(body["stream"]) == "true"
	j.options(body)
	j.tools(body)
	j.messages(body["messages"])
	return j.Request
}

func (j *judgment) breach(format string, args ...any) {
	j.Breaches = append(j.Breaches, fmt.Sprintf(format, args...))
}

func (j *judgment) options(body object) {
	if options, ok := body["stream_options"]; ok {
		j.usage = bytes.Contains(options, []byte(`"include_usage":true`))
		if !j.Stream {
			j.breach("stream_options without stream")
		}
	}
	if body["max_tokens"] != nil && body["max_completion_tokens"] != nil {
		j.breach("max_tokens beside max_completion_tokens")
	}
}

func (j *judgment) tools(body object) {
	raw, ok := body["tools"]
	if !ok {
		return
	}
	var tools []struct {
		Type     string
		Function struct {
			Name       string
			Parameters object
		}
	}
	if err := json.Unmarshal(raw, &tools); err != nil {
		j.breach("tools: %v", err)
	} else if len(tools) == 0 {
		j.breach("the tools array is empty")
	}
	seen := map[string]bool{}
	for _, t := range tools {
		name := t.Function.Name
		if t.Type != "function" || !toolName.MatchString(name) || seen[name] {
			j.breach("tool %q: bad type, bad name or offered twice", name)
		}
		seen[name] = true
		j.Tools = append(j.Tools, name)
	}
}

func (j *judgment) messages(raw json.RawMessage) {
	var list []object
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		j.breach("messages is no array or empty")
	}
	for i, o := range list {
		before := len(j.Breaches)
		j.Messages = append(j.Messages, j.message(o))
		for b := range j.Breaches[before:] {
			j.Breaches[before+b] = fmt.Sprintf("message %d: %s", i+1, j.Breaches[before+b])
		}
	}
	j.answered("the end")
}

func (j *judgment) message(o object) Message {
	m := Message{Role: text(o["role"]), Content: content(o["content"]), CallID: text(o["tool_call_id"])}
	if m.Role != "tool" {
		j.answered("a message of role " + m.Role)
	}
	c, ok := o["content"]
	if !ok {
		j.breach("no content member")
	}
	calls := o["tool_calls"]
	if isNull := ok && string(c) == "null"; isNull && (m.Role != "assistant" || calls == nil) {
		j.breach("null content")
	}
	switch m.Role {
	case "tool":
		j.answer(m.CallID)
	case "assistant":
		m.Calls = j.calls(calls)
	case "system", "user", "developer":
	default:
		j.breach("role %q", m.Role)
	}
	if calls != nil && m.Role != "assistant" {
		j.breach("tool_calls in a message of role %q", m.Role)
	}
	return m
}

func (j *judgment) answer(id string) {
	if len(j.open) == 0 || !j.ids[id] {
		j.breach("it answers %q, and there is no such call", id)
		return
	}
	if j.open[0] != id {
		j.breach("it answers %q where %q comes next", id, j.open[0])
	}
	for i, open := range j.open {
		if open == id {
			j.open = append(j.open[:i:i], j.open[i+1:]...)
			return
		}
	}
}

// answered notes the calls that are still open where none may be.
func (j *judgment) answered(where string) {
	if len(j.open) > 0 {
		j.breach("%s comes before the answers to %s", where, strings.Join(j.open, ", "))
	}
	j.open = nil
}

func (j *judgment) calls(raw json.RawMessage) []Call {
	if raw == nil {
		return nil
	}
	var list []struct {
		ID       string
		Type     string
		Function object
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		j.breach("tool_calls is no array or empty")
	}
	var out []Call
	for _, c := range list {
		call := Call{ID: c.ID, Name: text(c.Function["name"]), Args: text(c.Function["arguments"])}
		j.call(call, c.Type, c.Function["arguments"])
		out = append(out, call)
	}
	return out
}

func (j *judgment) call(c Call, kind string, args json.RawMessage) {
	switch {
	case c.ID == "":
		j.breach("a call without id")
	case j.ids[c.ID]:
		j.breach("call id %q twice", c.ID)
	}
	j.ids[c.ID] = true
	j.open = append(j.open, c.ID)
	if kind != "function" || !toolName.MatchString(c.Name) {
		j.breach("call %q: bad type or bad tool name %q", c.ID, c.Name)
	}
	var o object
	switch {
	case args == nil:
		j.breach("call %q: no arguments member", c.ID)
	case json.Unmarshal([]byte(c.Args), &o) != nil || o == nil:
		j.breach("call %q: arguments are not the text of a JSON object", c.ID)
	}
}

// text returns a JSON string's text, and "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// content returns a message's text, be it a string or an array of parts.
func content(raw json.RawMessage) string {
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return text(raw)
	}
	var out strings.Builder
	for _, p := range parts {
		out.WriteString(p.Text)
	}
	return out.String()
}
