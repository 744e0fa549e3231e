package replay

import (
	"errors"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// An ending is how a run ends: what it says and with what.
type ending struct {
	event int64
	how   string
	with  string
}

const (
	endCompleted = "completed"
	endFailed    = "failed"
	endCancelled = "cancelled"
	endContinued = "continued as new"
)

// recordedEnd returns how the code ended a run; ok is false when it did not.
func recordedEnd(h *historypb.History) (end ending, ok bool) {
	e := h.GetEvents()[len(h.GetEvents())-1]
	end.event = e.GetEventId()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		end.how, end.with = endCompleted, payloads(e.GetWorkflowExecutionCompletedEventAttributes().GetResult())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		end.how, end.with = endFailed, failure(e.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		end.how, end.with = endCancelled, payloads(e.GetWorkflowExecutionCanceledEventAttributes().GetDetails())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		a := e.GetWorkflowExecutionContinuedAsNewEventAttributes()
		end.how, end.with = endContinued, continued(a.GetWorkflowType().GetName(), a.GetInput())
	default:
		return end, false
	}
	return end, true
}

// endOf returns how the code ends a run. The order of the errors is the SDK's (completeWorkflow).
func endOf(result any, err error, dc converter.DataConverter) ending {
	fc := temporal.GetDefaultFailureConverter()
	var cancelled *temporal.CanceledError
	var next *workflow.ContinueAsNewError
	switch {
	case errors.As(err, &cancelled):
		details := fc.ErrorToFailure(cancelled).GetCanceledFailureInfo().GetDetails()
		return ending{how: endCancelled, with: payloads(details)}
	case errors.As(err, &next):
		return ending{how: endContinued, with: continued(next.WorkflowType.Name, next.Input)}
	case err != nil:
		return ending{how: endFailed, with: failure(fc.ErrorToFailure(err))}
	}
	return ending{how: endCompleted, with: encode(dc, result)}
}

// continued is what the next run is made of, as JSON. An input that is none is left as it is.
func continued(typ string, input *commonpb.Payloads) string {
	return `{"type":` + strconv.Quote(typ) + `,"input":` + payloads(input) + "}"
}

// encode returns values as history would hold them.
func encode(dc converter.DataConverter, values ...any) string {
	p, err := dc.ToPayloads(values...)
	if err != nil {
		return "cannot be encoded: " + err.Error()
	}
	return payloads(p)
}
