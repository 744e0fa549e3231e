package failpoint

// The names of the places.
const (
	WorkerReady = "worker.ready"

	ModelBeforeRequest = "model.before_request"
	ModelAfterRequest  = "model.after_request"
	ModelAfterAnswer   = "model.after_answer"
	ModelAfterAdoption = "model.after_adoption"

	ApprovalBeforeJudgement = "approval.before_judgement"
	ApprovalAfterJudgement  = "approval.after_judgement"

	ToolApproved        = "tool.approved"
	ToolBeforeAdmission = "tool.before_admission"
	ToolBeforeDispatch  = "tool.before_dispatch"
	ToolAfterDispatch   = "tool.after_dispatch"
	ToolLastCheck       = "tool.last_check"
	ToolAfterSend       = "tool.after_send"
	ToolAfterCommit     = "tool.after_commit"
	ToolAfterAdoption   = "tool.after_adoption"

	UndoAfterPlan       = "undo.after_plan"
	UndoBeforeAdmission = "undo.before_admission"
	UndoBeforeDispatch  = "undo.before_dispatch"
	UndoAfterDispatch   = "undo.after_dispatch"
	UndoAfterCommit     = "undo.after_commit"
	UndoAfterAdoption   = "undo.after_adoption"

	ActivityBeforeCompletion = "activity.before_completion"
	ActivityAfterCompletion  = "activity.after_completion"

	TaskBeforeCompletion = "task.before_completion"
	TaskAfterCompletion  = "task.after_completion"
	HandoverBefore       = "handover.before"
	HandoverAfter        = "handover.after"
	EndingBefore         = "ending.before"
	EndingAfter          = "ending.after"
	ContinueBefore       = "continue.before"
	ContinueAfter        = "continue.after"

	StoreBeforeWrite = "store.before_write"
	StoreAfterWrite  = "store.after_write"
	StoreBeforeRead  = "store.before_read"
)

// A Point is one place and what a death there means for whoever comes next.
type Point struct {
	Name    string
	Meaning string
}

// Points returns every place, in the order in which a turn passes them.
func Points() []Point {
	return []Point{
		{WorkerReady, "the worker has read its configuration and is connected, it polls for nothing yet"},
		{ModelBeforeRequest, "the transcript is read, the provider has not been asked: the next attempt asks, and pays once"},
		{ModelAfterRequest, "the request has left, no answer was heard: the next attempt asks again, and may pay again"},
		{ModelAfterAnswer, "the provider has answered and charged, nothing is written down: the next attempt asks and pays again"},
		{ModelAfterAdoption, "the answer is recorded, Temporal has not heard: the next attempt adopts it and pays nothing"},
		{ApprovalBeforeJudgement, "a decision is in history, nobody has looked at it: it is judged by the server's time of it"},
		{ApprovalAfterJudgement, "a decision has been judged, history does not have it: it is judged again, by the same server time"},
		{ToolApproved, "a person has approved, admission has not begun: it is admitted anew, by what is in force then"},
		{ToolBeforeAdmission, "authority has not been looked at and nothing is claimed: the next attempt is as good as the first"},
		{ToolBeforeDispatch, "admitted and its intent claimed, no dispatch record: nothing was sent, the next attempt is as good as the first"},
		{ToolAfterDispatch, "the dispatch record stands, nothing was sent: nobody can know that, the class decides"},
		{ToolLastCheck, "the last look at the clock is over, the first byte of an action or a compensation has not left: a freeze here cannot be excluded"},
		{ToolAfterSend, "the request of an action or a compensation has left, no answer was heard: the class decides"},
		{ToolAfterCommit, "the destination has answered, nothing is written down: the class decides"},
		{ToolAfterAdoption, "the outcome is recorded, Temporal has not heard: the next attempt adopts it"},
		{UndoAfterPlan, "it is known what there is to undo, history does not have it: it is planned again"},
		{UndoBeforeAdmission, "as tool.before_admission, of a compensation"},
		{UndoBeforeDispatch, "as tool.before_dispatch, of a compensation"},
		{UndoAfterDispatch, "as tool.after_dispatch, of a compensation"},
		{UndoAfterCommit, "as tool.after_commit, of a compensation"},
		{UndoAfterAdoption, "as tool.after_adoption, of a compensation"},
		{ActivityBeforeCompletion, "an activity is through with its work, the server has not heard: another attempt finds its records"},
		{ActivityAfterCompletion, "the server has an activity's result, its worker is gone: the workflow goes on elsewhere"},
		{TaskBeforeCompletion, "a workflow task is decided, the server has not heard: it is decided again"},
		{TaskAfterCompletion, "the server has a workflow task's commands, its worker is gone: others take what follows"},
		{HandoverBefore, "a session has decided to start a turn, the server has not heard: it is decided again"},
		{HandoverAfter, "the server has started a turn, the session's worker is gone: another takes the turn"},
		{EndingBefore, "a workflow has ended, the server has not heard: it ends again, with the same closing record"},
		{EndingAfter, "the server has a workflow's end, its worker is gone: the session hears of it elsewhere"},
		{ContinueBefore, "a workflow task that continues as new is decided, the server has not heard: it is decided again"},
		{ContinueAfter, "the server has continued the run, this worker is gone: another takes the new run"},
		{StoreBeforeWrite, "an object is about to be written: it is not there, or another's is"},
		{StoreAfterWrite, "an object is on disk, whoever wrote it has not heard: the next attempt finds its own"},
		{StoreBeforeRead, "an object is about to be read: nothing has changed"},
	}
}
