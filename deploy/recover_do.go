package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// Recover does what a [Recovery] says, if the run is as it was looked at, and notes the new run in it. Doing it again
// after an answer was lost is safe: the server knows the request. The reason stands in the history of both runs.
func (g Gate) Recover(ctx context.Context, x *Recovery, reason string) error {
	d, err := g.server().describe(ctx, x.Workflow, "")
	if err != nil {
		return err
	}
	if now := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); now != x.Run {
		return refuseRecovery("look at it again: holdfast attention", "run %s of %q is not the current one any more; that is %s", x.Run, x.Workflow, now)
	}
	again := &Recovery{Workflow: x.Workflow, Type: x.Type, Run: x.Run, Attempts: int(d.GetPendingWorkflowTask().GetAttempt())}
	if err := g.stuckRun(ctx, again); err != nil {
		return err
	}
	resp, err := ask(ctx, g.patience, func(ctx context.Context) (*workflowservice.ResetWorkflowExecutionResponse, error) {
		return g.Client.WorkflowService().ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: g.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: x.Workflow, RunId: x.Previous},
			Reason: reason, WorkflowTaskFinishEventId: x.Event, RequestId: "holdfast-recover-" + x.Run,
		})
	})
	if err != nil {
		return fmt.Errorf("the server does not start %q again: %w", x.Workflow, err)
	}
	x.NewRun = resp.GetRunId()
	return g.handOn(ctx, x)
}

// handOn makes sure that the new run has the signals of the stuck one, whose history is whole only now: while a worker
// has its task, signals wait outside of it. Server 1.29.1 hands them on by itself; one that does not look beyond the run
// that is reset would lose them.
func (g Gate) handOn(ctx context.Context, x *Recovery) error {
	old, err := g.history(ctx, x.Workflow, x.Run)
	if err != nil {
		return fmt.Errorf("%q goes on in run %s; whether it has the signals of run %s cannot be seen: %w", x.Workflow, x.NewRun, x.Run, err)
	}
	if x.Signals = signalsOf(old); len(x.Signals) == 0 {
		return nil
	}
	h, err := g.history(ctx, x.Workflow, x.NewRun)
	if err != nil {
		return fmt.Errorf("%q goes on in run %s; whether it has the %d signals of run %s cannot be seen: %w", x.Workflow, x.NewRun, len(x.Signals), x.Run, err)
	}
	var failed []error
	for _, s := range lacking(x.Signals, signalsAfterReset(h)) {
		_, err := ask(ctx, g.patience, func(ctx context.Context) (*workflowservice.SignalWorkflowExecutionResponse, error) {
			return g.Client.WorkflowService().SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{
				Namespace: g.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: x.Workflow},
				SignalName: s.Name, Input: s.event.GetInput(), Header: s.event.GetHeader(), Identity: s.event.GetIdentity(),
				RequestId: fmt.Sprintf("holdfast-recover-%s-%d", x.Run, s.Event),
			})
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("signal %q, event %d of run %s, could not be sent again: %w", s.Name, s.Event, x.Run, err))
			continue
		}
		s.Sent = true
	}
	return errors.Join(failed...)
}

// lacking returns those of a stuck run's signals that the new run has not got. Two may be equal.
func lacking(old []Signal, got []*historypb.WorkflowExecutionSignaledEventAttributes) (out []*Signal) {
	for i := range old {
		if j := slices.IndexFunc(got, old[i].same); j >= 0 {
			got = slices.Delete(got, j, j+1)
			continue
		}
		out = append(out, &old[i])
	}
	return out
}

// signalsOf returns the signals that a history holds.
func signalsOf(h *historypb.History) (out []Signal) {
	for _, ev := range h.GetEvents() {
		if a := ev.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
			out = append(out, Signal{Name: a.GetSignalName(), Event: ev.GetEventId(), At: ev.GetEventTime().AsTime(), event: a})
		}
	}
	return out
}

// signalsAfterReset returns the signals that a run has received since it was reset.
func signalsAfterReset(h *historypb.History) (out []*historypb.WorkflowExecutionSignaledEventAttributes) {
	for _, ev := range h.GetEvents() {
		if ev.GetWorkflowTaskFailedEventAttributes().GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			out = nil
		}
		if a := ev.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
			out = append(out, a)
		}
	}
	return out
}

// same says whether a signal is this one, handed on.
func (s *Signal) same(a *historypb.WorkflowExecutionSignaledEventAttributes) bool {
	return a.GetSignalName() == s.Name && bytes.Equal(wire(a.GetInput()), wire(s.event.GetInput()))
}

func wire(p *commonpb.Payloads) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil // what cannot be written was not read
	}
	return b
}
