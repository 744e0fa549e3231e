package cell

import (
	"fmt"
	"strings"
)

// Name returns what the cell is called, which says everything about it: "pay/http-blind/kill@tool.after_commit:1", several
// faults joined by "+". It has nothing that a shell would take for its own.
func (c Cell) Name() string {
	faults := make([]string, len(c.Faults))
	for i, f := range c.Faults {
		faults[i] = f.name()
	}
	if len(faults) == 0 {
		faults = []string{"calm"}
	}
	return fmt.Sprintf("%s/%s/%s", c.Scenario, c.Destination, strings.Join(faults, "+"))
}

func (f Fault) name() string {
	out := string(f.Kind)
	if f.Arg != "" {
		out += "=" + strings.ReplaceAll(f.Arg, " ", "_")
	}
	switch {
	case f.At != "":
		return out + "@" + f.Place()
	case f.Nth > 0:
		return fmt.Sprintf("%s:%d", out, f.Nth)
	}
	return out
}

// Place returns the passings at which the fault strikes as a rule of package failpoint names them: "store.before_write:3",
// or "store.before_write:3-6", or "store.before_write" for each; "" where it has no place.
func (f Fault) Place() string {
	switch {
	case f.Nth == 0:
		return f.At
	case f.Last > f.Nth:
		return fmt.Sprintf("%s:%d-%d", f.At, f.Nth, f.Last)
	}
	return fmt.Sprintf("%s:%d", f.At, f.Nth)
}

// Text returns what strikes, without where: "kill", "storm model 429 seconds".
func (f Fault) Text() string { return strings.TrimSpace(string(f.Kind) + " " + f.Arg) }

// Boundary returns where the first fault strikes that has a place, "" if none has.
func (c Cell) Boundary() string {
	if i := c.first(); i >= 0 {
		return c.Faults[i].Place()
	}
	return ""
}

// FaultText returns what goes wrong. A place after the first one, which Boundary has, is part of it.
func (c Cell) FaultText() string {
	first := c.first()
	parts := make([]string, len(c.Faults))
	for i, f := range c.Faults {
		parts[i] = f.Text()
		switch {
		case f.At != "" && i != first:
			parts[i] += " at " + f.Place()
		case f.At == "" && f.Nth > 1:
			parts[i] += fmt.Sprintf(", %d times", f.Nth)
		}
	}
	return strings.Join(parts, " + ")
}

// first returns the index of the first fault that has a place, -1 if none has.
func (c Cell) first() int {
	for i, f := range c.Faults {
		if f.At != "" {
			return i
		}
	}
	return -1
}

// Find returns the cell of the table that has a name.
func Find(name string) (Cell, bool) {
	for _, c := range All() {
		if c.Name() == name {
			return c, true
		}
	}
	return Cell{}, false
}
