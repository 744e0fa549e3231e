package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/versioning"
)

// A Replayed is what a replay looked at.
type Replayed struct {
	Workflow, Run, Type string
	Change              int // the run's change number, 0 if history holds none
	Events              int // of the whole history
	views               map[string]answer
}

// An answer is what a query handler gave: JSON, or why there is none.
type answer struct {
	value []byte
	err   error
}

// Query decodes into out what the workflow's query handler of that name says once the code has done all that
// history holds, up to its last completed workflow task: nobody else is asked. There is an error when the code has
// no such handler or it takes arguments, and when the replay stopped before the end.
func (p Replayed) Query(name string, out any) error {
	a, ok := p.views[name]
	switch {
	case p.views == nil:
		return fmt.Errorf("%s %q cannot be asked for %q: its replay did not come to the end of its history", p.Type, p.Workflow, name)
	case !ok:
		return fmt.Errorf("%s %q has no query %q", p.Type, p.Workflow, name)
	case a.err != nil:
		return fmt.Errorf("query %q of %s %q: %w", name, p.Type, p.Workflow, a.err)
	}
	if err := json.Unmarshal(a.value, out); err != nil {
		return fmt.Errorf("query %q of %s %q answers something else: %w", name, p.Type, p.Workflow, err)
	}
	return nil
}

// describe reads who a history is of.
func describe(h *historypb.History) Replayed {
	a := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	out := Replayed{Workflow: a.GetWorkflowId(), Run: runOf(h), Type: a.GetWorkflowType().GetName(), Events: len(h.GetEvents())}
	_, out.Change = numberOf(h, out.Type)
	return out
}

// runOf returns the id of the run, "" if an old server did not write it.
func runOf(h *historypb.History) string {
	return cmp.Or(resetOf(h).run, h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId())
}

// numberOf returns the change number that a run carries and the event that says so, 0 and 0 if there is none.
func numberOf(h *historypb.History, typ string) (event int64, number int) {
	for _, e := range h.GetEvents() {
		a := e.GetMarkerRecordedEventAttributes()
		if a.GetMarkerName() != markerVersion {
			continue
		}
		var id string
		decode(a.GetDetails()["change-id"], &id)
		if id == versioning.ChangeID(typ) {
			decode(a.GetDetails()["version"], &number)
			return e.GetEventId(), number
		}
	}
	return 0, 0
}

// lastTask returns the started event of the last completed workflow task.
func lastTask(h *historypb.History) (task int64) {
	for _, e := range h.GetEvents() {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			task = e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
		}
	}
	return task
}

// buildAt returns the build of the worker that wrote an event, or the task before it; "" if history does not say.
func buildAt(h *historypb.History, event int64) (build string) {
	for _, e := range h.GetEvents() {
		a := e.GetWorkflowTaskCompletedEventAttributes()
		if e.GetEventId() > event {
			break
		}
		if a == nil {
			continue
		}
		build = a.GetDeploymentVersion().GetBuildId()
		if build == "" {
			build = a.GetWorkerVersion().GetBuildId() //nolint:staticcheck // a worker without a deployment writes nothing else
		}
	}
	return build
}

// overlook lets a coroutine of its own have a look whenever the code has come to a stop. What it sees last in the last
// task is how history leaves the run; afterwards is too late, for the SDK unwinds the code when a replay is over, in
// goroutines for which nobody waits (sdk-go dispatcherImpl.Close). It waits with the SDK, past what is watched.
func (i *inbound) overlook(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // it ends with the replay
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = i.sdk.Await(ctx, func() bool {
			i.w.glance(taskOf(ctx))
			return false
		})
	})
}

// answers asks all handlers. The order of the map decides nothing.
//
//workflowcheck:ignore
func answers(handlers map[string]any) map[string]answer {
	out := make(map[string]answer, len(handlers))
	for name, handler := range handlers {
		out[name] = ask(handler)
	}
	return out
}

// ask calls a handler, which the SDK has checked to be a function that returns a value and an error.
func ask(handler any) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: fmt.Errorf("its handler failed: %v", p)}
		}
	}()
	f := reflect.ValueOf(handler)
	if f.Type().NumIn() != 0 {
		return answer{err: errors.New("it takes arguments")}
	}
	results := f.Call(nil)
	if err, _ := results[1].Interface().(error); err != nil {
		return answer{err: err}
	}
	a.value, a.err = json.Marshal(results[0].Interface())
	return a
}

func (o *outbound) SetQueryHandler(ctx workflow.Context, name string, handler any) error {
	err := o.Next.SetQueryHandler(ctx, name, handler)
	o.answers(name, handler, err)
	return err
}

func (o *outbound) SetQueryHandlerWithOptions(ctx workflow.Context, name string, handler any, opts workflow.QueryHandlerOptions) error {
	err := o.Next.SetQueryHandlerWithOptions(ctx, name, handler, opts)
	o.answers(name, handler, err)
	return err
}

func (o *outbound) answers(name string, handler any, err error) {
	if err == nil {
		o.w.handlers[name] = handler
	}
}
