package failpoint

// The names of the places.
const (
	ModelBeforeRequest = "model.before_request"
	ModelAfterAnswer   = "model.after_answer"
	ModelAfterAdoption = "model.after_adoption"

	ToolBeforeAdmission = "tool.before_admission"
	ToolBeforeDispatch  = "tool.before_dispatch"
	ToolAfterDispatch   = "tool.after_dispatch"
	ToolAfterCommit     = "tool.after_commit"
	ToolAfterAdoption   = "tool.after_adoption"

	ApprovalAfterJudgement = "approval.after_judgement"

	ContinueBefore = "continue.before"
	ContinueAfter  = "continue.after"
)

// A Point is one place and what a death there means for whoever comes next.
type Point struct {
	Name    string
	Meaning string
}

// Points returns every place, in the order in which a turn passes them.
func Points() []Point {
	return []Point{
		{ModelBeforeRequest, "the transcript is read, the provider has not been asked: the next attempt asks, and pays once"},
		{ModelAfterAnswer, "the provider has answered and charged, nothing is written down: the next attempt asks and pays again"},
		{ModelAfterAdoption, "the answer is recorded, Temporal has not heard: the next attempt adopts it and pays nothing"},
		{ApprovalAfterJudgement, "a decision has been judged, history does not have it: it is judged again, by the same server time"},
		{ToolBeforeAdmission, "authority has not been looked at and nothing is claimed: the next attempt is as good as the first"},
		{ToolBeforeDispatch, "admitted and its intent claimed, no dispatch record: nothing was sent, the next attempt is as good as the first"},
		{ToolAfterDispatch, "the dispatch record stands, nothing was sent: nobody can know that, the class decides"},
		{ToolAfterCommit, "the destination has answered, nothing is written down: the class decides"},
		{ToolAfterAdoption, "the outcome is recorded, Temporal has not heard: the next attempt adopts it"},
		{ContinueBefore, "a workflow task that continues as new is decided, the server has not heard: it is decided again"},
		{ContinueAfter, "the server has continued the run, this worker is gone: another takes the new run"},
	}
}
