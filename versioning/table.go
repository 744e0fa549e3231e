package versioning

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// A Change is one row of the table: a number that runs of a workflow type may carry. docs/versioning.md walks through
// the life of one.
type Change struct {
	Workflow string
	Number   int
	What     string // what changed in the commands that a run issues
	// Understood is the release whose workers can go on with runs of this number, Preferred the later one whose new
	// runs take it, "" until there is one. Between the two, a rollout can be taken back: no run has crossed yet.
	Understood, Preferred string
	Removable             string // when the code of this number may go
	// Retired is the release that dropped the code, "" while it is there. The row stays: a number is never used again.
	Retired string
}

// Changes returns the table, oldest first within each workflow type.
func Changes() []Change {
	const removable = "a release after the last open run of it: see docs/versioning.md"
	return []Change{
		{
			Workflow: agent.WorkflowSession, Number: 1, What: "the first shape",
			Understood: "0.1.0", Preferred: "0.1.0", Removable: removable,
		},
		{
			Workflow: agent.WorkflowSession, Number: 2, What: "settle, compensate, counts in search attributes",
			Understood: "0.2.0", Preferred: "0.2.0", Removable: removable,
		},
		{
			Workflow: agent.WorkflowSession, Number: 3, What: "hands the agent's definition from turn to turn",
			Understood: "0.3.0", Preferred: "0.4.0", Removable: removable,
		},
		{
			Workflow: agent.WorkflowTurn, Number: 1, What: "the first shape",
			Understood: "0.1.0", Preferred: "0.1.0", Removable: removable,
		},
		{
			Workflow: agent.WorkflowTurn, Number: 2, What: "approvals, settle, compensation, budgets, counts in search attributes",
			Understood: "0.2.0", Preferred: "0.2.0", Removable: removable,
		},
		{
			Workflow: agent.WorkflowTurn, Number: 3, What: "asks before it takes another definition, says what it worked with",
			Understood: "0.3.0", Preferred: "0.4.0", Removable: removable,
		},
	}
}

// Types returns the workflow types of the table, in its order.
func Types() (out []string) {
	for _, c := range Changes() {
		if len(out) == 0 || out[len(out)-1] != c.Workflow {
			out = append(out, c.Workflow)
		}
	}
	return out
}

// A Range is the numbers of one workflow type. A build publishes its own in this JSON form: see worker.Table.
type Range struct {
	Oldest    int `json:"oldest"` // with Newest, whose runs the build can go on with
	Newest    int `json:"newest"`
	Preferred int `json:"preferred"` // that new runs take
}

// Understands says whether the build can go on with a run that carries number.
func (r Range) Understands(number int) bool { return r.Oldest <= number && number <= r.Newest }

// Bounds returns the numbers of a workflow type, all 0 for one that the table does not have.
func Bounds(workflowType string) Range { return bounds(Changes(), workflowType) }

func bounds(table []Change, workflowType string) (r Range) {
	for _, c := range table {
		if c.Workflow != workflowType || c.Retired != "" {
			continue
		}
		if r.Oldest == 0 {
			r.Oldest = c.Number
		}
		r.Newest = c.Number
		if c.Preferred != "" {
			r.Preferred = c.Number
		}
	}
	return r
}

// Read returns the change number of this run, recording it if the run is new: the preferred one, if the worker has
// [Prefer] as its PreferredVersionProvider, else the newest. Call it once, first thing in the workflow function. It
// costs two events, a marker and a search attribute, in each run.
func Read(ctx workflow.Context, workflowType string) int {
	r := Bounds(workflowType)
	return int(workflow.GetVersion(ctx, ChangeID(workflowType), workflow.Version(r.Oldest), workflow.Version(r.Newest)))
}

// changePrefix begins every change id of ours.
const changePrefix = "holdfast-"

// ChangeID returns the change id of a workflow type. It never changes: a renamed one silently reads as "old" in every
// running workflow.
func ChangeID(workflowType string) string { return changePrefix + workflowType }

// Prefer returns the number that a new run records for a change id, false for one that is not of this package.
func Prefer(changeID string) (number int, ok bool) {
	workflowType, ok := strings.CutPrefix(changeID, changePrefix)
	r := Bounds(workflowType)
	return r.Preferred, ok && r.Preferred != 0
}
