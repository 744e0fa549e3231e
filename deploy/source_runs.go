package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// Runs replays the histories of the namespace's sessions and turns that match a query of Temporal's list filter, the
// open runs for "". A run is fetched by its run id, so that one which ended meanwhile is looked at as it was listed;
// the run in which an open one has continued as new since is looked at, too. One whose history is gone is unread. A
// query that the server does not take is a [*QueryError].
func (g Gate) Runs(ctx context.Context, query string, each func(Item)) (Report, error) {
	restricted, err := restrict(query)
	if err != nil {
		return newReport().sorted(), err
	}
	return g.run(ctx, func(ctx context.Context, q *queue) error { return g.list(ctx, query, restricted, q) }, each)
}

// A QueryError is the reason why a query cannot be asked.
type QueryError struct{ Query, Reason string }

func (e *QueryError) Error() string { return fmt.Sprintf("query %q: %s", e.Query, e.Reason) }

// restrict narrows a query to our workflow types, whatever stands in it.
func restrict(query string) (string, error) {
	if strings.TrimSpace(query) == "" {
		query = isOpen
	}
	if why := unbalanced(query); why != "" {
		return "", &QueryError{query, why}
	}
	return and(isOurs, "("+query+")"), nil
}

// unbalanced says what in a query would reach beyond the parentheses that it is put into.
func unbalanced(query string) string {
	depth, quote := 0, rune(0)
	escaped := false
	for _, c := range query {
		switch {
		case escaped:
			escaped = false
		case quote != 0 && c == '\\':
			escaped = true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return "a parenthesis is closed that was not opened"
			}
		}
	}
	switch {
	case quote != 0:
		return fmt.Sprintf("a quotation mark %c is not closed", quote)
	case depth > 0:
		return "a parenthesis is not closed"
	}
	return ""
}

// list lists the runs while they are looked at.
func (g Gate) list(ctx context.Context, query, restricted string, q *queue) error {
	s := g.server()
	count, err := s.count(ctx, restricted)
	if err != nil {
		return listError(query, err)
	}
	q.expect(int(count))
	err = s.list(ctx, restricted, func(info *workflowpb.WorkflowExecutionInfo) bool {
		return !ours(info) || q.put(g.listed(info, info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING))
	})
	if err != nil {
		return listError(query, err)
	}
	return nil
}

func listError(query string, err error) error {
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		return &QueryError{query, strings.TrimPrefix(invalid.Message, "invalid query: ")}
	}
	return fmt.Errorf("the runs cannot be listed: %w", err)
}

// ours says whether a run is of a type that this build has. The query says so, too; a server that heard something else
// must not make this build judge the runs of others.
func ours(info *workflowpb.WorkflowExecutionInfo) bool {
	typ := info.GetType().GetName()
	return typ == agent.WorkflowSession || typ == agent.WorkflowTurn
}

// listed is the job of looking at a run that the server has listed; follow is for one that was open then.
func (g Gate) listed(info *workflowpb.WorkflowExecutionInfo, follow bool) job {
	x := info.GetExecution()
	j := job{
		item: Item{Source: x.GetWorkflowId(), Workflow: x.GetWorkflowId(), Run: x.GetRunId(), Type: info.GetType().GetName(), Info: info},
		fetch: func(ctx context.Context) (*historypb.History, error) {
			return g.fetch(ctx, x)
		},
	}
	if follow {
		j.next = func(ctx context.Context, h *historypb.History) (*job, error) {
			return g.continued(ctx, x.GetWorkflowId(), h)
		}
	}
	return j
}

// continued is the job of looking at the run in which a listed one has gone on since; nil if it has not. No list has
// it: lists show the latest first, and this one had come further.
func (g Gate) continued(ctx context.Context, workflow string, h *historypb.History) (*job, error) {
	if len(h.GetEvents()) == 0 {
		return nil, nil
	}
	first, last := h.GetEvents()[0], h.GetEvents()[len(h.GetEvents())-1]
	run := last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	if run == "" {
		return nil, nil
	}
	typ := first.GetWorkflowExecutionStartedEventAttributes().GetWorkflowType()
	x := &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: run}
	d, err := g.server().describe(ctx, workflow, run)
	info := d.GetWorkflowExecutionInfo()
	switch {
	case isOutage(err):
		return nil, fmt.Errorf("%s %q cannot be looked at: %w", typ.GetName(), workflow, err)
	case err != nil: // the fetch will say why
		info = &workflowpb.WorkflowExecutionInfo{Execution: x, Type: typ}
	}
	j := g.listed(info, true)
	return &j, nil
}
