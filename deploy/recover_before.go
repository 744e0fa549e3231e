package deploy

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// runBefore reads the run before a stuck one and replays it: a build that cannot go on with it would be stuck there.
func (g Gate) runBefore(ctx context.Context, x *Recovery) error {
	h, err := g.history(ctx, x.Workflow, x.Previous)
	if err != nil {
		return refuseRecovery(x.otherwise(), "the run before it, %s, cannot be read: %v", x.Previous, err)
	}
	if x.Event = closingTask(h, x.Run); x.Event == 0 {
		return refuseRecovery(x.otherwise(), "the run before it, %s, did not end by continuing as run %s", x.Previous, x.Run)
	}
	if err := x.beforeStamp(h); err != nil {
		return err
	}
	if err := g.newPayloads(ctx).restore(ctx, h); err != nil {
		return refuseRecovery("name the workers' store with --config", "the run before it, %s, has payloads that cannot be read here: %v", x.Previous, err)
	}
	did, err := replay.Replayer{Register: g.Register}.Run(h)
	x.Change, x.Events = did.Change, len(h.GetEvents())
	if bad := firstBefore(replay.Explain(err), x.Event); bad != nil {
		return refuseRecovery("let a worker that can replay it start it again; "+bad.Advice,
			"this build could not go on with the run before it, %s, either: event %d: %s", x.Previous, bad.Event, bad.Cause)
	}
	return nil
}

// closingTask returns the completed workflow task in which a run continued as another, or 0.
func closingTask(h *historypb.History, next string) int64 {
	last := h.GetEvents()[len(h.GetEvents())-1].GetWorkflowExecutionContinuedAsNewEventAttributes()
	if last.GetNewExecutionRunId() != next {
		return 0
	}
	return last.GetWorkflowTaskCompletedEventId()
}

// firstBefore returns the first finding about what stays of a run that is reset to the end of a workflow task: what the
// code does in that task it does anew. A finding that names no event may be about anything.
func firstBefore(found []replay.Finding, task int64) *replay.Finding {
	for i := range found {
		if found[i].Event <= task {
			return &found[i]
		}
	}
	return nil
}

// otherwise says what is left to do for a run that cannot be started again.
func (x *Recovery) otherwise() string {
	if x.Type == agent.WorkflowTurn {
		return fmt.Sprintf("what is left is to end it, and its session finds out what became of its effects: temporal workflow terminate -w '%s'", x.Workflow)
	}
	return fmt.Sprintf("what is left is to go on in a new session: holdfast fork %s --at turn-N", x.Workflow)
}

// beforeStamp chooses the workflow task that is done again in a run that went on in a worker deployment. The server
// (1.29.1) writes into the events of some tasks, those that it hands out in its answer to the completion of the one before, a mark of
// an older form of versioning (use_versioning); a run that is reset behind such a task never gets a worker again, because
// no worker carries that mark. A turn is reset to a task before it, which repeats nothing; a session, which gets such a
// task with about every message, is not: its later turns would be given their messages anew.
func (x *Recovery) beforeStamp(h *historypb.History) error {
	last, stamped := x.Event, false
	x.Event = 0
	for _, ev := range h.GetEvents() {
		//nolint:staticcheck // what is deprecated is what is looked for
		if ev.GetWorkflowTaskStartedEventAttributes().GetWorkerVersion().GetUseVersioning() {
			stamped = true
		}
		// To the first of all tasks a run can be reset in any case.
		done := ev.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && ev.GetEventId() <= last
		if done && (x.Event == 0 || !stamped) {
			x.Event = ev.GetEventId()
		}
	}
	if x.Event != last && x.Type != agent.WorkflowTurn {
		return refuseRecovery(fmt.Sprintf("let a worker that can take its state go on with it, or go on in a new session: holdfast fork %s --at turn-N", x.Workflow),
			"the server would never hand session %q to a worker again if it were reset (Temporal 1.29: a session of a worker deployment that has got messages)", x.Workflow)
	}
	return nil
}
