package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	maxShown    = 20   // differences in an error's text; the rest is counted
	maxClipped  = 160  // bytes of a value in an error's text
	maxTemporal = 2048 // bytes of Temporal's error there: it prints both commands whole
	maxPaths    = 4    // differences of one value

	nothing = "nothing"
)

// How the kinds of differences begin that are no command's.
const (
	whatEnd    = "end of the run"
	whatUpdate = "update "
	whatChange = "change id"
)

// A Difference is one place where this build does something else than history holds.
type Difference struct {
	// Event is the event in history, or the one behind which history lacks something.
	Event int64
	// What differs, such as "activity tool: input.args".
	What string
	// Recorded is what history holds and Now what this build does, the beginning of each.
	Recorded, Now string
}

func (d Difference) String() string {
	return fmt.Sprintf("event %d, %s: history has %s, this build has %s",
		d.Event, d.What, clip(d.Recorded, maxClipped), clip(d.Now, maxClipped))
}

// A Mismatch says where a history and this build part.
type Mismatch struct {
	Workflow, Run, Type string
	Change              int    // the run's change number, 0 if history holds none
	Build               string // of the worker that wrote what differs first; "" if history does not say
	// Temporal is the error of Temporal's own replay: a worker of this build could not go on with the
	// run. It is nil when only what Temporal does not compare differs.
	Temporal error
	// Differences are in the order of history.
	Differences []Difference

	marker  int64 // the event of the change number
	found   place // what Temporal's error is about
	reached int64 // the event behind which Temporal's replay has stopped, as far as is known
}

func (m *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q, run %s, does not replay with this build; put the change under a number of package versioning", m.Type, m.Workflow, m.Run)
	if m.Temporal != nil {
		fmt.Fprintf(&b, "\n\t%s", clip(m.Temporal.Error(), maxTemporal))
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

// differ returns where two values differ: the first few paths if both are JSON.
func differ(event int64, what, past, now string) []Difference {
	a, okA := valueOf(past)
	b, okB := valueOf(now)
	if okA && okB {
		var out []Difference
		parts(&out, Difference{Event: event, What: what}, a, b)
		if len(out) > 0 {
			return out[:min(len(out), maxPaths)]
		}
	}
	// Not JSON, or JSON with null in one and nothing in the other: show where the bytes part.
	i := 0
	for i < min(len(past), len(now)) && past[i] == now[i] {
		i++
	}
	return []Difference{{Event: event, What: what, Recorded: from(past, i), Now: from(now, i)}}
}

// from returns the text from a little before place i on.
func from(s string, i int) string {
	if i < maxClipped/2 {
		return s
	}
	return "…" + strings.ToValidUTF8(s[i-maxClipped/4:], "")
}

// parts appends the places where two JSON values differ; at is the way to them.
func parts(out *[]Difference, at Difference, a, b any) {
	within := func(step string, a, b any) {
		next := at
		next.What += step
		parts(out, next, a, b)
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			all := maps.Clone(x)
			maps.Copy(all, y)
			for _, k := range keys(all) {
				within("."+k, x[k], y[k])
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				within(fmt.Sprintf("[%d]", i), x[i], y[i])
			}
			return
		}
	}
	if at.Recorded, at.Now = text(a), text(b); at.Recorded != at.Now {
		*out = append(*out, at)
	}
}

func keys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m)) //nolint:forbidigo // sorted
}

func text(v any) string {
	if v == nil {
		return nothing
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// clip shortens text to n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
