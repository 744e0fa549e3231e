package activities

import (
	"context"

	"github.com/holdfast-run/holdfast/agent"
)

// Plan is not built yet.
func (a *Activities) Plan(_ context.Context, _ agent.PlanInput) (agent.PlanResult, error) {
	return agent.PlanResult{}, a.Current().final(agent.ErrInternal, "plan is not built yet")
}
