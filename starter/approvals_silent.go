package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// A noAnswer is why a turn did not say what waits in it.
type noAnswer struct {
	short string // beside a request
	why   string // with what to do about it
}

// whyNoAnswer looks for the reason of an error with which a turn did not answer.
func (c *conn) whyNoAnswer(ctx context.Context, workflow string, a *App, err error) noAnswer {
	why := line(err.Error(), 200)
	if errors.Is(err, context.DeadlineExceeded) {
		why = "it took too long"
	}
	s := noAnswer{"the turn does not answer", fmt.Sprintf("%s does not answer: %s", line(workflow, 120), why)}
	d, err := c.describe(ctx, workflow, "")
	if err != nil {
		return s
	}
	info, queue := d.GetWorkflowExecutionInfo(), d.GetExecutionConfig().GetTaskQueue().GetName()
	if queue == "" {
		queue = a.queue("")
	}
	p, err := c.pollers(ctx, queue)
	if err != nil {
		return s
	}
	if why = c.absent(ctx, p, queue, info); why == "" {
		return s
	}
	s.short, s.why = "no worker answers", why
	if at, _, ok := p.missing(placementOf(info), time.Now(), patience); ok {
		s.short = fmt.Sprintf("no worker of build %s answers", line(at.build, 64))
	}
	return s
}

// recorded reads from its history what a silent turn asked for.
func (c *conn) recorded(ctx context.Context, workflow string) (agent.ApprovalsView, *turnLog) {
	at, err := parseAddress(workflow)
	if err != nil {
		return agent.ApprovalsView{}, nil
	}
	log, err := c.workflowLog(ctx, at)
	if err != nil {
		return agent.ApprovalsView{}, nil // nothing is known of it then
	}
	v := agent.ApprovalsView{Scope: log.scope()}
	for _, a := range log.approvals {
		v.Approvals = append(v.Approvals, *a)
	}
	return v, log
}

// askedElsewhere says which build asked for an approval, and which one goes on with the turn, if that is another one: the
// run was moved since, and the action may not be what its tool takes there.
func (c *conn) askedElsewhere(ctx context.Context, f *foundApproval) (by, now string) {
	d, err := c.describe(ctx, f.workflow, "")
	p := placementOf(d.GetWorkflowExecutionInfo())
	if err != nil || p.build == "" || f.unseen || f.Outcome != agent.OutcomePending || f.Tool == agent.ToolUpgrade {
		return "", ""
	}
	_, log := c.recorded(ctx, f.workflow)
	if log == nil || log.askers[f.ID] == "" || log.askers[f.ID] == p.build {
		return "", ""
	}
	return log.askers[f.ID], p.build
}

// movedText says what becomes of a request that another build asked for.
func movedText(by, now string) string {
	if by == "" {
		return ""
	}
	return fmt.Sprintf("asked for by build %s; the turn is on build %s now: if the tool was declared anew, it will not be run and is asked for again",
		line(by, 64), line(now, 64))
}
