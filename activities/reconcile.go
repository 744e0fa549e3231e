package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-run/holdfast/agent"
)

// Reconcile finds out what became of actions whose tool activity left no answer: the recorded outcome; what the
// destination says where it can be asked; or uncertain, if one may have been sent; or cancelled, if none was, and
// then none will be.
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
	res, err := a.withhold(ctx, s, scope, claimOf(e.Key, e.Attempt, e.Class, e.Action), unsent)
	if err != nil || res.State != agent.StateUncertain {
		return res, err
	}
	return a.question(ctx, s, scope, e.Key, res)
}

// question asks the destination about an effect of which the store only knows that it may have been sent. All that
// it takes stands in the dispatch record. A tool that has changed since then is not asked: it might be another
// destination, which has nothing of it.
func (a *Activities) question(ctx context.Context, s *Snapshot, scope agent.Scope, key string, unknown agent.ToolResult) (agent.ToolResult, error) {
	space := a.Store.Space(scope)
	d, err := space.Dispatch(ctx, key)
	if err != nil {
		return unknown, nil //nolint:nilerr // what cannot be read now stays as uncertain as it was
	}
	t, ok := s.Tools.Lookup(d.Tool)
	if !ok {
		return unknown, nil
	}
	k, _ := agent.ParseKey(key)
	if action(t.Spec(), d.Args, k.Place).Digest() != d.Action {
		return unknown, nil
	}
	r := &toolRun{
		Activities: a, pulse: quietly(ctx, d.Attempt), snap: s, space: space, key: key, tool: t, spec: t.Spec(), only: true,
		in: agent.ToolInput{Scope: scope, Place: k.Place, Tool: d.Tool, Args: d.Args, Class: d.Class, Action: d.Action},
	}
	if !r.askable() {
		return unknown, nil
	}
	return r.inquire(d, unknown.Note) //nolint:contextcheck // the pulse carries the context
}

// quietly returns a pulse of an activity whose own goes on beating.
func quietly(ctx context.Context, attempt int) *pulse {
	p := &pulse{attempt: attempt, began: time.Now()}
	if p.started = p.began; activity.IsActivity(ctx) {
		if at := activity.GetInfo(ctx).StartedTime; !at.IsZero() && !activity.GetInfo(ctx).IsLocalActivity {
			p.started = at
		}
	}
	return p.quiet(ctx)
}

// quiet returns a pulse that beats nothing and has p's clock.
func (p *pulse) quiet(ctx context.Context) *pulse {
	return &pulse{ctx: ctx, attempt: p.attempt, started: p.started, began: p.began, turn: p.turn, beat: func(Progress) {}}
}
