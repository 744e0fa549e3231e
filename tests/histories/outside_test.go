package histories

import (
	"syscall"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// What is done to a workflow past us, in Temporal's own ways.

// cancel is Temporal's Cancel button.
func (s *stage) cancel(id string) {
	s.t.Helper()
	if err := s.client.CancelWorkflow(s.t.Context(), id, ""); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) terminate(id string) {
	s.t.Helper()
	if err := s.client.TerminateWorkflow(s.t.Context(), id, "", "recorded"); err != nil {
		s.t.Fatal(err)
	}
}

// floods sends a turn the same signal until it has continued as new.
func (s *stage) floods(turn int, name string, arg any) {
	s.t.Helper()
	first := s.run(turn)
	s.eventually("the turn continues as new", func() bool {
		s.signal(s.id(turn), name, arg)
		return s.run(turn) != first
	})
}

// run returns the id of a turn's latest run.
func (s *stage) run(turn int) string {
	s.t.Helper()
	d, err := s.client.DescribeWorkflow(s.t.Context(), s.id(turn), "")
	s.must(err)
	return d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// reset discards what a turn did from the workflow task on in which its n-th activity of a type was asked for. What
// was signalled later is signalled again.
func (s *stage) reset(turn int, typ string, n int) {
	s.t.Helper()
	run := s.run(turn)
	scheduled := (&draft{s.t, s.fetch(s.id(turn), run)}).activity(typ, n)
	_, err := s.client.WorkflowService().ResetWorkflowExecution(s.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: s.id(turn), RunId: run},
		Reason: "recorded", RequestId: run, WorkflowTaskFinishEventId: scheduled.GetWorkflowTaskCompletedEventId(),
	})
	s.must(err)
}

// freezes stops the worker when the refund is made and nobody has heard of it, until another one has had to give its
// attempt up and a turn, or the session for 0, says so. The first one goes on when it is thawed.
func (s *stage) freezes(turn int) (uncertain agent.Effect, thaw func()) {
	s.t.Helper()
	s.eventually("the refund is made", func() bool { return len(s.pay.Books().Entries) == 1 })
	frozen := s.worker
	s.must(frozen.Signal(syscall.SIGSTOP))
	s.work("")
	return s.doubt(turn), func() {
		s.t.Helper()
		s.open()
		s.must(frozen.Signal(syscall.SIGCONT))
	}
}
