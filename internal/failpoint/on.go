//go:build failpoint

package failpoint

import (
	"context"
	"net/http/httptrace"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Enabled says whether this binary was built with the tag "failpoint".
const Enabled = true

// At marks a place that cannot fail; the action "error" panics there.
func At(name string) {
	if err := AtErr(name); err != nil {
		panic(err)
	}
}

// AtErr marks a place that can fail.
func AtErr(name string) error { return process().pass(name) }

// Effect marks a place of a tool's action that can fail, and of a compensation the place of the same name under
// "undo." instead.
func Effect(name string, undo bool) error {
	if undo {
		name = "undo." + strings.TrimPrefix(name, "tool.")
	}
	return AtErr(name)
}

// Sent returns a context in which the place is marked when a request over HTTP has left.
func Sent(ctx context.Context, name string) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { At(name) }})
}

// Grpc returns the interceptor that marks the continue-as-new places: the request that completes a
// workflow task with a continue-as-new command, before it is sent and after it returned. Put it into the
// client's DialOptions.
func Grpc() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !continuesAsNew(req) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		if err := AtErr(ContinueBefore); err != nil {
			return err
		}
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		return AtErr(ContinueAfter)
	}
}

func continuesAsNew(req any) bool {
	done, ok := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
	if !ok {
		return false
	}
	for _, c := range done.GetCommands() {
		if c.GetCommandType() == enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION {
			return true
		}
	}
	return false
}
