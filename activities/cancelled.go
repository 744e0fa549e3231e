package activities

import (
	"context"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// stopFor bounds how long a tool may take to say whether it stops.
const stopFor = 5 * time.Second

// heed asks the tool, once, to stop the call that is under way when the workflow is cancelled. Neither a stop of the
// worker nor the attempt's own end is a cancel. The returned function ends the watch and says what the tool
// answered, "" when it was not asked.
func (r *toolRun) heed() func() agent.CancelFact {
	answer := make(chan agent.CancelFact, 1)
	unwatch := context.AfterFunc(r.ctx, func() { answer <- r.askToStop() })
	return func() agent.CancelFact {
		if unwatch() {
			return ""
		}
		return <-answer
	}
}

func (r *toolRun) askToStop() agent.CancelFact {
	if !r.cancelled() {
		return ""
	}
	c, ok := tool.AsCanceller(r.tool)
	if !ok {
		return agent.CancelRefused
	}
	_, err := within(context.WithoutCancel(r.ctx), stopFor, 0, func(ctx context.Context) (bool, error) {
		return true, c.Cancel(ctx, r.call())
	})
	if err != nil {
		return agent.CancelRefused
	}
	return agent.CancelAccepted
}

// fact says what became of the wish to stop an action of this attempt: what had committed before it could be
// stopped stays committed, and what was not sent yet was stopped.
func (r *toolRun) fact(res agent.ToolResult) agent.CancelFact {
	committed := res.State == agent.StateCommitted
	switch {
	case !r.cancelled() || res.Adopted || res.Attempt == 0 || r.spec.Class == agent.ClassRead:
		return ""
	case committed && r.stopped != agent.CancelRefused:
		return agent.CancelCompleted
	case r.stopped != "":
		return r.stopped
	case res.State == agent.StateFailed:
		return agent.CancelAccepted
	}
	return ""
}
