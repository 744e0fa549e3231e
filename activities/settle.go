package activities

import (
	"context"

	"github.com/holdfast-run/holdfast/agent"
)

// Settle is not built yet.
func (a *Activities) Settle(_ context.Context, _ agent.SettleInput) (agent.SettleResult, error) {
	return agent.SettleResult{}, a.Current().final(agent.ErrInternal, "settle is not built yet")
}
