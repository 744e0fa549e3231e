package naive

import (
	"context"
	"net/http/httptrace"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// marks puts the places of package failpoint around the loop's steps, so that the loop itself is what a reader would
// have written. The places around what a worker tells the server are those of [failpoint.Grpc].
type marks struct {
	interceptor.WorkerInterceptorBase
}

func (*marks) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	m := &activityMarks{}
	m.Next = next
	return m
}

func (*marks) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	m := &workflowMarks{}
	m.Next = next
	return m
}

type activityMarks struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity passes the places that Holdfast passes for the same step: those from the dispatch on are of payments.
func (m *activityMarks) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	call, tool := in.Args[0].(openai.Call)
	switch {
	case !tool:
		ctx = failpoint.Sent(ctx, failpoint.ModelAfterRequest)
		return m.between(ctx, in, []string{failpoint.ModelBeforeRequest}, failpoint.ModelAfterAnswer)
	case call.Name != toolPay:
		return m.between(ctx, in, []string{failpoint.ToolBeforeAdmission}, "")
	}
	before := []string{failpoint.ToolBeforeAdmission, failpoint.ToolBeforeDispatch}
	if asks(call) {
		before = append([]string{failpoint.ToolApproved}, before...)
	}
	ctx = httptrace.WithClientTrace(failpoint.Sent(ctx, failpoint.ToolAfterSend), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { failpoint.At(failpoint.ToolLastCheck) },
	})
	return m.between(ctx, in, before, failpoint.ToolAfterCommit)
}

// between runs an activity between two moments. One that has failed has no moment after it.
func (m *activityMarks) between(ctx context.Context, in *interceptor.ExecuteActivityInput, before []string, after string) (any, error) {
	for _, place := range before {
		if err := failpoint.AtErr(place); err != nil {
			return nil, err
		}
	}
	out, err := m.Next.ExecuteActivity(ctx, in)
	if err == nil && after != "" {
		err = failpoint.AtErr(after)
	}
	return out, err
}

type workflowMarks struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (m *workflowMarks) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if in.SignalName == signalApproval && !workflow.IsReplaying(ctx) {
		failpoint.At(failpoint.ApprovalBeforeJudgement)
	}
	return m.Next.HandleSignal(ctx, in)
}
