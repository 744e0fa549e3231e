package starter

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-run/holdfast/agent"
)

// A watchdog looks for the reason when a turn is silent: attempts that fail are in no history while there
// are attempts left, and a worker that is not there says nothing either.
type watchdog struct {
	mu   sync.Mutex
	last time.Time
	stop context.CancelFunc
}

func (w *watchdog) fed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
}

func (w *watchdog) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}

// watchdog starts one; the same reason is said once. Its notices and the turn's events come from different
// goroutines, so show must be safe for that.
func (f *follower) watchdog(ctx context.Context, id string) *watchdog {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{last: time.Now(), stop: cancel}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		said := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if w.silence() < patience {
				said = ""
				continue
			}
			if why := f.conn.silenceReason(ctx, id, f.queue); why != "" && why != said && ctx.Err() == nil {
				said = why
				f.notice(why)
			}
		}
	}()
	return w
}

// silenceReason says why a workflow does not go on, or "" when it just takes its time.
func (c *conn) silenceReason(ctx context.Context, id, queue string) string {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	d, err := c.describe(ctx, id, "")
	if err != nil {
		return ""
	}
	return c.whySilent(ctx, d, queue)
}

// whySilent is silenceReason for a workflow that was described.
func (c *conn) whySilent(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse, queue string) string {
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return ""
	}
	if why := c.whyStuck(ctx, d); why != "" {
		return why
	}
	if q := d.GetExecutionConfig().GetTaskQueue().GetName(); q != "" {
		queue = q
	}
	why, waits := "", liesThere(d)
	for _, p := range d.GetPendingActivities() {
		why = cmp.Or(why, attemptReason(decoder{c.payloads}, p))
	}
	// Where nobody polls, nobody is trying again either.
	if waits {
		why = cmp.Or(c.absence(ctx, queue, info), why)
	}
	if why != "" || waits {
		return why
	}
	for _, child := range d.GetPendingChildren() {
		if why := c.childReason(ctx, child.GetWorkflowId(), queue); why != "" {
			return why
		}
	}
	return ""
}

// childReason says why the turn that a session's next message waits for does not end.
func (c *conn) childReason(ctx context.Context, id, queue string) string {
	d, err := c.describe(ctx, id, "")
	if err != nil || c.attribute(d.GetWorkflowExecutionInfo(), agent.AttributeStatus) != string(agent.StatusWaiting) {
		return c.silenceReason(ctx, id, queue)
	}
	session, n, _ := agent.ParseTurnID(id)
	return fmt.Sprintf("turn %d comes before it and waits for a person: holdfast show %s --turn %d", n, session, n)
}

// liesThere says whether a task of a run waits for longer than a worker that polls lets it wait.
func liesThere(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	if overdue(d.GetPendingWorkflowTask().GetScheduledTime()) {
		return true
	}
	for _, p := range d.GetPendingActivities() {
		if p.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && overdue(p.GetScheduledTime()) {
			return true
		}
	}
	return false
}

// overdue says whether a task lies there for longer than a worker that polls lets it lie. Between its attempts an
// activity is scheduled for a time to come.
func overdue(scheduled *timestamppb.Timestamp) bool {
	return scheduled != nil && time.Since(scheduled.AsTime()) > patience
}

func attemptReason(d decoder, p *workflow.PendingActivityInfo) string {
	if p.GetAttempt() < 2 || p.GetLastFailure() == nil {
		return ""
	}
	return fmt.Sprintf("still trying: %s failed %s, at last with: %s",
		line(p.GetActivityType().GetName(), 64), count(int(p.GetAttempt()-1), "time"),
		line(d.failure(p.GetLastFailure()).String(), 2*lineLimit))
}
