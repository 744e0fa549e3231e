//go:build failpoint

package failpoint

import "strings"

// Enabled says whether this binary was built with the tag "failpoint".
const Enabled = true

// At marks a place that cannot fail; the action "error" panics there.
func At(name string) {
	if err := AtErr(name); err != nil {
		panic(err)
	}
}

// AtErr marks a place that can fail.
func AtErr(name string) error { return process().pass(name) }

// Effect marks a place of a tool's action that can fail, and of a compensation the place of the same name under
// "undo." instead.
func Effect(name string, undo bool) error { return AtErr(of(name, undo)) }

// EffectAt is [Effect] where it cannot fail; the action "error" panics there.
func EffectAt(name string, undo bool) { At(of(name, undo)) }

func of(name string, undo bool) string {
	if undo {
		return "undo." + strings.TrimPrefix(name, "tool.")
	}
	return name
}
