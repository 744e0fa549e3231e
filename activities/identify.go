package activities

import (
	"context"

	"github.com/holdfast-run/holdfast/agent"
)

// Identify is not built yet.
func (a *Activities) Identify(_ context.Context, _ agent.IdentifyInput) (agent.Actor, error) {
	return agent.Actor{}, a.Current().final(agent.ErrInternal, "identify is not built yet")
}
