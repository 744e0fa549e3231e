package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

type approvalsOptions struct {
	app     *App
	session string
	limit   int
}

func newApprovals(a *App) *cobra.Command {
	o := &approvalsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List what waits for a person's approval",
		Long: `Lists the requests for approval that wait in the namespace, the first to expire first. A turn whose worker does not
answer is listed too, with what its history knows and why nobody answers.`,
		Example: `  holdfast approvals
  holdfast approvals --session support-x7k2mq -o json
  holdfast approvals show support-x7k2mq`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "only this session's")
	f.IntVar(&o.limit, "limit", 100, "ask at most so many turns")
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeSessions)
	cmd.AddCommand(newApprovalsShow(a), newApprovalsCancel(a))
	return cmd
}

// waitingQuery finds the turns in which requests wait.
const waitingQuery = "WorkflowType = '" + agent.WorkflowTurn + "' AND ExecutionStatus = 'Running' AND " + agent.AttributeApprovals + " > 0"

// How turns are asked: so many at a time, and no longer than that in all.
const (
	askAtOnce = 8
	askWithin = 20 * time.Second
)

// A waitingApproval is a request that waits, as -o json prints it in a list.
type waitingApproval struct {
	Workflow string      `json:"workflow"`
	Agent    string      `json:"agent,omitempty"`
	Tenant   string      `json:"tenant,omitempty"`
	Scope    agent.Scope `json:"scope"`
	agent.Approval
	Digest agent.Digest `json:"digest"` // the action's, which a decision must name
	// Source is who tells of it: the turn, or its history, and then Trouble why the turn does not answer.
	Source  string `json:"source"`
	Trouble string `json:"trouble,omitempty"`
	short   string // of the trouble
}

