package cell

import (
	"slices"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// policyCells are of a policy that comes to deny the payments. A worker that goes on does what it was admitted to do; one
// that takes over does only what it may, and finds out what was done.
func policyCells() []Cell {
	goesOn := []string{fp.ToolBeforeAdmission, fp.ToolBeforeDispatch, fp.ToolAfterDispatch}
	takenOver := []string{fp.ToolBeforeDispatch, fp.ToolAfterDispatch, fp.ToolAfterCommit}
	killed := func(n int, places ...string) (out []schedule) {
		for _, p := range places {
			out = append(out, and(at(Revoke, n, p), Fault{Kind: Kill, At: p, Nth: n})...)
		}
		return out
	}
	return slices.Concat(
		cells(Pay, strict, onPayment(Revoke, 1, goesOn...)...),
		cells(Pay, strict, at(Revoke, 2, fp.ModelAfterAdoption)...),
		cells(Pay, strict, at(Revoke, 1, fp.ToolApproved)...),
		cells(Pay, overHTTP, killed(1, takenOver...)...),
		cells(Pay, strict, killed(2, fp.ModelAfterAdoption)...),
		cells(Pay, strict, killed(1, fp.ToolApproved)...),
		cells(Pay, strict, killed(2, fp.ToolAfterDispatch)...), // of the approved payment
	)
}

// buildCells are of another build, whose agent has other instructions, that takes over in the middle of a turn.
func buildCells() []Cell {
	return slices.Concat(
		cells(Pay, overHTTP, onPayment(Rebuild, 1, fp.ToolAfterDispatch, fp.ToolAfterCommit)...),
		cells(Pay, strict, onPayment(Rebuild, 1, fp.ToolBeforeDispatch)...),
		cells(Pay, strict, at(Rebuild, 2, fp.ModelAfterAdoption)...),
		cells(Pay, strict, at(Rebuild, 1, fp.ToolApproved)...),
		cells(Pay, strict, at(Rebuild, 4, fp.TaskAfterCompletion)...),
	)
}

// wordCells are of what people and late attempts say: how a decision arrives, and signals that settle effects which are
// settled, or somebody else's.
func wordCells() []Cell {
	late := Fault{Kind: Late}
	return slices.Concat(
		cells(Pay, strict, beside(Word, 0, "duplicate", "early", "late", "delayed", "wrong", "crowd")...),
		cells(Pay, strict, and(at(Kill, 1, fp.ApprovalAfterJudgement), Fault{Kind: Word, Arg: "duplicate"})...),
		cells(Pay, strict, schedule{late}),
		cells(Pay, overHTTP, and(onPayment(Kill, 1, fp.ToolAfterCommit), late)...),
		cells(Pay, []Destination{HTTPBlind}, and(onPayment(Freeze, 1, fp.ToolAfterCommit), late)...),
		cells(Undo, strict, schedule{late}),
	)
}

// renewalCells are of runs that continue as new at every step, and of workers that keep nothing in memory: what strikes
// finds a run that knows only what it was handed, or is told again from its beginning.
func renewalCells() []Cell {
	renew, cold := Fault{Kind: Renew}, Fault{Kind: Cold}
	commit := onPayment(Kill, 1, fp.ToolAfterCommit)
	return slices.Concat(
		cells(Pay, strict, schedule{renew}, schedule{cold}),
		cells(Undo, strict, schedule{renew, cold}),
		cells(Pay, overHTTP, and(commit, renew)...),
		cells(Pay, strict, and(commit, cold)...),
		cells(Pay, strict, and(at(Kill, 1, fp.ToolApproved), renew, cold)...),
		cells(Pay, strict, and(onPayment(Freeze, 1, fp.ToolAfterDispatch), renew)...),
		cells(Pay, strict, and(at(Kill, 4, fp.TaskAfterCompletion), cold)...),
		cells(Undo, strict, and(at(Kill, 1, fp.UndoAfterCommit), renew)...),
	)
}
