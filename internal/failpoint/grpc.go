//go:build failpoint

package failpoint

import (
	"context"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Grpc returns the interceptor that marks what a worker tells the server: an activity's result, and the commands of a
// workflow task, before the request is sent and after its answer came. Put it into the client's DialOptions. The SDK's
// own tries are above it, so that each is a passing; what fails here is tried again by the SDK.
func Grpc() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		around := aroundOf(req)
		for _, a := range around {
			if err := AtErr(a.before); err != nil {
				return err
			}
		}
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		for _, a := range around {
			if err := AtErr(a.after); err != nil {
				return err
			}
		}
		return nil
	}
}

// around are the two places of a request.
type around struct{ before, after string }

// aroundOf returns the places of a request: the general ones first, then those of what is special about it. The result
// of a local activity goes with its workflow task, one that was started eagerly like any other.
func aroundOf(req any) []around {
	switch r := req.(type) {
	case *workflowservice.RespondActivityTaskCompletedRequest:
		return []around{{ActivityBeforeCompletion, ActivityAfterCompletion}}
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		return append([]around{{TaskBeforeCompletion, TaskAfterCompletion}}, special(r.GetCommands())...)
	}
	return nil
}

// special returns the places of what commands do, each once.
func special(commands []*commandpb.Command) (out []around) {
	seen := map[around]bool{}
	for _, c := range commands {
		var a around
		switch c.GetCommandType() {
		case enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION:
			a = around{HandoverBefore, HandoverAfter}
		case enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION, enumspb.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
			enumspb.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION:
			a = around{EndingBefore, EndingAfter}
		case enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
			a = around{ContinueBefore, ContinueAfter}
		default:
			continue
		}
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}
