//go:build failpoint

package failpoint

import (
	"context"
	"slices"
	"testing"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

func task(kinds ...enumspb.CommandType) any {
	r := &workflowservice.RespondWorkflowTaskCompletedRequest{}
	for _, k := range kinds {
		r.Commands = append(r.Commands, &commandpb.Command{CommandType: k})
	}
	return r
}

func TestARequestPassesThePlacesOfAllThatItDoes(t *testing.T) {
	t.Parallel()
	general := around{TaskBeforeCompletion, TaskAfterCompletion}
	handover, ending := around{HandoverBefore, HandoverAfter}, around{EndingBefore, EndingAfter}
	child, end := enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION, enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION
	for name, test := range map[string]struct {
		request any
		want    []around
	}{
		"an activity's result": {&workflowservice.RespondActivityTaskCompletedRequest{}, []around{{ActivityBeforeCompletion, ActivityAfterCompletion}}},
		"an activity's error":  {&workflowservice.RespondActivityTaskFailedRequest{}, nil},
		"a poll":               {&workflowservice.PollWorkflowTaskQueueRequest{}, nil},
		"no commands":          {task(), []around{general}},
		"a timer":              {task(enumspb.COMMAND_TYPE_START_TIMER), []around{general}},
		"a child":              {task(child), []around{general, handover}},
		"two children":         {task(child, enumspb.COMMAND_TYPE_START_TIMER, child), []around{general, handover}},
		"an end":               {task(end), []around{general, ending}},
		"a failure":            {task(enumspb.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION), []around{general, ending}},
		"a cancellation":       {task(enumspb.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION), []around{general, ending}},
		"a child and an end":   {task(child, end), []around{general, handover, ending}},
		"another run":          {task(enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION), []around{general, {ContinueBefore, ContinueAfter}}},
	} {
		if got := aroundOf(test.request); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestARequestIsSentBetweenItsPlaces runs in a process of its own, because the interceptor passes the places of the
// process.
func TestARequestIsSentBetweenItsPlaces(t *testing.T) {
	t.Parallel()
	out, err := again(t, "ending.before:2=error, ending.after:2=error", "", func() {
		request := task(enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION)
		for range 3 {
			invoked := false
			err := Grpc()(context.Background(), "m", request, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				invoked = true
				return nil
			})
			tell("invoked", invoked, "failed", err != nil)
		}
	}).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"invoked true failed false", "invoked false failed true", "invoked true failed true"}
	if got := said(out, "invoked"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
