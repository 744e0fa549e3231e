package activities

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-run/holdfast/approval"
)

// resource fills the {argument} placeholders of a tool's resource template. Numbers stay as they are
// written; an argument that is not there or not a scalar leaves its place empty.
func resource(template, args string) string {
	if template == "" {
		return ""
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(args), &values); err != nil {
		return template
	}
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(template, "{")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		value, _ := scalar(values[name])
		out.WriteString(value)
		template = after
	}
}

// scalar returns the text of a JSON string, number or truth value.
func scalar(raw json.RawMessage) (string, bool) {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", false
	case raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), true
}

// Bounds of a summary, in runes.
const (
	maxSummary = 60
	maxShown   = 24 // of one argument
)

// summary returns a line for the Web UI: the tool and its first two scalar arguments, shortened.
func (s *Snapshot) summary(name, args string) string {
	line := name
	dec := json.NewDecoder(strings.NewReader(args))
	if _, err := dec.Token(); err != nil {
		return line
	}
	for shown := 0; shown < 2 && dec.More(); {
		if _, err := dec.Token(); err != nil {
			break
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			break
		}
		if v, ok := scalar(raw); ok && v != "" {
			line += " " + s.short(v)
			shown++
		}
	}
	r := []rune(approval.Visible(line))
	if len(r) > maxSummary {
		r = append(r[:maxSummary-1], '…')
	}
	return string(r)
}

// short returns the end of a long value, which tells paths and addresses apart. It is masked before it is cut and
// before it is made visible: either could hide a secret from the mask.
func (s *Snapshot) short(v string) string {
	r := []rune(s.Mask.String(v))
	if len(r) > maxShown {
		r = append([]rune{'…'}, r[len(r)-maxShown+1:]...)
	}
	return string(r)
}
