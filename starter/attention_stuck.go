package starter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

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

// An obstacle is why a worker fails on a run again and again.
type obstacle struct {
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
	x := c.obstacle(ctx, d.GetWorkflowExecutionInfo())
	if x.why == "" {
		return ""
	}
	return "the worker cannot go on with it and tries again: " + line(x.why, 2*lineLimit) + "; " + line(x.advice, 2*lineLimit)
}

// taskEvents is how many of a run's latest events are looked through for why its task fails.
const taskEvents = 50

// taskPages bounds how many pages are looked through for the beginning of a run, or its latest task that went well.
const taskPages = 20

// A taskTrail is what a run's latest events say of its tasks.
type taskTrail struct {
	failure string // of the latest task of which one is written down
	build   string // that completed the latest task
	// started is the run's first event, if no task was completed.
	started *historypb.HistoryEvent
}

func (t *taskTrail) read(events []*historypb.HistoryEvent) (done bool) {
	for _, ev := range events {
		if a := ev.GetWorkflowTaskFailedEventAttributes(); a != nil && t.failure == "" {
			t.failure = cmp.Or(strings.TrimSpace(a.GetFailure().GetMessage()), a.GetCause().String())
		}
		if a := ev.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			t.build = codeOf(a)
			return true
		}
		if ev.GetWorkflowExecutionStartedEventAttributes() != nil {
			t.started = ev
			return true
		}
	}
	return false
}

// obstacle reads why the latest workflow task failed, as far as the history says: only the first attempt's failure is
// written down, and of a worker that died nothing but that it was late. Who was the last to complete one says which build
// can go on; what the run was started with, whether this one could begin it.
func (c *conn) obstacle(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) obstacle {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	t, req := taskTrail{}, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: c.namespace, Execution: info.GetExecution(), MaximumPageSize: taskEvents,
	}
	for range taskPages {
		h, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, req)
		if err != nil {
			return obstacle{}
		}
		req.NextPageToken = h.GetNextPageToken()
		if t.read(h.GetHistory().GetEvents()) || len(req.NextPageToken) == 0 {
			break
		}
	}
	first := t.started.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId() == ""
	if t.started != nil && !versioning.RefusesCheckpoint(t.failure) {
		t.failure = cmp.Or(c.refusal(ctx, info.GetType().GetName(), t.started), t.failure)
	}
	if t.failure == "" {
		return obstacle{}
	}
	return explained(info.GetExecution(), t.failure, t.build, t.started != nil && first)
}

// refusal says why this build would not take the state that a run was started with, "" if it would or that cannot be seen.
func (c *conn) refusal(ctx context.Context, workflowType string, started *historypb.HistoryEvent) string {
	g := deploy.Gate{Payloads: c.payloads}
	if c.stored != nil { // for a state that was too large for the history
		g.Stored = func(context.Context) (converter.StorageDriver, error) { return c.stored, nil }
	}
	return g.Refusal(ctx, workflowType, started)
}

// explained says in words why a task failed and what to do about it. The build went on with the run last; first says that
// no run came before it.
func explained(run *commonpb.WorkflowExecution, text, build string, first bool) obstacle {
	id := run.GetWorkflowId()
	x := obstacle{why: text, command: "temporal workflow show -w " + quoted(id)}
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
	if x := f.conn.obstacle(ctx, d.GetWorkflowExecutionInfo()); x.why != "" {
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
