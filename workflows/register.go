package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// Options say how the workflows run.
type Options struct {
	// Replay is set when histories are replayed and nothing else: there, every task is a replay, so
	// the guard before a workflow's return would wait for ever.
	Replay bool
}

// Register registers both workflows under their names. Turns stay on the worker deployment version that
// started them; sessions, which live long and are small, move on.
func Register(r worker.WorkflowRegistry, o Options) {
	r.RegisterWorkflowWithOptions(o.Session, workflow.RegisterOptions{
		Name: agent.WorkflowSession, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
	r.RegisterWorkflowWithOptions(o.Turn, workflow.RegisterOptions{
		Name: agent.WorkflowTurn, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
}

// guard holds a workflow back before it returns until its code is past what history holds. The SDK compares
// commands with history in every task but the one that closes a run, so that changed code could end a run
// early and silently, in a place where its history went on (sdk-go internal_task_handlers.go:1327). Held
// back, it meets the next event and fails the task with TMPRL1100 instead.
func (o Options) guard(ctx workflow.Context) error {
	if o.Replay {
		return nil
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	return workflow.Await(ctx, func() bool { return !workflow.IsReplaying(ctx) })
}
