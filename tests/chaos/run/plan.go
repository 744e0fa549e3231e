package run

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// A generation is one worker of a run: what its failpoints do, and what ends its time, after which the next one takes
// over.
type generation struct {
	rules []string
	ends  *cell.Fault // nil for the last one
	held  []held      // where it waits for the harness
}

// A held place is one at which a worker waits while the harness does something.
type held struct {
	fault cell.Fault
	door  string // the file that lets it go on; "" if it never does
}

// plan deals the faults of a cell out to workers: each of them meets the faults up to the one that ends its time.
// Doors lie in dir.
func plan(c cell.Cell, dir string) []generation {
	all := []generation{{}}
	for i, f := range c.Faults {
		g := &all[len(all)-1]
		place := f.Place()
		door := filepath.Join(dir, fmt.Sprintf("door-%d", i))
		switch f.Kind {
		case cell.Kill:
			g.rules = append(g.rules, place+"=kill")
		case cell.Freeze:
			g.rules = append(g.rules, place+"=freeze:"+cell.Frozen.String())
		case cell.Hang, cell.Slow:
			g.rules = append(g.rules, place+"=hang:"+f.Arg)
		case cell.Word:
			if f.Arg == "early" { // the request is known and not open yet, for as long as the person takes to sign
				g.rules = append(g.rules, failpoint.ModelAfterAdoption+":3=hang:2s")
			}
		case cell.Error:
			g.rules = append(g.rules, strings.TrimSuffix(place+"=error:"+f.Arg, ":"))
		case cell.Link:
			if f.At == "" {
				continue
			}
			fallthrough
		case cell.Crash, cell.Revoke:
			g.rules = append(g.rules, place+"=file:"+door)
			g.held = append(g.held, held{f, door})
		case cell.Rebuild, cell.Damage:
			g.rules = append(g.rules, place+"=file:"+door)
			g.held = append(g.held, held{f, ""})
		}
		if ends(f) {
			g.ends = &c.Faults[i]
			all = append(all, generation{})
		}
	}
	return all
}

// ends says whether a worker's time is over with a fault.
func ends(f cell.Fault) bool {
	switch f.Kind {
	case cell.Kill, cell.Freeze, cell.Rebuild, cell.Damage:
		return true
	}
	return false
}

// Takeover is by when whoever takes over must have made progress.
const Takeover = max(cell.Heartbeat, cell.Sticky, cell.WorkflowTask) + cell.RetryDelay + 2*time.Second
