package openai

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// ObjectText returns args if they can be sent back to a provider, which wants the text of a JSON object in
// valid UTF-8, and "{}" otherwise.
func ObjectText(args string) string {
	if isObjectText(args) {
		return args
	}
	return "{}"
}

func isObjectText(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && utf8.ValidString(s) && json.Valid([]byte(s))
}

// check refuses what a strict provider would refuse, so that a defect of the caller is seen at once and not
// only with some servers.
func (r Request) check() *Error {
	if len(r.Messages) == 0 {
		return refused("there are no messages")
	}
	v := conversation{ids: map[string]bool{}}
	for i, m := range r.Messages {
		if problem := v.next(m); problem != "" {
			return refused("message %d (%s): %s", i+1, clean(m.Role, 20), problem)
		}
	}
	if len(v.open) > 0 {
		return refused("call %q has no tool message", v.open[0])
	}
	return checkTools(r.Tools)
}

// A conversation is what has to be remembered to judge the next message.
type conversation struct {
	ids  map[string]bool
	open []string // calls still to be answered, in order
}

// next returns what is wrong with m, or "".
func (v *conversation) next(m Message) string {
	if !utf8.ValidString(m.Text) || !utf8.ValidString(m.Refusal) {
		return "its text is not valid UTF-8"
	}
	if m.Role != RoleAssistant && (len(m.Calls) > 0 || m.Refusal != "") {
		return "only an assistant makes calls or refuses"
	}
	if m.Role == RoleTool {
		return v.answer(m.CallID)
	}
	if m.CallID != "" {
		return "only a tool message has a call id"
	}
	if len(v.open) > 0 {
		return "call \"" + v.open[0] + "\" has not been answered before it"
	}
	switch m.Role {
	case RoleSystem, RoleUser:
		return ""
	case RoleAssistant:
		return v.calls(m.Calls)
	}
	return "its role is not known"
}

func (v *conversation) answer(id string) string {
	if len(v.open) == 0 {
		return "it answers call \"" + id + "\", and none is open"
	}
	if v.open[0] != id {
		return "it answers call \"" + id + "\" where \"" + v.open[0] + "\" comes next"
	}
	v.open = v.open[1:]
	return ""
}

func (v *conversation) calls(calls []Call) string {
	for _, c := range calls {
		switch {
		case c.ID == "" || !utf8.ValidString(c.ID):
			return "a call's id is empty or not valid UTF-8"
		case v.ids[c.ID]:
			return "call id \"" + c.ID + "\" was used before"
		case !isObjectText(c.Args):
			return "the arguments of call \"" + c.ID + "\" are not the text of a JSON object"
		}
		v.ids[c.ID] = true
		v.open = append(v.open, c.ID)
	}
	return ""
}

func checkTools(tools []Tool) *Error {
	seen := map[string]bool{}
	for _, t := range tools {
		switch {
		case !validName(t.Name):
			return refused("tool %q: a name is 1 to %d of A-Z a-z 0-9 _ -", t.Name, maxName)
		case seen[t.Name]:
			return refused("tool %q is offered twice", t.Name)
		case !utf8.ValidString(t.Description):
			return refused("tool %q: its description is not valid UTF-8", t.Name)
		case len(t.Parameters) > 0 && !isObjectText(string(t.Parameters)):
			return refused("tool %q: its parameters are not a JSON object", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}
