package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// A Recovery starts a run again that no worker can begin, because it cannot take the state that the run before handed
// on: the last workflow task of that run is done again, by a worker that there is now, and makes a state anew. Temporal
// calls this a reset. The chain of runs stays, and with it the life of the session, all keys and the turn's place in its
// session; the run that is stuck is ended, and the signals that it has received go to the new one.
type Recovery struct {
	Workflow string    `json:"workflow"`
	Type     string    `json:"type"`
	Run      string    `json:"run"` // that is stuck
	Why      string    `json:"why"` // in words
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since,omitzero"`
	Previous string    `json:"previous"` // the run before it
	Event    int64     `json:"event"`    // of the previous run: the end of the workflow task that is done again
	Events   int       `json:"events"`   // of the previous run, all replayed with this build
	Change   int       `json:"change,omitempty"`
	// Build is the one that a pinned run goes on with, "deployment:build"; it is not this one unless that was moved.
	Build   string   `json:"build,omitempty"`
	Signals []Signal `json:"signals,omitempty"` // that the stuck run has received
	// NewRun goes on with it, once it was recovered.
	NewRun string `json:"newRun,omitempty"`
}

// A Signal that a stuck run has received.
type Signal struct {
	Name  string    `json:"name"`
	Event int64     `json:"event"`
	At    time.Time `json:"at,omitzero"`
	// Sent says that the server did not hand it to the new run and that it was sent there again.
	Sent bool `json:"sent,omitempty"`

	event *historypb.WorkflowExecutionSignaledEventAttributes
}

// A NotRecoverableError says why a run is not started again, and what to do instead.
type NotRecoverableError struct{ Why, Advice string }

func (e *NotRecoverableError) Error() string { return e.Why + "; " + e.Advice }

func refuseRecovery(advice, why string, args ...any) error {
	return &NotRecoverableError{Why: fmt.Sprintf(why, args...), Advice: advice}
}

// Recovery looks at a run, the current one for "", and at the one before it, replays that with this build, and says
// what starting it again will do. It changes nothing. A run that is not to be started again is a [*NotRecoverableError].
func (g Gate) Recovery(ctx context.Context, workflow, run string) (*Recovery, error) {
	d, err := g.server().describe(ctx, workflow, run)
	if isNotFound(err) {
		return nil, refuseRecovery("see what there is: holdfast sessions, holdfast attention", "there is no run of %q", workflow)
	}
	if err != nil {
		return nil, err
	}
	info := d.GetWorkflowExecutionInfo()
	x := &Recovery{
		Workflow: workflow, Type: info.GetType().GetName(), Run: info.GetExecution().GetRunId(),
		Attempts: int(d.GetPendingWorkflowTask().GetAttempt()), Build: boundTo(info),
	}
	if !ours(info) {
		return nil, refuseRecovery("only sessions and turns have a state that is handed on", "%q is a workflow of type %q", workflow, x.Type)
	}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, refuseRecovery("nothing is to be done", "run %s of %q has ended", x.Run, workflow)
	}
	if err := g.stuckRun(ctx, x); err != nil {
		return nil, err
	}
	return x, g.runBefore(ctx, x)
}

// boundTo returns the build that a run goes on with, "" of one that goes on with any.
func boundTo(info *workflowpb.WorkflowExecutionInfo) string {
	v := info.GetVersioningInfo()
	to := v.GetDeploymentVersion()
	switch o := v.GetVersioningOverride(); {
	case o.GetPinned().GetVersion() != nil:
		to = o.GetPinned().GetVersion()
	case o.GetAutoUpgrade() || v.GetBehavior() != enumspb.VERSIONING_BEHAVIOR_PINNED:
		return ""
	}
	return to.GetDeploymentName() + ":" + to.GetBuildId()
}

// stuckRun reads the run that is stuck.
func (g Gate) stuckRun(ctx context.Context, x *Recovery) error {
	h, err := g.history(ctx, x.Workflow, x.Run)
	if err != nil {
		return err
	}
	started, failure := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes(), ""
	for _, ev := range h.GetEvents() {
		if ev.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return refuseRecovery(fmt.Sprintf(`if a worker fails on it, see what this build would do: holdfast replay --query 'WorkflowId="%s"'; a worker of the build that went on with it last can take it`, x.Workflow),
				"run %s of %q has begun: nothing is wrong with the state that it was started with", x.Run, x.Workflow)
		}
		if a := ev.GetWorkflowTaskFailedEventAttributes(); a != nil {
			failure = cmp.Or(a.GetFailure().GetMessage(), a.GetCause().String())
			if x.Since.IsZero() {
				x.Since = ev.GetEventTime().AsTime()
			}
		}
	}
	x.Signals, x.Previous = signalsOf(h), started.GetContinuedExecutionRunId()
	if !versioning.RefusesCheckpoint(failure) { // the server records the first trouble only, which may have been a worker's death
		if own := g.Refusal(ctx, x.Type, h.GetEvents()[0]); own != "" && x.Attempts > 1 {
			failure, x.Since = own, h.GetEvents()[0].GetEventTime().AsTime()
		}
	}
	switch f, ok := replay.ExplainText(failure); {
	case failure == "":
		return refuseRecovery("see why it does not begin: holdfast attention", "no worker has failed on run %s of %q", x.Run, x.Workflow)
	case !versioning.RefusesCheckpoint(failure):
		return refuseRecovery("mend the worker, and it goes on by itself; see: holdfast attention", "it is not its state that no worker can take, but: %s", failure)
	case ok:
		x.Why = f.Cause
	default:
		x.Why = failure
	}
	if x.Previous == "" {
		return refuseRecovery("a worker of a build that can take it goes on by itself; for a fork, that is one that knows of forks",
			"run %s of %q is the first one: no run before it has a state to begin with again", x.Run, x.Workflow)
	}
	return nil
}

// history fetches one history, when it is not one of many.
func (g Gate) history(ctx context.Context, workflow, run string) (*historypb.History, error) {
	h, err := g.fetch(ctx, &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: run})
	var stopped *stopError
	switch {
	case errors.As(err, &stopped):
		return nil, stopped.err
	case err == nil && len(h.GetEvents()) == 0:
		return nil, fmt.Errorf("the history of run %s of %q is empty", run, workflow)
	}
	return h, err
}
