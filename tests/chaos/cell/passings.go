package cell

import (
	"fmt"
	"slices"
	"strings"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// suitable says why a fault can do nothing in this cell, nil if all can do something.
func (c Cell) suitable() error {
	for _, f := range c.Faults {
		if err := c.suits(f); err != nil {
			return err
		}
	}
	return nil
}

// suits says why a fault can do nothing in this cell, nil if it can.
func (c Cell) suits(f Fault) error {
	outside := strings.HasPrefix(f.Arg, "destination ") && (f.Kind == Storm || f.Kind == Link)
	switch {
	case f.At == fp.ToolAfterSend && !c.Destination.http():
		return fmt.Errorf("%s hears of no end of a request", c.Destination)
	case outside && !c.Destination.http():
		return fmt.Errorf("%s is a process of the worker's: it has no %s", c.Destination, f.Text())
	case f.Kind == Lost && !c.Destination.http() && (f.Arg == "error" || strings.HasPrefix(f.Arg, "entered ")):
		return fmt.Errorf("%s has no status", c.Destination)
	case f.Kind == Word && c.Scenario != Pay:
		return fmt.Errorf("nobody decides anything in %s", c.Scenario)
	}
	return nil
}

func (d Destination) http() bool { return strings.HasPrefix(string(d), "http-") }

// honours says whether the destination makes one entry of a key.
func (d Destination) honours() bool { return d == HTTPKeyed || d == MCPKeyed }

// passings returns how often one worker passes a place at the least when nothing goes wrong.
func (c Cell) passings(place string) int {
	family, _, _ := strings.Cut(place, ".")
	switch {
	case family == "continue" && !slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Kind == Renew }):
		return 0
	case c.Scenario == Undo:
		return passed(place, family, 1)
	}
	return passed(place, family, 0)
}

// passed is the table of passings, for Pay (0) and Undo (1).
func passed(place, family string, scenario int) int {
	if n, ok := map[string][2]int{
		fp.WorkerReady:         {1, 1},
		fp.ToolApproved:        {1, 0},
		fp.ToolBeforeAdmission: {3, 3}, // the order that is looked up, and two payments
		fp.UndoAfterPlan:       {0, 1},
	}[place]; ok {
		return n[scenario]
	}
	return map[string][2]int{
		"model":    {5, 4},
		"approval": {1, 0},
		"tool":     {2, 2},
		"undo":     {0, 2},
		"activity": {8, 9},
		"task":     {10, 10},
		"handover": {2, 1},
		"ending":   {2, 1},
		"continue": {2, 2},
		"store":    {15, 12},
	}[family][scenario]
}
