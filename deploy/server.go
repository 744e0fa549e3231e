package deploy

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// A server is a namespace that is asked about its runs.
type server struct {
	service   workflowservice.WorkflowServiceClient
	namespace string
	patience  time.Duration // see ask
}

func (f Fleet) server() server { return server{f.Client.WorkflowService(), f.Namespace, 0} }

func (g Gate) server() server { return server{g.Client.WorkflowService(), g.Namespace, g.patience} }

// describe describes a run, the current one for "".
func (s server) describe(ctx context.Context, workflow, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return ask(ctx, s.patience, func(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return s.service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: s.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: run},
		})
	})
}

// count counts the runs that match a query.
func (s server) count(ctx context.Context, query string) (int64, error) {
	r, err := ask(ctx, s.patience, func(ctx context.Context) (*workflowservice.CountWorkflowExecutionsResponse, error) {
		return s.service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: s.namespace, Query: query})
	})
	return r.GetCount(), err
}

// listPage is how many runs are asked for at once.
const listPage = 200

// list asks for the runs that match a query, the latest first, page by page while each wants more.
func (s server) list(ctx context.Context, query string, each func(*workflowpb.WorkflowExecutionInfo) bool) error {
	var token []byte
	for {
		page, err := ask(ctx, s.patience, func(ctx context.Context) (*workflowservice.ListWorkflowExecutionsResponse, error) {
			return s.service.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				Namespace: s.namespace, Query: query, PageSize: listPage, NextPageToken: token,
			})
		})
		if err != nil {
			return err
		}
		for _, info := range page.GetExecutions() {
			if !each(info) {
				return nil
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}
