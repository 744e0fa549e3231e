package activities

import (
	"context"

	"github.com/holdfast-run/holdfast/agent"
)

// Reconcile finds out what became of actions whose tool activity left no answer: the recorded outcome; or
// uncertain, if one may have been sent; or cancelled, if none was, and then none will be.
func (a *Activities) Reconcile(ctx context.Context, in agent.ReconcileInput) (agent.ReconcileResult, error) {
	p := begin(ctx, "reconciling")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, 0); err != nil {
		return agent.ReconcileResult{}, err
	}
	var out agent.ReconcileResult
	for _, e := range in.Effects {
		res, err := a.reconcile(ctx, snap, in.Scope, e)
		if err != nil {
			return agent.ReconcileResult{}, err
		}
		out.Results = append(out.Results, res)
	}
	return out, nil
}

func (a *Activities) reconcile(ctx context.Context, s *Snapshot, scope agent.Scope, e agent.Effect) (agent.ToolResult, error) {
	unsent := withdrawn(agent.ToolResult{Build: a.Build, At: now()})
	return a.withhold(ctx, s, scope, claimOf(e.Key, e.Attempt, e.Class, e.Action), unsent)
}
