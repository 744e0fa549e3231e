package witness

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/workflows"
)

// A chain is a workflow with all its runs, the first of them first.
type chain struct {
	id   string
	runs []run
}

// A run is a history and what came of its replay.
type run struct {
	id       string
	history  *historypb.History
	replayed replay.Replayed
	ran      bool  // its code has run, and replays
	err      error // why it does not replay
}

func (c chain) last() run { return c.runs[len(c.runs)-1] }

// events visits the events of all runs in order.
func (c chain) events(visit func(*historypb.HistoryEvent)) {
	for _, r := range c.runs {
		for _, e := range r.history.GetEvents() {
			visit(e)
		}
	}
}

// A reader reads workflows from the server.
type reader struct {
	src    Source
	driver converter.StorageDriver // of payloads that were too large for a history
}

var today = replay.Replayer{Register: func(r worker.WorkflowRegistry) {
	workflows.Register(r, workflows.Options{Replay: true})
}}

// chain reads and replays every run of a workflow.
func (r reader) chain(ctx context.Context, id string) (chain, error) {
	d, err := r.src.describe(ctx, id)
	if err != nil {
		return chain{}, err
	}
	c := chain{id: id}
	next := d.GetWorkflowExecutionInfo().GetFirstRunId()
	for next != "" {
		h, err := r.history(ctx, id, next)
		if err != nil {
			return chain{}, fmt.Errorf("the history of %s: %w", id, err)
		}
		one := run{id: next, history: h}
		one.replayed, one.err = today.Run(h)
		one.ran = one.err == nil
		if errors.Is(one.err, replay.ErrNotRun) {
			one.err = nil
		}
		c.runs = append(c.runs, one)
		next = h.GetEvents()[len(h.GetEvents())-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return c, nil
}

// history reads a run as it stands, with every payload in its place.
func (r reader) history(ctx context.Context, id, run string) (*historypb.History, error) {
	h := &historypb.History{}
	var token []byte
	for {
		page, err := again(ctx, func(ctx context.Context) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
			return r.src.Client.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace: r.src.namespace(), Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
				NextPageToken: token, HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
			})
		})
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, page.GetHistory().GetEvents()...)
		if token = page.GetNextPageToken(); len(token) == 0 {
			return h, r.restore(ctx, h)
		}
	}
}

// restore puts payloads that lie in the store into the history.
func (r reader) restore(ctx context.Context, h *historypb.History) error {
	for _, e := range h.GetEvents() {
		err := replay.Payloads(e, func(p *commonpb.Payload) error {
			if !replay.Stored(p) {
				return nil
			}
			return deploy.Fetch(ctx, r.driver, p)
		})
		if err != nil {
			return fmt.Errorf("a payload of event %d: %w", e.GetEventId(), err)
		}
	}
	return nil
}

func (src Source) namespace() string {
	if src.Namespace == "" {
		return "default"
	}
	return src.Namespace
}

// describe describes the current run of a workflow.
func (src Source) describe(ctx context.Context, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return again(ctx, func(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return src.Client.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: src.namespace(), Execution: &commonpb.WorkflowExecution{WorkflowId: id},
		})
	})
}

// outage is how long a server that was killed may take until it answers again.
const outage = 20 * time.Second

// again asks the server until it answers, because it may just have been started.
func again[R any](ctx context.Context, ask func(context.Context) (R, error)) (R, error) {
	begun := time.Now()
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		r, err := ask(once)
		cancel()
		if err == nil || !away(err) || time.Since(begun) > outage || rest(ctx, 100*time.Millisecond) != nil {
			return r, err
		}
	}
}

// away says whether the server may answer the same later.
func away(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		late        *serviceerror.DeadlineExceeded
		busy        *serviceerror.ResourceExhausted
	)
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.As(err, &busy) || errors.Is(err, context.DeadlineExceeded)
}

func missing(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
