package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/compensation"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// Rules of a compensation's verdict where the policy's rule on the action was not the last word.
const (
	ruleOnFailure  = "on-failure"         // policy says that a failed turn is compensated, or that this asks
	ruleCompensate = "compensate-command" // a person ordered it
)

// Plan says which effects of a turn are to be undone and by which calls, the last effect first. At a turn's end
// policy says whether at all; a turn that had ended is compensated by a person's order, whose effects are read from
// its closing records. What nothing undoes is listed as irreversible, and what should be undone and cannot has the
// reason as its call's trouble, so that a person hears of both. Arguments are made from the records of what was
// sent and what came back, never from a conversation.
func (a *Activities) Plan(ctx context.Context, in agent.PlanInput) (agent.PlanResult, error) {
	p := begin(ctx, "planning")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.PlanResult{}, err
	}
	def, err := a.definition(ctx, snap, in.Scope, in.Definition)
	if err != nil {
		return agent.PlanResult{}, err
	}
	plan := &planner{Activities: a, snap: snap, def: def, in: in, space: a.Store.Space(in.Scope), then: snap.Policy.OnFailure()}
	res, err := plan.plan(ctx)
	if len(res.Undos) > 0 {
		failpoint.At(failpoint.UndoAfterPlan)
	}
	res.Serial = snap.newer(in.Serial)
	return res, err
}

// A planner makes one plan.
type planner struct {
	*Activities
	snap  *Snapshot
	def   agent.Definition
	in    agent.PlanInput
	space *store.Space
	then  agent.Unwinding
}

func (p *planner) plan(ctx context.Context) (agent.PlanResult, error) {
	if p.in.Command != nil {
		why, err := p.ordered(ctx)
		if err != nil || why != "" {
			return agent.PlanResult{Why: why}, err
		}
		p.then = agent.UnwindCompensate
	}
	res := agent.PlanResult{Then: p.then}
	if p.then == agent.UnwindKeep {
		return res, nil
	}
	todo, why, err := p.todo(ctx)
	if err != nil || why != "" {
		return agent.PlanResult{Why: why}, err
	}
	for _, t := range slices.Backward(todo) {
		undo, err := p.undo(ctx, t)
		if err != nil {
			return agent.PlanResult{}, err
		}
		if undo != nil {
			res.Undos = append(res.Undos, *undo)
		}
	}
	return res, nil
}

// ordered says why a person's order does not count, "" if it does. The session took it, whoever carries it out.
func (p *planner) ordered(ctx context.Context) (string, error) {
	if p.in.Command.Turn != p.in.Of {
		return fmt.Sprintf("the order is for turn %d, not for turn %d", p.in.Command.Turn, p.in.Of), nil
	}
	place := signalOf(ctx, p.in.Run, agent.SignalCompensate)
	place.workflow = p.in.Session
	at, why, err := taken(ctx, p.Activities, p.snap, place, approval.ParseCompensate, *p.in.Command)
	if err != nil || why != "" {
		return why, err
	}
	if _, err := p.snap.Policy.JudgeCompensate(p.in.Scope, *p.in.Command, at); err != nil {
		return p.snap.say("%s", err.Error()), nil
	}
	return "", nil
}

// undo returns how an effect is undone, nil if its tool names no way and does not say that there is none.
func (p *planner) undo(ctx context.Context, t task) (*agent.Undo, error) {
	u := &agent.Undo{Effect: t.effect}
	original, ok := p.snap.Tools.Lookup(t.effect.Tool)
	if !ok {
		u.Call = trouble("", "this worker has no tool %s, so nobody can say how it is undone", quoted(t.effect.Tool))
		return u, nil
	}
	spec := original.Spec()
	switch {
	case spec.Irreversible:
		u.Irreversible = true
		return u, nil
	case spec.Compensate == nil:
		return nil, nil
	case t.before != "":
		u.Call = trouble(spec.Compensate.Tool, "%s", t.before)
		return u, nil
	}
	var err error
	u.Call, err = p.call(ctx, t.effect, *spec.Compensate)
	return u, err
}

