package witness

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
)

const (
	restless = 30 * time.Second       // how long a session may take to come to rest
	moment   = 500 * time.Millisecond // how long it has to be at rest for that to count
)

// settle waits until nothing moves in the session any more. It returns what still does when its patience is over.
func (src Source) settle(ctx context.Context) ([]string, error) {
	patience := src.Patience
	if patience == 0 {
		patience = restless
	}
	before := ""
	for begun := time.Now(); ; {
		moving, at, err := src.look(ctx)
		switch {
		case err != nil:
			return nil, err
		case len(moving) == 0 && at == before:
			return nil, nil
		case time.Since(begun) > patience && len(moving) == 0:
			return []string{"the session does not come to rest: events come on and on"}, nil
		case time.Since(begun) > patience:
			return moving, nil
		}
		before = at
		if err := rest(ctx, moment); err != nil {
			return nil, err
		}
	}
}

// look describes every open workflow of the session: what moves in it, and where it stands.
func (src Source) look(ctx context.Context) (moving []string, at string, err error) {
	open := []string{src.Session}
	for len(open) > 0 {
		id := open[0]
		open = open[1:]
		d, err := src.describe(ctx, id)
		switch {
		case missing(err) && id != src.Session:
			moving = append(moving, id+" is about to be started")
			continue
		case err != nil:
			return nil, "", fmt.Errorf("%s: %w", id, err)
		}
		info := d.GetWorkflowExecutionInfo()
		at += fmt.Sprintf("%s %s %d\n", id, info.GetExecution().GetRunId(), info.GetHistoryLength())
		if info.GetCloseTime() != nil {
			continue
		}
		moving = append(moving, pending(id, d)...)
		for _, c := range d.GetPendingChildren() {
			open = append(open, c.GetWorkflowId())
		}
	}
	return moving, at, nil
}

// pending says what a workflow waits for that is no word from outside.
func pending(id string, d *workflowservice.DescribeWorkflowExecutionResponse) (out []string) {
	if t := d.GetPendingWorkflowTask(); t != nil {
		out = append(out, fmt.Sprintf("%s: its workflow task is at attempt %d", id, t.GetAttempt()))
	}
	for _, a := range d.GetPendingActivities() {
		out = append(out, fmt.Sprintf("%s: activity %s is at attempt %d: %s",
			id, a.GetActivityType().GetName(), a.GetAttempt(), a.GetLastFailure().GetMessage()))
	}
	return out
}

// idle says which workflows are at rest and wait for nothing that has a name. A session waits for messages for ever,
// unless somebody closes it, which nobody here does.
func (h *hearing) idle() (out []string) {
	if events := h.chains[0].last().history.GetEvents(); ends(events[len(events)-1]) {
		out = append(out, fmt.Sprintf("%s has ended: %s", h.src.Session, events[len(events)-1].GetEventType()))
	}
	if h.session.Queued > 0 && h.session.Running == 0 && h.session.Undoing == "" {
		out = append(out, fmt.Sprintf("%s: %d messages wait, and no turn runs", h.src.Session, h.session.Queued))
	}
	waits := false
	for _, t := range h.turns {
		waits = waits || !t.Status.Final()
		if !t.Status.Final() && (t.Status != agent.StatusWaiting || t.Waiting == "") {
			out = append(out, fmt.Sprintf("%s is %s and waits for nothing that has a name", t.name(), t.Status))
		}
	}
	if n := numbered(h.turns); n < h.src.Turns && !waits {
		out = append(out, fmt.Sprintf("%s is at rest after %d turns of %d", h.src.Session, n, h.src.Turns))
	}
	return out
}

// replay says which runs do not replay.
func (h *hearing) replay() (out []string) {
	for _, c := range h.chains {
		for _, r := range c.runs {
			if r.err != nil {
				out = append(out, fmt.Sprintf("%s, run %s: %v", c.id, r.id, r.err))
			}
		}
	}
	return out
}

// name is how details name a turn.
func (t Turn) name() string {
	if t.Undo > 0 {
		return fmt.Sprintf("compensation %d of turn %d", t.Undo, t.Number)
	}
	return fmt.Sprintf("turn %d", t.Number)
}
