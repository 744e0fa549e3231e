package starter

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-run/holdfast/approval"
)

// A member of an action's arguments, its texts as they are sent.
type member struct{ name, value string }

// members takes canonical arguments apart without changing a byte of them; false when they are none.
func members(args string) ([]member, bool) {
	if canonical, err := approval.Canonical([]byte(args)); err != nil || canonical != args {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(args))
	if _, err := d.Token(); err != nil { // the brace
		return nil, false
	}
	var out []member
	for d.More() {
		from := d.InputOffset()
		if _, err := d.Token(); err != nil {
			return nil, false
		}
		name := strings.TrimPrefix(args[from:d.InputOffset()], ",")
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		out = append(out, member{name, string(value)})
	}
	return out, true
}

// arguments shows what an action is sent with: a member a row, its name in quotes as it is sent, so that no
// value can pass for a further member.
func (s *sheet) arguments(label, args string) {
	list, ok := members(args)
	if !ok {
		s.row(label, args, "not canonical: this is no request to decide on")
		return
	}
	s.say(label, "%s, %s", count(len(args), "byte"), count(len(list), "member"))
	for i, m := range list {
		if i == maxMembers && !s.full {
			rest := 0
			for _, m := range list[i:] {
				rest += len(m.name) + len(m.value) + 2
			}
			s.hidden += rest
			s.say("", "⟨cut: %s, %s, not shown here; --full shows them⟩", count(len(list)-i, "further member"), count(rest, "byte"))
			return
		}
		remark := ""
		if len(m.value) > 2*rowWidth {
			remark = count(len(m.value), "byte")
		}
		s.row("", m.name+": "+m.value, remark)
	}
}