// call makes the compensating call and has policy decide on it. Its terms hold no observation: see [agent.ActivityPlan],
// which is local.
func (p *planner) call(ctx context.Context, e agent.Effect, c tool.Compensation) (agent.Call, error) {
	target, ok := p.snap.Tools.Lookup(c.Tool)
	if !ok {
		return trouble(c.Tool, "there is no tool %s that could undo it; add it to the configuration", quoted(c.Tool)), nil
	}
	args, why, err := p.args(ctx, e, c)
	if err != nil || why != "" {
		return trouble(c.Tool, "its arguments cannot be made: %s", p.snap.say("%s", why)), err
	}
	spec := target.Spec()
	d := &desk{snap: p.snap, def: listing(p.def, spec), scope: p.in.Scope, place: e.Place}
	if p.then == agent.UnwindAsk { // else nobody is asked, and who sent the message does not matter
		d.senders = p.in.Senders
	}
	call := d.decide(agent.Call{Tool: c.Tool, Args: args}, e.Place.Call)
	switch {
	case call.Verdict.Decision == agent.DecisionDeny:
		return refuse(call, "policy denies it ("+call.Verdict.Rule+")"), nil
	case call.Trouble != "":
		return call, nil
	}
	return p.authority(call, d.request(spec, args), spec), nil
}

// authority is what a compensation goes by: a policy that says compensate, and a person who orders it, have said
// yes to what the rules would ask about. Where policy says ask, it is asked about whatever the rules say.
func (p *planner) authority(call agent.Call, r policy.Request, spec tool.Spec) agent.Call {
	asks := call.Verdict.Decision == agent.DecisionAsk
	switch {
	case p.then == agent.UnwindAsk && !asks:
		call.Verdict, call.Terms = p.snap.Policy.Repeated(r) // what an ask takes that no rule has asked for
		if call.Terms == nil {
			return refuse(call, "nobody may approve it ("+call.Verdict.Rule+")")
		}
		call.Verdict.Rule, call.Terms = ruleOnFailure, versioned(call.Terms, spec)
	case p.then == agent.UnwindCompensate && asks:
		call.Verdict.Decision, call.Verdict.Rule, call.Terms = agent.DecisionAllow, ruleOnFailure, nil
		if p.in.Command != nil {
			call.Verdict.Rule = ruleCompensate
		}
	}
	return call
}

// args makes the compensating call's arguments from the records of the effect, or says why it cannot.
func (p *planner) args(ctx context.Context, e agent.Effect, c tool.Compensation) (args, why string, err error) {
	recipe, err := compensation.New(c.Tool, c.Args)
	if err != nil {
		return "", err.Error(), nil
	}
	d, err := p.space.Dispatch(ctx, e.Key)
	switch {
	case err != nil && !definite(err):
		return "", "", p.snap.storeTrouble(ctx, "reading the dispatch of "+e.Key, err)
	case err != nil:
		return "", "the record of what was sent cannot be read: " + err.Error(), nil
	case d.Args == "":
		return "", "the record of what was sent has no arguments", nil
	}
	result, why, err := p.result(ctx, e.Key)
	if err != nil || why != "" {
		return "", why, err
	}
	if args, err = recipe.Args(d.Args, result); err != nil {
		return "", err.Error(), nil
	}
	return args, "", nil
}

// result returns all of what an effect's tool gave back. One that could not be recorded is empty: the arguments may
// follow from what was sent alone.
func (p *planner) result(ctx context.Context, key string) (text, why string, err error) {
	rec, err := p.space.Result(ctx, key)
	switch {
	case err != nil && !definite(err):
		return "", "", p.snap.storeTrouble(ctx, "reading the outcome of "+key, err)
	case unreadable(err):
		return "", "the record of its outcome cannot be read: " + err.Error(), nil
	case err != nil || rec.Tool == nil:
		return "", "", nil
	case rec.Tool.State != agent.StateCommitted:
		return "", fmt.Sprintf("its record says %s, not committed", rec.Tool.State), nil
	case rec.Tool.Body == nil:
		return rec.Tool.Text, "", nil
	}
	b, err := p.space.Body(ctx, *rec.Tool.Body)
	switch {
	case err != nil && !definite(err):
		return "", "", p.snap.storeTrouble(ctx, "reading the result of "+key, err)
	case err != nil:
		return "", "its result cannot be read: " + err.Error(), nil
	}
	return string(b), "", nil
}

func trouble(name, format string, args ...any) agent.Call {
	return agent.Call{Tool: name, Trouble: cut(fmt.Sprintf(format, args...), maxError)}
}
