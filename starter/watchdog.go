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

// A holdup is why a workflow does not go on; the zero value is none that is known.
type holdup struct {
	text   string
	failed int    // attempts that failed, of what is tried again
	last   string // failure
}

func (h holdup) String() string {
	if h.failed == 0 {
		return h.text
	}
	return fmt.Sprintf("%s failed %s, at last with: %s", h.text, count(h.failed, "time"), h.last)
}

// news differs where the reason is worth saying again: another one, or after 3, 10, 30, 100, ... failures.
func (h holdup) news() string {
	h.failed = milestone(h.failed)
	return h.String()
}

// milestone returns the greatest of 1, 3, 10, 30, 100, ... up to n.
func milestone(n int) int {
	for at, next := 1, 3; ; at, next = next, at*10 {
		if n < next {
			return min(n, at)
		}
	}
}

// watchdog starts one; the same reason is said once. Its notices and the turn's events come from different
// goroutines, so show must be safe for that.
func (f *follower) watchdog(ctx context.Context, id string) *watchdog {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{last: time.Now(), stop: cancel}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var said string
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
			if why := f.conn.silenceReason(ctx, id, f.queue); why.text != "" && why.news() != said && ctx.Err() == nil {
				said = why.news()
				f.notice(why.String())
			}
		}
	}()
	return w
}

// silenceReason says why a workflow does not go on, or nothing when it just takes its time.
func (c *conn) silenceReason(ctx context.Context, id, queue string) holdup {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	d, err := c.describe(ctx, id, "")
	if err != nil {
		return holdup{}
	}
	return c.whySilent(ctx, d, queue)
}

// whySilent is silenceReason for a workflow that was described.
func (c *conn) whySilent(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse, queue string) holdup {
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return holdup{}
	}
	if why := c.whyStuck(ctx, d); why != "" {
		return holdup{text: why}
	}
	if q := d.GetExecutionConfig().GetTaskQueue().GetName(); q != "" {
		queue = q
	}
	why, waits := holdup{}, liesThere(d)
	for _, p := range d.GetPendingActivities() {
		why = cmp.Or(why, attemptReason(decoder{c.payloads}, p))
	}
	// Where nobody polls, nobody is trying again either.
	if waits {
		why = cmp.Or(holdup{text: c.absence(ctx, queue, info)}, why)
	}
	if why.text != "" || waits {
		return why
	}
	for _, child := range d.GetPendingChildren() {
		if why := c.childReason(ctx, child.GetWorkflowId(), queue); why.text != "" {
			return why
		}
	}
	return holdup{}
}

// childReason says why the turn that a session's next message waits for does not end.
func (c *conn) childReason(ctx context.Context, id, queue string) holdup {
	d, err := c.describe(ctx, id, "")
	if err != nil || c.attribute(d.GetWorkflowExecutionInfo(), agent.AttributeStatus) != string(agent.StatusWaiting) {
		return c.silenceReason(ctx, id, queue)
	}
	session, n, _ := agent.ParseTurnID(id)
	return holdup{text: fmt.Sprintf("turn %d comes before it and waits for a person: holdfast show %s --turn %d", n, session, n)}
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

func attemptReason(d decoder, p *workflow.PendingActivityInfo) holdup {
	if p.GetAttempt() < 2 || p.GetLastFailure() == nil {
		return holdup{}
	}
	return holdup{
		text: "still trying: " + line(p.GetActivityType().GetName(), 64), failed: int(p.GetAttempt() - 1),
		last: line(d.failure(p.GetLastFailure()).String(), 2*lineLimit),
	}
}
