package deploy

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
	"google.golang.org/protobuf/proto"
)

const (
	// outage is how long a server may be silent or busy before all is given up: one that is restarted is back by
	// then.
	outage       = 30 * time.Second
	askTimeout   = 20 * time.Second
	retryAtFirst = 100 * time.Millisecond
	retryAtMost  = 3 * time.Second
)

// ask asks the server, again while it may answer later, and for patience at most ([outage] for 0). The last error is
// then the answer.
func ask[R any](ctx context.Context, patience time.Duration, request func(context.Context) (R, error)) (R, error) {
	if patience == 0 {
		patience = outage
	}
	begun := time.Now()
	for delay := retryAtFirst; ; delay = min(2*delay, retryAtMost) {
		within, cancel := context.WithTimeout(ctx, askTimeout)
		r, err := request(within)
		cancel()
		if err == nil || !isOutage(err) || ctx.Err() != nil || time.Since(begun)+delay > patience {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(delay):
		}
	}
}

// isOutage says whether the server may answer the same request later.
func isOutage(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		busy        *serviceerror.ResourceExhausted
		internal    *serviceerror.Internal
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &busy) || errors.As(err, &internal) ||
		errors.Is(err, context.DeadlineExceeded)
}

// fetch reads the whole history of a run, page by page, as it stands at the first page. A run that the server does not
// have any more is an error of this history; a server that does not answer is one of all.
func (g Gate) fetch(ctx context.Context, x *commonpb.WorkflowExecution) (*historypb.History, error) {
	h := &historypb.History{}
	var token []byte
	for {
		page, err := ask(ctx, g.patience, func(ctx context.Context) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
			return g.Client.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace: g.Namespace, Execution: x, NextPageToken: token,
				HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
			})
		})
		if err != nil {
			return nil, fetchError(ctx, x, err)
		}
		h.Events = append(h.Events, page.GetHistory().GetEvents()...)
		for _, raw := range page.GetRawHistory() { // what some servers send instead
			var part historypb.History
			if err := proto.Unmarshal(raw.GetData(), &part); err != nil {
				return nil, fmt.Errorf("its history cannot be decoded: %w", err)
			}
			h.Events = append(h.Events, part.GetEvents()...)
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return h, nil
		}
	}
}

func fetchError(ctx context.Context, x *commonpb.WorkflowExecution, err error) error {
	var gone *serviceerror.NotFound
	switch {
	case ctx.Err() != nil:
		return &stopError{ctx.Err()}
	case errors.As(err, &gone):
		return fmt.Errorf("the server does not have its history any more: it was deleted, or its retention has ended, while the runs were looked at; look again")
	case isOutage(err):
		return &stopError{fmt.Errorf("the server stopped answering while the history of %q was read: %w", x.GetWorkflowId(), err)}
	}
	return fmt.Errorf("its history cannot be fetched: %w", err)
}
