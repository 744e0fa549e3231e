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

// unknowable says whether nobody can find out there what became of a request.
func (d Destination) unknowable() bool { return !d.honours() && d != HTTPAsked && d != MCPAsked }

// passings returns how often one worker passes a place at the least when nothing goes wrong.
func (c Cell) passings(place string) int {
	family, _, _ := strings.Cut(place, ".")
	if family == "continue" && !slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Kind == Renew }) {
		return 0
	}
	counts, ok := passed()[place]
	if !ok {
		counts = passed()[family]
	}
	if c.Scenario == Undo {
		return counts.undo
	}
	return counts.pay
}

// counts are passings in each scenario.
type counts struct{ pay, undo int }

// passed is how often places are passed, by their names or by what their names begin with.
func passed() map[string]counts {
	return map[string]counts{
		"worker":               {1, 1},
		"model":                {5, 4},
		"approval":             {1, 0},
		fp.ToolApproved:        {1, 0},
		fp.ToolBeforeAdmission: {3, 3}, // of the order that is looked up, and of two payments
		"tool":                 {2, 2},
		fp.UndoAfterPlan:       {0, 1},
		"undo":                 {0, 2},
		"activity":             {8, 10},
		"task":                 {13, 12},
		"handover":             {2, 1},
		"ending":               {2, 1},
		"continue":             {3, 3},
		fp.StoreBeforeWrite:    {30, 33},
		fp.StoreAfterWrite:     {22, 25},
		fp.StoreBeforeRead:     {11, 15},
	}
}

// started is how often a worker passes a place before it is ready: it makes the store's identity, and proves that the
// second of two creates fails.
func started(place string) int {
	return map[string]int{fp.StoreBeforeWrite: 11, fp.StoreAfterWrite: 3, fp.StoreBeforeRead: 5}[place]
}
