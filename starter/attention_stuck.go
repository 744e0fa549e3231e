package starter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// stuckAt returns the attempt of a workflow task that fails again and again, or 0.
func stuckAt(d *workflowservice.DescribeWorkflowExecutionResponse) int {
	if n := d.GetPendingWorkflowTask().GetAttempt(); n > 1 {
		return int(n)
	}
	return 0
}

// A failing is why a worker fails on a run again and again.
type failing struct {
	why    string // in words, as far as they are known
	advice string
	// command is what answers it.
	command string
}

// whyStuck says why no worker can go on with a run, "" when nothing says that none can.
func (c *conn) whyStuck(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) string {
	if stuckAt(d) == 0 {
		return ""
	}
	x := c.failing(ctx, d.GetWorkflowExecutionInfo())
	if x.why == "" {
		return ""
	}
	return "the worker cannot go on with it and tries again: " + line(x.why, 2*lineLimit) + "; " + line(x.advice, 2*lineLimit)
}

// taskEvents is how many of a run's latest events are looked through for why its task fails.
const taskEvents = 50

// failing reads why the latest workflow task failed, as far as the history says: only the first attempt's failure is
// written down. Who was the last to complete one says which build can go on.
func (c *conn) failing(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) failing {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	h, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: c.namespace, Execution: info.GetExecution(), MaximumPageSize: taskEvents,
	})
	if err != nil {
		return failing{}
	}
	text, build, first := "", "", false
	for _, ev := range h.GetHistory().GetEvents() {
		if a := ev.GetWorkflowTaskFailedEventAttributes(); a != nil && text == "" {
			text = cmp.Or(strings.TrimSpace(a.GetFailure().GetMessage()), a.GetCause().String())
		}
		if a := ev.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			build = codeOf(a)
			break
		}
		if a := ev.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			first = a.GetContinuedExecutionRunId() == ""
		}
	}
	if text == "" {
		return failing{}
	}
	return explained(info.GetExecution(), text, build, first)
}

// explained says in words why a task failed and what to do about it. The build went on with the run last; first says that
// no run came before it.
func explained(run *commonpb.WorkflowExecution, text, build string, first bool) failing {
	id := run.GetWorkflowId()
	x := failing{why: text, command: "temporal workflow show -w " + quoted(id)}
	if at, err := parseAddress(id); err == nil && at.undo == 0 && at.turn != 0 {
		x.command = "holdfast show " + at.String()
	}
	f, ok := replay.ExplainText(text)
	switch {
	case ok && versioning.RefusesCheckpoint(text) && !first:
		at, _ := parseAddress(id)
		x.why, x.command = f.Cause, "holdfast recover "+at.String()
		x.advice = "a worker that can take it goes on by itself; or start again from the state of the run before: " + x.command
	case ok && versioning.RefusesCheckpoint(text):
		x.why, x.advice = f.Cause, "a worker of a build that can take it goes on by itself"
	case ok:
		x.why, x.command = f.Cause, fmt.Sprintf(`holdfast replay --query 'WorkflowId="%s"'`, line(id, 120))
		x.advice = f.Advice
		if build != "" {
			x.advice += "; build " + line(build, 64) + " went on with it last"
		}
		x.advice += "; what this build would do: " + x.command
	}
	x.advice = cmp.Or(x.advice, "see what it holds: "+x.command)
	return x
}

// stuck tells of a run on which a worker fails.
func (f *finder) stuck(ctx context.Context, at address, d *workflowservice.DescribeWorkflowExecutionResponse, attempt int) matter {
	m := matter{
		Kind: matterStuck, Session: at.session, Turn: at.turn, Workflow: at.workflow(),
		What:    fmt.Sprintf("attempt %d of its next task", attempt),
		Command: "temporal workflow show -w " + at.workflow(),
	}
	if at.turn != 0 && at.undo == 0 {
		m.Command = fmt.Sprintf("holdfast show %s --turn %d", at.session, at.turn)
	}
	if ts := d.GetPendingWorkflowTask().GetOriginalScheduledTime(); ts != nil {
		m.Since = ts.AsTime()
	}
	if x := f.conn.failing(ctx, d.GetWorkflowExecutionInfo()); x.why != "" {
		m.Why, m.Advice, m.Command = x.why, x.advice, x.command
	}
	return m
}

// completeStuck offers the runs that are stuck.
func (a *App) completeStuck(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		f := newFinder(c, nil)
		defer f.close()
		found, _ := f.attention(ctx) // what was found until an error is offered
		var out []string
		for _, m := range found {
			if at := (address{session: m.Session, turn: m.Turn}).String(); m.Kind == matterStuck && strings.HasPrefix(at, prefix) {
				out = append(out, at+"\t"+line(m.Why, 80))
			}
		}
		return out
	})
}

// held tells of a run whose next task waits for a build of a worker deployment that no worker polls for.
func (f *finder) held(ctx context.Context, at address, d *workflowservice.DescribeWorkflowExecutionResponse) (matter, bool) {
	if !liesThere(d) {
		return matter{}, false
	}
	p := f.pollers(ctx, d.GetExecutionConfig().GetTaskQueue().GetName())
	if p == nil {
		return matter{}, false
	}
	run, now := placementOf(d.GetWorkflowExecutionInfo()), time.Now()
	m := matter{Kind: matterHeld, Session: at.session, Turn: at.turn, Workflow: at.workflow(), Since: lyingSince(d)}
	switch to, last, missing := p.missing(run, now, deploy.PollsWithin); {
	case missing:
		m.What, m.Build, m.Command = fmt.Sprintf("waits for %s, and no worker of it polls", to), to.build, workerCommand(to)
		m.Advice = f.conn.replaceAdvice(ctx, to, d.GetWorkflowExecutionInfo())
		if !last.IsZero() {
			m.Why = "the last one polled at " + clock(last)
		}
	case p.unrouted(run, now):
		m.What = fmt.Sprintf("waits until a build of deployment %q is the current one", line(p.newest.deployment, 64))
		m.Build, m.Command = p.newest.build, promoteCommand(p.newest)
	default:
		return matter{}, false
	}
	return m, true
}

// lyingSince returns since when the oldest of a run's tasks waits.
func lyingSince(d *workflowservice.DescribeWorkflowExecutionResponse) (since time.Time) {
	for _, p := range d.GetPendingActivities() {
		if ts := p.GetScheduledTime(); overdue(ts) && (since.IsZero() || ts.AsTime().Before(since)) {
			since = ts.AsTime()
		}
	}
	if ts := d.GetPendingWorkflowTask().GetOriginalScheduledTime(); ts != nil && (since.IsZero() || ts.AsTime().Before(since)) {
		since = ts.AsTime()
	}
	return since
}

// pollers asks once for each task queue; nil when the server does not say.
func (f *finder) pollers(ctx context.Context, queue string) *pollers {
	f.mu.Lock()
	p, ok := f.polls[queue]
	f.mu.Unlock()
	if ok {
		return p
	}
	p, _ = f.conn.pollers(ctx, queue)
	f.mu.Lock()
	f.polls[queue] = p
	f.mu.Unlock()
	return p
}
