package replay

import (
	"encoding/json"
	"strconv"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// A watch notes what the code asks for during one replay. The SDK runs one coroutine of a workflow at a time,
// so nothing here is locked; it is read when the replay is over.
type watch struct {
	interceptor.WorkerInterceptorBase
	dc      converter.DataConverter
	reset   reset
	asked   map[kind][]command
	last    int64             // the latest workflow task in which the code asked for something
	task    int64             // the latest of which there are fresh requests
	fresh   []*request        // that may still be cancelled before Temporal hears of them
	locals  []*request        // of local activities
	changes map[string]bool   // change ids that were asked for
	updates map[string]ending // by update id
	end     *ending

	final    int64             // the last workflow task of the history
	handlers map[string]any    // of queries, by name
	views    map[string]answer // of the handlers, at the end of the history
}

func newWatch(r reset, final int64) *watch {
	return &watch{
		dc: converter.GetDefaultDataConverter(), reset: r, asked: map[kind][]command{},
		changes: map[string]bool{}, updates: map[string]ending{}, final: final, handlers: map[string]any{},
	}
}

// InterceptWorkflow is called once in a replay.
func (w *watch) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, w: w}
}

func (w *watch) note(ctx workflow.Context, c command) {
	if w.end != nil && c.kind == kindLocal {
		return // another coroutine has its turn once more after the end: nobody runs it
	}
	w.last = taskOf(ctx)
	r := &request{ctx: ctx}
	c.task, c.dropped = w.last, func() bool { return r.cancelled && c.kind != kindAttributes } // nothing cancels these
	if c.kind == kindLocal {
		w.locals = append(w.locals, r)
	} else {
		w.fresh = append(w.freshIn(w.last), r)
	}
	w.asked[c.kind] = append(w.asked[c.kind], w.reset.forget(c))
}

// taskOf returns the workflow task that is being done: its started event.
func taskOf(ctx workflow.Context) int64 {
	return int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
}

// A request is what a command was asked for with. One that is cancelled before Temporal hears of it leaves no event:
// at the end of its task or, if it is local, ever.
type request struct {
	ctx       workflow.Context
	cancelled bool
}

// freshIn returns the requests of a task that Temporal has not heard of yet.
func (w *watch) freshIn(task int64) []*request {
	if task != w.task {
		w.task, w.fresh = task, nil
	}
	return w.fresh
}

// glance notes what is cancelled as things stand.
func (w *watch) glance(task int64) {
	for _, requests := range [][]*request{w.freshIn(task), w.locals} {
		for _, r := range requests {
			r.cancelled = r.ctx.Err() != nil
		}
	}
	if task >= w.final {
		w.views = answers(w.handlers)
	}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	w   *watch
	sdk interceptor.WorkflowOutboundInterceptor // below the outbound one
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	i.sdk = next
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.w})
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	i.overlook(ctx)
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	end := endOf(result, err, i.w.dc)
	i.w.end = &end
	return result, err
}

func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	result, err := i.Next.ExecuteUpdate(ctx, in)
	i.w.updates[workflow.GetCurrentUpdateInfo(ctx).ID] = endOf(result, err, i.w.dc)
	return result, err
}

// outbound sees each request on its way from the code to the SDK.
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	w *watch
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, typ string, args ...any) workflow.Future {
	o.w.note(ctx, activity(typ, encode(o.w.dc, args...)))
	return o.Next.ExecuteActivity(ctx, typ, args...)
}

func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, typ string, args ...any) workflow.Future {
	o.w.note(ctx, local(typ))
	return o.Next.ExecuteLocalActivity(ctx, typ, args...)
}

func (o *outbound) ExecuteChildWorkflow(ctx workflow.Context, typ string, args ...any) workflow.ChildWorkflowFuture {
	opts := workflow.GetChildWorkflowOptions(ctx)
	o.w.note(ctx, child(opts.WorkflowID, typ, encode(o.w.dc, args...), typed(opts.TypedSearchAttributes)))
	return o.Next.ExecuteChildWorkflow(ctx, typ, args...)
}

func (o *outbound) SignalExternalWorkflow(ctx workflow.Context, id, run, name string, arg any) workflow.Future {
	o.w.note(ctx, signal(id, name, encode(o.w.dc, arg)))
	return o.Next.SignalExternalWorkflow(ctx, id, run, name, arg)
}

func (o *outbound) SignalChildWorkflow(ctx workflow.Context, id, name string, arg any) workflow.Future {
	o.w.note(ctx, signal(id, name, encode(o.w.dc, arg)))
	return o.Next.SignalChildWorkflow(ctx, id, name, arg)
}

func (o *outbound) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	err := o.Next.UpsertTypedSearchAttributes(ctx, updates...)
	after := workflow.GetInfo(ctx).SearchAttributes //nolint:staticcheck // the typed form hides what is unset
	o.w.note(ctx, attributes(jsonOf(values(updates, after))))
	return err
}

func (o *outbound) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	o.timer(ctx, d)
	return o.Next.NewTimer(ctx, d)
}

func (o *outbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, opts workflow.TimerOptions) workflow.Future {
	o.timer(ctx, d)
	return o.Next.NewTimerWithOptions(ctx, d, opts)
}

func (o *outbound) Sleep(ctx workflow.Context, d time.Duration) error {
	o.timer(ctx, d)
	return o.Next.Sleep(ctx, d)
}

func (o *outbound) AwaitWithTimeout(ctx workflow.Context, d time.Duration, ready func() bool) (bool, error) {
	o.timer(ctx, d)
	return o.Next.AwaitWithTimeout(ctx, d, ready)
}

// timer notes one that will leave an event: no time at all leaves none.
func (o *outbound) timer(ctx workflow.Context, d time.Duration) {
	if d > 0 {
		o.w.note(ctx, timer(d))
	}
}

func (o *outbound) GetVersion(ctx workflow.Context, id string, oldest, newest workflow.Version) workflow.Version {
	o.w.changes[id] = true
	return o.Next.GetVersion(ctx, id, oldest, newest)
}

// typed returns search attributes in the form of [indexed]. The order of the map decides nothing.
//
//workflowcheck:ignore
func typed(a temporal.SearchAttributes) string {
	values := map[string]any{}
	for key, value := range a.GetUntypedValues() {
		values[key.GetName()] = value
	}
	return jsonOf(values)
}

// jsonOf writes the keys of a map in their order.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return string(b)
}
