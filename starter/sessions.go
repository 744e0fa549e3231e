package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
)

type sessionsOptions struct {
	app                   *App
	agent, status, tenant string
	limit                 int
}

func newSessions(a *App) *cobra.Command {
	o := &sessionsOptions{app: a}
	cmd := &cobra.Command{
		Use:     "sessions",
		Aliases: []string{"ls"},
		Short:   "List sessions: open ones first, then the latest closed",
		Example: `  holdfast sessions --agent support --status waiting
  holdfast sessions --status closed --limit 100 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "only sessions with this agent")
	f.StringVar(&o.status, "status", "", "only sessions that are idle, running, waiting or closed")
	f.StringVar(&o.tenant, "tenant", "", "only sessions of this tenant")
	f.IntVar(&o.limit, "limit", 50, "at most so many")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeAgents)
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(sessionStatuses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Where a session stands; a session is running or waiting when its turn is.
const (
	sessionIdle   = "idle"
	sessionClosed = "closed"
)

var sessionStatuses = []string{sessionIdle, string(agent.StatusRunning), string(agent.StatusWaiting), sessionClosed}

// A listed session, as -o json prints it in a list.
type listed struct {
	Session   string    `json:"session"`
	Agent     string    `json:"agent,omitempty"`
	Tenant    string    `json:"tenant,omitempty"`
	Status    string    `json:"status"`
	Turn      int       `json:"turn,omitempty"` // the running one
	Attention string    `json:"attention,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	Closed    time.Time `json:"closed,omitzero"`
	Origin    string    `json:"origin,omitempty"` // the turn that it was forked from, as whoever started it said
}

func (o *sessionsOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	running, err := o.runningTurns(ctx, c)
	if err != nil {
		return err
	}
	found := []listed{}
	err = c.list(ctx, o.query(), func(info *workflowpb.WorkflowExecutionInfo) bool {
		s := c.listed(info, running)
		if o.status == "" || o.status == s.Status {
			found = append(found, s)
		}
		return len(found) < o.limit
	})
	if err != nil {
		return err
	}
	if o.app.json() {
		return o.app.printJSON(struct {
			Sessions []listed `json:"sessions"`
		}{found})
	}
	return o.print(found)
}

func (o *sessionsOptions) check() error {
	if o.limit < 1 {
		return usageError("--limit %d: want at least 1", o.limit)
	}
	for flag, v := range map[string]string{"agent": o.agent, "tenant": o.tenant} {
		if strings.ContainsAny(v, "'\"\\`") {
			return usageError("--%s %q: quotes and backslashes cannot be asked for", flag, v)
		}
	}
	if o.status != "" && !slices.Contains(sessionStatuses, o.status) {
		return usageError("--status %q: want one of %s", o.status, strings.Join(sessionStatuses, ", "))
	}
	return nil
}

func (o *sessionsOptions) filters() string {
	q := ""
	if o.agent != "" {
		q += fmt.Sprintf(" AND %s = '%s'", agent.AttributeAgent, o.agent)
	}
	if o.tenant != "" {
		q += fmt.Sprintf(" AND %s = '%s'", agent.AttributeTenant, o.tenant)
	}
	return q
}

func (o *sessionsOptions) query() string {
	q := fmt.Sprintf("WorkflowType = '%s'", agent.WorkflowSession) + o.filters()
	switch o.status {
	case "":
		return q + " AND ExecutionStatus != 'ContinuedAsNew'"
	case sessionClosed:
		return q + " AND ExecutionStatus != 'Running' AND ExecutionStatus != 'ContinuedAsNew'"
	}
	return q + " AND ExecutionStatus = 'Running'"
}

// A runningTurn is the turn that a session has in progress.
type runningTurn struct {
	n         int
	status    string
	attention string // what it needs a person for
}

// runningTurns finds the turns in progress by their session.
func (o *sessionsOptions) runningTurns(ctx context.Context, c *conn) (map[string]runningTurn, error) {
	out := map[string]runningTurn{}
	q := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", agent.WorkflowTurn) + o.filters()
	err := c.list(ctx, q, func(info *workflowpb.WorkflowExecutionInfo) bool {
		if session, n, ok := agent.ParseTurnID(info.GetExecution().GetWorkflowId()); ok {
			status := c.attribute(info, agent.AttributeStatus)
			if status == "" {
				status = string(agent.StatusRunning)
			}
			out[session] = runningTurn{n, status, c.attribute(info, agent.AttributeAttention)}
		}
		return true
	})
	return out, err
}

func (c *conn) attribute(info *workflowpb.WorkflowExecutionInfo, name string) string {
	return decoder{c.payloads}.text(info.GetSearchAttributes().GetIndexedFields()[name])
}

func (c *conn) listed(info *workflowpb.WorkflowExecutionInfo, running map[string]runningTurn) listed {
	s := listed{
		Session: info.GetExecution().GetWorkflowId(), Agent: c.attribute(info, agent.AttributeAgent),
		Tenant: c.attribute(info, agent.AttributeTenant), Attention: c.attribute(info, agent.AttributeAttention),
		Status: sessionIdle,
	}
	if at, err := parseTurn((decoder{c.payloads}).text(info.GetMemo().GetFields()[memoOrigin])); err == nil {
		s.Origin = at.String()
	}
	if ts := info.GetStartTime(); ts != nil {
		s.Started = ts.AsTime()
	}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		s.Status = sessionClosed
		if ts := info.GetCloseTime(); ts != nil {
			s.Closed = ts.AsTime()
		}
	}
	if t, ok := running[s.Session]; ok && s.Status != sessionClosed {
		s.Status, s.Turn = t.status, t.n
		s.Attention = cmp.Or(t.attention, s.Attention)
	}
	return s
}

// list asks for workflows page by page while each wants more.
func (c *conn) list(ctx context.Context, query string, each func(*workflowpb.WorkflowExecutionInfo) bool) error {
	var token []byte
	for {
		resp, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: token, PageSize: 200})
		if err != nil {
			return err
		}
		for _, info := range resp.GetExecutions() {
			if !each(info) {
				return nil
			}
		}
		if token = resp.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}

func (o *sessionsOptions) print(found []listed) error {
	if len(found) == 0 {
		o.app.note("no sessions")
		return nil
	}
	w := tabwriter.NewWriter(o.app.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tAGENT\tSTATUS\tTURN\tSTARTED\tATTENTION\tFORKED FROM")
	for _, s := range found {
		turn := ""
		if s.Turn > 0 {
			turn = fmt.Sprint(s.Turn)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", line(s.Session, 64), line(s.Agent, 40), line(s.Status, 20), turn,
			s.Started.Local().Format(time.DateTime), line(s.Attention, 40), line(s.Origin, 120))
	}
	return w.Flush()
}
