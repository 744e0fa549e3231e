package cell

import (
	"errors"
	"fmt"
	"slices"
)

// valid says why there can be no such cell, nil if there can.
func (c Cell) valid() error {
	if c.Scenario == Undo && !c.Destination.http() {
		return fmt.Errorf("the tools of %s take nothing back", c.Destination)
	}
	for _, f := range c.Faults {
		if err := errors.Join(f.valid(), c.reached(f)); err != nil {
			return err
		}
	}
	return c.suitable()
}

// valid says why there can be no such fault anywhere.
func (f Fault) valid() error {
	s, ok := sortOf(f.Kind)
	switch {
	case !ok:
		return fmt.Errorf("no kind of fault is called %q", f.Kind)
	case !slices.Contains(s.args, f.Arg):
		return fmt.Errorf("%s has no argument %q", f.Kind, f.Arg)
	case s.placed != (f.At != "") && f.Kind != Link: // which is bad all the time without one
		return fmt.Errorf("%s at place %q", f.Kind, f.At)
	case f.Last != 0 && f.Last <= f.Nth:
		return fmt.Errorf("%s is at no range of passings", f.Place())
	case f.Kind != Slow && f.At != "" && f.Nth < 1: // what strikes each time never ends
		return fmt.Errorf("%s strikes at each passing of %s", f.Kind, f.At)
	}
	return nil
}

// reached says why a fault's place is not passed that often when nothing goes wrong, nil if it is.
func (c Cell) reached(f Fault) error {
	if f.At == "" {
		return nil
	}
	if n := c.passings(f.At); n < max(1, f.Nth, f.Last) {
		return fmt.Errorf("%s at %s passes %s %d times", c.Scenario, c.Destination, f.At, n)
	}
	return nil
}
