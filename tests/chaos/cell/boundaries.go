package cell

import (
	"slices"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// The places of an effect: before anything may have been sent, while nobody can know whether it was, and when the
// outcome is on record. What a tool declares decides in the middle only.
var (
	beforeSend = []string{fp.ToolBeforeAdmission, fp.ToolBeforeDispatch}
	inDoubt    = []string{fp.ToolAfterDispatch, fp.ToolLastCheck, fp.ToolAfterSend, fp.ToolAfterCommit}
	recorded   = []string{fp.ToolAfterAdoption}
)

// toolCells are of the first payment, which policy allows by itself.
func toolCells() []Cell {
	outside := slices.Concat(beforeSend, recorded)
	return slices.Concat(
		// A death proves the class's promise, and that no place before or after it depends on the class.
		cells(Pay, every, onPayment(Kill, 1, slices.Concat(beforeSend, inDoubt, recorded)...)...),
		// A zombie finds that another has taken over: where it had sent, and where it must not any more.
		cells(Pay, every, onPayment(Freeze, 1, inDoubt...)...),
		cells(Pay, strict, onPayment(Freeze, 1, outside...)...),
		// The server forgets the attempt while it lives: a second one is started beside it.
		cells(Pay, overHTTP, onPayment(Crash, 1, fp.ToolAfterDispatch, fp.ToolAfterCommit)...),
		cells(Pay, strict, onPayment(Crash, 1, slices.Concat(outside, []string{fp.ToolLastCheck, fp.ToolAfterSend})...)...),
		cells(Pay, []Destination{MCPAsked}, onPayment(Crash, 1, fp.ToolAfterCommit)...),
		// The attempt fails, its worker lives and may try again by itself.
		cells(Pay, overHTTP, onPayment(Error, 1, fp.ToolAfterDispatch)...),
		cells(Pay, strict, onPayment(Error, 1, slices.Concat(outside, []string{fp.ToolLastCheck, fp.ToolAfterCommit})...)...),
		// The attempt is late and its worker lives: nobody takes over, and it must not send any more.
		cells(Pay, overHTTP, arg("4s", onPayment(Hang, 1, fp.ToolAfterDispatch))...),
		cells(Pay, []Destination{HTTPAsked, MCPAsked}, arg("4s", onPayment(Hang, 1, fp.ToolLastCheck))...),
	)
}

// approvedCells are of the second payment, which a person has approved: an attempt that comes later needs an approval
// that still holds.
func approvedCells() []Cell {
	again := Fault{Kind: Kill, At: fp.ToolAfterCommit, Nth: 1}
	return slices.Concat(
		cells(Pay, strict, onPayment(Kill, 2, fp.ToolBeforeDispatch)...),
		cells(Pay, overHTTP, onPayment(Kill, 2, fp.ToolAfterDispatch, fp.ToolAfterCommit)...),
		cells(Pay, overHTTP, onPayment(Freeze, 2, fp.ToolAfterCommit)...),
		cells(Pay, strict, onPayment(Freeze, 2, fp.ToolAfterDispatch)...),
		cells(Pay, strict, onPayment(Crash, 2, fp.ToolAfterCommit)...),
		// Nothing has been sent here, so the class is one.
		cells(Pay, strict, slices.Concat(
			at(Kill, 1, fp.ToolApproved), at(Freeze, 1, fp.ToolApproved), at(Error, 1, fp.ToolApproved), at(Crash, 1, fp.ToolApproved),
		)...),
		// The second worker dies too, where it has found out or sent again.
		cells(Pay, []Destination{HTTPKeyed, HTTPAsked}, and(onPayment(Kill, 1, fp.ToolAfterDispatch), again)...),
	)
}

// modelCells are of the second request, whose answer asks for a payment, and of the last one, whose answer the user is
// shown. Nothing has been sent yet for what the model asks, so the destination is one.
func modelCells() []Cell {
	asked := []string{fp.ModelAfterRequest, fp.ModelAfterAnswer, fp.ModelAfterAdoption}
	all := append([]string{fp.ModelBeforeRequest}, asked...)
	return cells(Pay, strict, slices.Concat(
		at(Kill, 2, all...),
		at(Kill, 4, fp.ModelAfterAnswer, fp.ModelAfterAdoption),
		at(Freeze, 2, asked...),
		at(Freeze, 4, fp.ModelAfterAnswer),
		at(Error, 2, fp.ModelBeforeRequest, fp.ModelAfterAnswer, fp.ModelAfterAdoption),
		at(Crash, 2, asked...),
		arg("4s", at(Hang, 2, fp.ModelAfterAnswer)),
	)...)
}

// approvalCells are of the one decision. Nothing has been sent for what it is about, so the destination is one.
func approvalCells() []Cell {
	all := []string{fp.ApprovalBeforeJudgement, fp.ApprovalAfterJudgement}
	return cells(Pay, strict, slices.Concat(
		at(Kill, 1, all...), at(Freeze, 1, all...), at(Error, 1, all...), at(Crash, 1, all...),
		arg("4s", at(Hang, 1, fp.ApprovalAfterJudgement)),
	)...)
}

// undoCells are of compensations. Each is an effect, and the places of effects have had all that can strike them; here it
// is that what was done is taken back, and once, by whoever comes.
func undoCells() []Cell {
	return slices.Concat(
		cells(Undo, overHTTP, at(Kill, 1, fp.UndoAfterDispatch, fp.UndoAfterCommit)...),
		cells(Undo, strict, at(Kill, 1, fp.UndoAfterPlan, fp.UndoBeforeAdmission, fp.UndoBeforeDispatch, fp.UndoAfterAdoption)...),
		cells(Undo, strict, at(Kill, 2, fp.UndoAfterCommit)...),
		cells(Undo, overHTTP, at(Freeze, 1, fp.UndoAfterCommit)...),
		cells(Undo, strict, slices.Concat(
			at(Freeze, 1, fp.UndoAfterDispatch),
			at(Error, 1, fp.UndoAfterDispatch, fp.UndoAfterCommit),
			at(Crash, 1, fp.UndoAfterPlan, fp.UndoAfterCommit),
		)...),
		// What is to be taken back was itself in doubt.
		cells(Undo, overHTTP, onPayment(Kill, 1, fp.ToolAfterCommit)...),
		// The end of a cancelled turn is told.
		cells(Undo, strict, at(Kill, 1, fp.EndingBefore, fp.EndingAfter)...),
	)
}

// activityCells are of the word that an activity is done: the model's, and that of either payment. Its outcome is on
// record by then, so the destination is one.
func activityCells() []Cell {
	all := []string{fp.ActivityBeforeCompletion, fp.ActivityAfterCompletion}
	return cells(Pay, strict, slices.Concat(
		at(Kill, 1, all...), at(Kill, 4, all...), at(Kill, 6, fp.ActivityAfterCompletion),
		at(Freeze, 4, all...), at(Error, 4, all...), at(Crash, 4, fp.ActivityBeforeCompletion),
		arg("4s", at(Hang, 4, fp.ActivityBeforeCompletion)),
	)...)
}

// taskCells are of what workflows decide, which is the same at each destination.
func taskCells() []Cell {
	before := []string{fp.TaskBeforeCompletion, fp.HandoverBefore, fp.EndingBefore}
	after := []string{fp.TaskAfterCompletion, fp.HandoverAfter, fp.EndingAfter}
	renewals := []string{fp.ContinueBefore, fp.ContinueAfter}
	return cells(Pay, strict, slices.Concat(
		at(Kill, 1, slices.Concat(before, after)...),
		at(Kill, 3, fp.TaskBeforeCompletion), at(Kill, 6, fp.TaskAfterCompletion),
		at(Kill, 2, fp.EndingAfter), // of the second turn
		at(Freeze, 1, slices.Concat(before, after)...),
		at(Error, 1, append(before, fp.TaskAfterCompletion)...),
		at(Crash, 1, after...),
		arg("4s", at(Hang, 3, fp.TaskBeforeCompletion)),
		and(slices.Concat(
			at(Kill, 1, renewals...), at(Kill, 2, fp.ContinueAfter), at(Freeze, 1, renewals...),
			at(Error, 1, fp.ContinueBefore), at(Crash, 1, fp.ContinueAfter),
		), Fault{Kind: Renew}),
		// Nothing is in hand yet.
		at(Kill, 1, fp.WorkerReady),
	)...)
}
