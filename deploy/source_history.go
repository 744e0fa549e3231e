package deploy

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

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
	switch {
	case ctx.Err() != nil:
		return &stopError{ctx.Err()}
	case isNotFound(err):
		return errors.New("the server does not have its history any more: it was deleted, or its retention has ended, while the runs were looked at; look again")
	case isOutage(err):
		return &stopError{fmt.Errorf("the server stopped answering while the history of %q was read: %w", x.GetWorkflowId(), err)}
	}
	return fmt.Errorf("its history cannot be fetched: %w", err)
}