// An unansweredTurn is a turn in which requests wait and that does not say which.
type unansweredTurn struct {
	Workflow string    `json:"workflow"`
	Agent    string    `json:"agent,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	Waiting  int64     `json:"waiting"` // as the server's index has it
	Expires  time.Time `json:"expires,omitzero"`
	Trouble  string    `json:"trouble"`
	short    string
}

// A waitingList is what "approvals" prints.
type waitingList struct {
	Approvals  []waitingApproval `json:"approvals"`
	Unanswered []unansweredTurn  `json:"unanswered,omitempty"`
	// More says that there are turns beyond the limit.
	More bool `json:"more,omitempty"`
}

func (o *approvalsOptions) run(ctx context.Context) error {
	if o.session != "" {
		if err := checkSessionID(o.session); err != nil {
			return err
		}
	}
	if o.limit < 1 {
		return usageError("--limit %d: want at least 1", o.limit)
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.waiting(ctx, o.session, o.limit, o.app)
	if err != nil {
		return err
	}
	if o.app.json() {
		return o.app.printJSON(list)
	}
	return o.app.printWaiting(list, time.Now())
}

// waiting asks the turns that have requests what they are.
func (c *conn) waiting(ctx context.Context, session string, limit int, a *App) (waitingList, error) {
	query := waitingQuery
	if session != "" {
		query += fmt.Sprintf(" AND WorkflowId STARTS_WITH '%s:turn-'", session)
	}
	var turns []*workflowpb.WorkflowExecutionInfo
	out := waitingList{Approvals: []waitingApproval{}}
	err := c.list(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		if out.More = len(turns) == limit; !out.More {
			turns = append(turns, info)
		}
		return !out.More
	})
	if err != nil {
		return out, err
	}
	late := time.AfterFunc(patience, func() { a.note("asking %s what waits", count(len(turns), "turn")) })
	defer late.Stop()
	asking, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	looking, cancel := context.WithTimeout(ctx, 2*askWithin) // what the turns did not say
	defer cancel()
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(askAtOnce)
	for _, info := range turns {
		all.Go(func() error {
			var v agent.ApprovalsView
			var s noAnswer
			id := info.GetExecution().GetWorkflowId()
			if err := c.ask(asking, id, agent.QueryApprovals, &v); err != nil && ctx.Err() == nil {
				s = c.whyNoAnswer(looking, id, a, err)
				v, _ = c.recorded(looking, id)
			}
			mu.Lock()
			defer mu.Unlock()
			out.add(c, info, v, s)
			return nil
		})
	}
	_ = all.Wait() // what a turn did not say is in the list
	out.sort()
	return out, ctx.Err()
}

func (l *waitingList) add(c *conn, info *workflowpb.WorkflowExecutionInfo, v agent.ApprovalsView, s noAnswer) {
	workflow := info.GetExecution().GetWorkflowId()
	who, tenant := c.attribute(info, agent.AttributeAgent), c.attribute(info, agent.AttributeTenant)
	w := waitingApproval{Workflow: workflow, Agent: who, Tenant: tenant, Scope: v.Scope, Source: sourceTurn, Trouble: s.why, short: s.short}
	if s.why != "" {
		w.Source = sourceHistory
	}
	told := false
	for _, a := range v.Approvals {
		if a.Outcome == agent.OutcomePending {
			w.Approval, w.Digest, told = a, a.Action, true
			l.Approvals = append(l.Approvals, w)
		}
	}
	if s.why == "" || told {
		return
	}
	u := unansweredTurn{Workflow: workflow, Agent: who, Tenant: tenant, Trouble: s.why, short: s.short}
	fields := info.GetSearchAttributes().GetIndexedFields()
	_ = decoder{c.payloads}.payload(fields[agent.AttributeApprovals], &u.Waiting) // what cannot be read stays zero
	_ = decoder{c.payloads}.payload(fields[agent.AttributeExpires], &u.Expires)
	l.Unanswered = append(l.Unanswered, u)
}

func (l *waitingList) sort() {
	slices.SortFunc(l.Approvals, func(a, b waitingApproval) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(l.Unanswered, func(a, b unansweredTurn) int {
		return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Workflow, b.Workflow))
	})
}

func (a *App) printWaiting(l waitingList, now time.Time) error {
	if len(l.Approvals)+len(l.Unanswered) == 0 {
		a.note("nothing waits for an approval")
		return nil
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tASKED\tEXPIRES\tAPPROVALS\tACTION") // what a model wrote comes last: nothing follows that it could imitate
	for _, r := range l.Approvals {
		beside := ""
		if r.short != "" {
			beside = "⟨" + r.short + "⟩ "
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t%s%s\n", approval.Visible(r.ID), span(now.Sub(r.RequestedAt))+" ago", expiry(r.ExpiresAt, now),
			approvals(&r.Approval), max(r.Terms.Quorum, 1), beside, briefAction(r.Tool, r.Args))
	}
	for _, u := range l.Unanswered {
		fmt.Fprintf(w, "%s\t\t%s\t\t⟨%s there, not shown: %s⟩\n", line(u.Workflow, 120), expiry(u.Expires, now), count(int(u.Waiting), "request"), u.short)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, why := range l.troubles() {
		a.note("%s %s", a.paint(a.Err, yellow, "note:"), why)
	}
	if l.More {
		a.note("%s there are more turns in which something waits; see them with --limit", a.paint(a.Err, yellow, "note:"))
	}
	return nil
}

// troublesNamed is how many reasons of silence a list names.
const troublesNamed = 3

// troubles returns why turns did not answer, each reason once.
func (l *waitingList) troubles() []string {
	var out []string
	for _, r := range l.Approvals {
		out = append(out, r.Trouble)
	}
	for _, u := range l.Unanswered {
		out = append(out, u.Trouble)
	}
	slices.Sort(out)
	out = slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" })
	if n := len(out) - troublesNamed; n > 0 {
		out = append(out[:troublesNamed], fmt.Sprintf("and %s more; see them with -o json", count(n, "reason")))
	}
	return out
}

func expiry(t, now time.Time) string {
	switch left := t.Sub(now); {
	case t.IsZero():
		return ""
	case left <= 0:
		return "now"
	default:
		return "in " + span(left)
	}
}

// briefAction is what a request is about, for a list.
func briefAction(tool, args string) string {
	if name, _ := upgradeOf(tool, args); name != "" {
		return line(actionText(tool, args), lineLimit)
	}
	return line(tool, 64) + " " + brief(args)
}

// brief is the beginning of arguments, for a list.
func brief(args string) string {
	const limit = 60
	if len(args) <= limit {
		return approval.Visible(args)
	}
	return fmt.Sprintf("%s… ⟨%d bytes⟩", approval.Visible(strings.ToValidUTF8(args[:limit], "")), len(args))
}
