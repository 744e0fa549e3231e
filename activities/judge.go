package activities

import (
	"context"

	"github.com/holdfast-run/holdfast/agent"
)

// Judge is not built yet.
func (a *Activities) Judge(_ context.Context, _ agent.JudgeInput) (agent.JudgeResult, error) {
	return agent.JudgeResult{}, a.Current().final(agent.ErrInternal, "judge is not built yet")
}
