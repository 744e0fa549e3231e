package naive

import (
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// places says which place of the loop's worker corresponds to one of Holdfast's. Those that are not here are around
// something that the loop has not: records, a store, a session, compensations, runs that continue as new.
var places = map[string]string{
	failpoint.WorkerReady:              failpoint.WorkerReady,
	failpoint.ModelBeforeRequest:       failpoint.ModelBeforeRequest,
	failpoint.ModelAfterRequest:        failpoint.ModelAfterRequest,
	failpoint.ModelAfterAnswer:         failpoint.ModelAfterAnswer,
	failpoint.ApprovalBeforeJudgement:  failpoint.ApprovalBeforeJudgement,
	failpoint.ApprovalAfterJudgement:   failpoint.ApprovalBeforeJudgement, // nothing is judged: it is the same workflow task
	failpoint.ToolApproved:             failpoint.ToolApproved,
	failpoint.ToolBeforeAdmission:      failpoint.ToolBeforeAdmission,
	failpoint.ToolBeforeDispatch:       failpoint.ToolBeforeDispatch,
	failpoint.ToolAfterDispatch:        failpoint.ToolBeforeDispatch, // there is no dispatch record in between
	failpoint.ToolLastCheck:            failpoint.ToolLastCheck,
	failpoint.ToolAfterSend:            failpoint.ToolAfterSend,
	failpoint.ToolAfterCommit:          failpoint.ToolAfterCommit,
	failpoint.ActivityBeforeCompletion: failpoint.ActivityBeforeCompletion,
	failpoint.ActivityAfterCompletion:  failpoint.ActivityAfterCompletion,
	failpoint.TaskBeforeCompletion:     failpoint.TaskBeforeCompletion,
	failpoint.TaskAfterCompletion:      failpoint.TaskAfterCompletion,
	failpoint.EndingBefore:             failpoint.EndingBefore,
	failpoint.EndingAfter:              failpoint.EndingAfter,
}

// Has says whether the cell has a counterpart in the loop: each of its faults has one.
func Has(c cell.Cell) bool {
	_, ok := counterpart(c)
	return ok
}

// Key is the same for cells that are one run of the loop: it has one destination, and fewer places.
func Key(c cell.Cell) string {
	faults, _ := counterpart(c)
	return cell.Cell{Scenario: c.Scenario, Faults: faults}.Name()
}

// counterpart returns the cell's faults as they strike the loop, and whether they all can.
func counterpart(c cell.Cell) (faults []cell.Fault, ok bool) {
	for _, f := range c.Faults {
		if f.At != "" {
			if f.At = places[f.At]; f.At == "" {
				return nil, false
			}
		}
		if !strikes(f) {
			return nil, false
		}
		faults = append(faults, f)
	}
	return faults, c.Scenario == cell.Pay
}

// strikes says whether the loop has what a kind of fault is about. It has no policy that could change, no builds that
// are told apart, no store, no settlements, it does not continue as new, and it never looks at a wall clock.
func strikes(f cell.Fault) bool {
	switch f.Kind {
	case cell.Kill, cell.Freeze, cell.Hang, cell.Error, cell.Crash, cell.Slow, cell.Lost, cell.Storm, cell.Link, cell.Cold:
		return true
	case cell.Word:
		// A request has no end by which a word would be late, and nobody knows its id before it is there.
		return f.Arg != "late" && f.Arg != "early"
	}
	return false
}
