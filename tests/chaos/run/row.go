package run

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// row is what became of the cell.
func (r *run) row(calm witness.Story) report.Row {
	c := r.cell
	row := report.Row{
		Cell: c.Name(), Scenario: string(c.Scenario), Destination: string(c.Destination), Boundary: c.Boundary(),
		Fault: c.FaultText(), Expect: string(c.Expect),
		Expected: len(calm.Made), Applied: len(r.story.Made), Ledger: map[string]int{},
		Extra: r.story.Charges - calm.Charges, Struck: r.struckAll(),
	}
	row.Duplicates, row.Lost = compared(calm, r.story)
	for _, t := range r.story.Turns {
		row.Status = append(row.Status, string(t.Status))
		for _, e := range t.Effects {
			row.Ledger[string(e.State)]++
		}
	}
	for _, v := range witness.Judge(calm, r.story, c.Destination, c.Expect) {
		row.Violations = append(row.Violations, v.Invariant+": "+v.Detail)
	}
	if !row.Struck && !r.driver.Random {
		row.Violations = append(row.Violations, "harness: the fault never struck")
	}
	row.Recovery = r.recovery()
	if row.Recovery == 0 && row.Struck && dies(c) {
		row.Violations = append(row.Violations, "stuck: nobody made progress after the worker died")
	}
	return row
}

// what an entry is, whatever its key.
type matter struct{ order, amount, voids string }

// compared counts the entries that are there again, and the payments that the undisturbed run made, this one did not, and
// of which nobody was told that they may be or are missing. What was never paid is not missed when it is not taken back.
func compared(calm, got witness.Story) (duplicates, lost int) {
	want, have := count(calm), count(got)
	missing := -told(got)
	for m, n := range have {
		duplicates += max(0, n-max(want[m], 1))
	}
	for m, n := range want {
		if m.voids == "" {
			missing += max(0, n-have[m])
		}
	}
	return duplicates, max(0, missing)
}

// told counts what is said not to have been done, or not to be known: effects that did not end well, and calls that
// never became one, of which only the model heard. Behind a gap in the transcript it may have heard of fewer.
func told(s witness.Story) (n int) {
	for _, t := range s.Turns {
		calls := 0
		for _, h := range t.Heard {
			if h.Tool != "lookup_order" {
				calls++
			}
		}
		for _, e := range t.Effects {
			if e.Undoes == "" {
				calls--
			}
			if e.State != agent.StateCommitted && e.State != agent.StateCompensated && e.State != agent.StateIrreversible {
				n++
			}
		}
		n += max(0, calls)
	}
	return n
}

func count(s witness.Story) map[matter]int {
	out := map[matter]int{}
	for _, e := range s.Made {
		out[matter{e.Order, e.Amount, e.Voids}]++
	}
	return out
}

// struckAll says whether each fault that waits at a place has acted.
func (r *run) struckAll() bool {
	for _, f := range r.cell.Faults {
		if !r.felt(f) {
			return false
		}
	}
	return true
}

// felt says whether a fault has struck, as far as that shows. Lost answers and storms at the destination strike the first
// requests, and there is no run without any.
func (r *run) felt(f cell.Fault) bool {
	switch {
	case f.Kind == cell.Link:
		where, _, _ := strings.Cut(f.Arg, " ")
		return r.world.Link(where).Hits() > 0 || strings.HasSuffix(f.Arg, " cut") // which the kernel refuses, unseen
	case f.Kind == cell.Rebuild && !r.has(cell.Damage): // the other build's agent asks in other words, from its next turn on
		return slices.ContainsFunc(r.world.Model.Requests(), func(q modeltest.Request) bool { return strings.Contains(string(q.Raw), world.OtherWords) })
	case f.At == "":
		return true
	}
	_, ok := r.acted(f)
	return ok
}

func (r *run) acted(f cell.Fault) (world.Passing, bool) {
	acted, err := r.world.Acted()
	if err != nil {
		return world.Passing{}, false
	}
	for _, p := range acted {
		if p.Name == f.At && (f.Nth == 0 || p.N == f.Nth) {
			return p, true
		}
	}
	return world.Passing{}, false
}

// dies says whether the first fault takes a worker away.
func dies(c cell.Cell) bool {
	return len(c.Faults) > 0 && (c.Faults[0].Kind == cell.Kill || c.Faults[0].Kind == cell.Freeze)
}

// recovery is how long after a worker's death or freeze another one made progress: decided a workflow task, or came to
// a place in an activity.
func (r *run) recovery() time.Duration {
	if !dies(r.cell) {
		return 0
	}
	at, ok := r.acted(r.cell.Faults[0])
	if !ok {
		return 0
	}
	passed, err := r.world.Trace()
	if err != nil {
		return 0
	}
	var took time.Duration
	for _, p := range passed {
		if p.PID != at.PID && p.At.After(at.At) && progress(p.Name) {
			if d := p.At.Sub(at.At); took == 0 || d < took {
				took = d
			}
		}
	}
	return took
}

// progress says whether a place is passed by a worker that does something for a session.
func progress(name string) bool {
	switch name {
	case failpoint.WorkerReady, failpoint.StoreBeforeRead, failpoint.StoreBeforeWrite, failpoint.StoreAfterWrite:
		return false
	}
	return true
}
