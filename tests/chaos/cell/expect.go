package cell

import (
	"slices"
	"strings"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// expected returns what may be expected of a cell by its faults.
func expected(c Cell) Expect {
	out := Same
	for _, f := range c.Faults {
		switch {
		case f.At == fp.ToolLastCheck && (f.Kind == Freeze || f.Kind == Hang) && !c.Destination.honours():
			return Window
		case changes(f), refused(c, f):
			out = Agree
		}
	}
	return out
}

// changes says whether a fault changes what is to be done: policy, the agent, people, or what the store remembers.
func changes(f Fault) bool {
	switch f.Kind {
	case Revoke, Rebuild, Damage:
		return true
	case Word:
		return f.Arg == "late" // the request has expired
	}
	return false
}

// refused says whether an effect is known not to have happened, and the model is told so and does not ask again.
func refused(c Cell, f Fault) bool {
	switch {
	case f.Kind == Lost:
		return f.Arg == "refuse" && !c.Destination.http() // an MCP server's error is a no; 503 is none
	case c.Destination.honours(): // what has not left is tried again under its key
		return false
	case f.Kind == Freeze: // it wakes, says that it has sent nothing, and may still be heard
		unsent := []string{
			fp.ToolApproved, fp.ToolBeforeAdmission, fp.ToolBeforeDispatch, fp.ToolAfterDispatch,
			fp.UndoBeforeAdmission, fp.UndoBeforeDispatch, fp.UndoAfterDispatch,
			fp.StoreBeforeRead, fp.StoreBeforeWrite, fp.StoreAfterWrite,
		}
		return c.Destination.unknowable() && slices.Contains(unsent, f.At)
	case f.Kind == Link: // nobody took the connection in the time to send
		return strings.HasPrefix(f.Arg, "destination cut")
	}
	return false
}
