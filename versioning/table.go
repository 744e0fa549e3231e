package versioning

import (
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// A Change is one row of the table: a number that runs of a workflow type may carry.
type Change struct {
	Workflow  string
	Number    int
	What      string // what changed in the commands that a run issues
	Since     string // the release that first understood it
	Removable string // when the code of this number may go
}

// Changes returns the table, oldest first within each workflow type. The highest number of a type is the one
// that new runs take; the lowest is the oldest still supported.
func Changes() []Change {
	return []Change{
		{agent.WorkflowSession, 1, "the first shape", "0.1.0", "when number 2 is the oldest supported"},
		{agent.WorkflowSession, 2, "settle, compensate, counts in search attributes", "0.2.0", "when number 3 is the oldest supported"},
		{agent.WorkflowTurn, 1, "the first shape", "0.1.0", "when number 2 is the oldest supported"},
		{agent.WorkflowTurn, 2, "approvals, settle, compensation, budgets, counts in search attributes", "0.2.0", "when number 3 is the oldest supported"},
	}
}

// Read returns the change number of this run, recording it if the run is new. Call it once, first thing in
// the workflow function. It costs two events, a marker and a search attribute, in each run.
func Read(ctx workflow.Context, workflowType string) int {
	oldest, newest := bounds(workflowType)
	return int(workflow.GetVersion(ctx, changeID(workflowType), workflow.Version(oldest), workflow.Version(newest)))
}

// changeID never changes: a renamed one silently reads as "old" in every running workflow.
func changeID(workflowType string) string { return "holdfast-" + workflowType }

func bounds(workflowType string) (oldest, newest int) {
	for _, c := range Changes() {
		if c.Workflow != workflowType {
			continue
		}
		if oldest == 0 {
			oldest = c.Number
		}
		newest = c.Number
	}
	return oldest, newest
}
