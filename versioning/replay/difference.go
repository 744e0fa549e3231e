package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	maxShown   = 20  // differences in an error's text; the rest is counted
	maxClipped = 160 // bytes of a value in an error's text
)

// A Difference is one place where this build does something else than history holds.
type Difference struct {
	// Event is the event in history; 0 when history holds none.
	Event int64
	// What differs, such as "activity tool: input.args".
	What string
	// Recorded is what history holds and Now what this build does, the beginning of each.
	Recorded, Now string
}

func (d Difference) String() string {
	where := "no event"
	if d.Event > 0 {
		where = fmt.Sprintf("event %d", d.Event)
	}
	return fmt.Sprintf("%s, %s: history has %s, this build has %s", where, d.What, clip(d.Recorded, 0), clip(d.Now, 0))
}

// A Mismatch says where a history and this build part.
type Mismatch struct {
	Workflow, Run, Type string
	// Temporal is the error of Temporal's own replay: a worker of this build could not go on with the
	// run. It is nil when only what Temporal does not compare differs.
	Temporal error
	// Differences are in the order of history.
	Differences []Difference
}

func (m *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q, run %s, does not replay with this build; put the change under a number of package versioning", m.Type, m.Workflow, m.Run)
	if m.Temporal != nil {
		fmt.Fprintf(&b, "\n\t%s", clip(m.Temporal.Error(), 4*maxClipped))
	}
	for _, d := range m.Differences[:min(len(m.Differences), maxShown)] {
		fmt.Fprintf(&b, "\n\t%s", d)
	}
	if n := len(m.Differences) - maxShown; n > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", n)
	}
	return b.String()
}

// Unwrap returns Temporal's error.
func (m *Mismatch) Unwrap() error { return m.Temporal }

// differ makes the difference of two values, at the first place where their JSON parts.
func differ(event int64, what, past, now string) Difference {
	var a, b any
	if decodeJSON(past, &a) && decodeJSON(now, &b) {
		if path, x, y := firstDifference("", a, b); path != "" {
			return Difference{Event: event, What: what + path, Recorded: x, Now: y}
		}
	}
	// Not JSON, or JSON that differs in layout only: show where the bytes part.
	i := 0
	for i < min(len(past), len(now)) && past[i] == now[i] {
		i++
	}
	return Difference{Event: event, What: what, Recorded: from(past, i), Now: from(now, i)}
}

// from returns the text from a little before place i on.
func from(s string, i int) string {
	if i < maxClipped/2 {
		return s
	}
	return "…" + strings.ToValidUTF8(s[i-maxClipped/4:], "")
}

func decodeJSON(s string, v any) bool {
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.UseNumber()
	return d.Decode(v) == nil
}

// firstDifference walks two values and returns the path to where they differ, or "".
func firstDifference(path string, a, b any) (where, x, y string) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			all := maps.Clone(a)
			maps.Copy(all, b)
			for _, k := range keys(all) {
				if where, x, y := firstDifference(path+"."+k, a[k], b[k]); where != "" {
					return where, x, y
				}
			}
			return "", "", ""
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				if where, x, y := firstDifference(fmt.Sprintf("%s[%d]", path, i), a[i], b[i]); where != "" {
					return where, x, y
				}
			}
			return "", "", ""
		}
	}
	x, y = text(a), text(b)
	if x == y {
		return "", "", ""
	}
	if path == "" {
		path = "."
	}
	return path, x, y
}

func keys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m)) //nolint:forbidigo // sorted
}

func text(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// clip shortens text to n bytes, 0 being [maxClipped].
func clip(s string, n int) string {
	if n == 0 {
		n = maxClipped
	}
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
