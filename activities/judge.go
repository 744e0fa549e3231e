package activities

import (
	"context"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// editFor bounds how long the target of an edited action may take to be looked at: a local activity is short.
const editFor = 2 * time.Second

// Judge checks a person's decision on an approval by the policy in force: who it is from, whether they may, and
// whether it came in time, which the server's own time of the signal decides and nothing that its sender wrote. An
// action that the approver edited is decided by policy as well. A decision that does not count is a result that
// says why, never an error.
func (a *Activities) Judge(ctx context.Context, in agent.JudgeInput) (agent.JudgeResult, error) {
	p := begin(ctx, "judging")
	defer p.stop()
	failpoint.At(failpoint.ApprovalBeforeJudgement)
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.JudgeResult{}, err
	}
	def, err := a.definition(ctx, snap, in.Scope, in.Definition)
	if err != nil {
		return agent.JudgeResult{}, err
	}
	at, why, err := taken(ctx, a, snap, signalOf(ctx, in.Run, agent.SignalApproval), approval.ParseDecision, in.Decision)
	if err != nil {
		return agent.JudgeResult{}, err
	}
	b := &bench{Activities: a, snap: snap, def: def, in: in, at: at}
	res := agent.JudgeResult{Why: why}
	if why == "" {
		res = b.judge(ctx)
	}
	res.Serial = snap.newer(in.Serial)
	failpoint.At(failpoint.ApprovalAfterJudgement)
	return res, nil
}

// A bench judges one decision.
type bench struct {
	*Activities
	snap *Snapshot
	def  agent.Definition
	in   agent.JudgeInput
	at   time.Time // when the server took it
}

func (b *bench) judge(ctx context.Context) agent.JudgeResult {
	verdict, terms := b.inForce()
	decided, err := b.weigh(verdict, terms)
	if err != nil {
		return b.refused(err.Error())
	}
	res := agent.JudgeResult{Decided: decided, Quorum: max(terms.Quorum, 1)}
	if b.in.Decision.Choice != agent.ChoiceApprove || b.in.Decision.Args == "" {
		return res
	}
	edited, why := b.edited(ctx)
	switch {
	case why != "":
		return b.refused(why)
	case edited == nil:
		return res
	case edited.Terms != nil: // who may approve this may not be who may approve that
		if _, err := b.weigh(edited.Verdict, edited.Terms); err != nil {
			return b.refused("the edited action: " + err.Error())
		}
		res.Quorum = max(res.Quorum, edited.Terms.Quorum)
	}
	res.Edited = edited
	return res
}

func (b *bench) refused(why string) agent.JudgeResult {
	return agent.JudgeResult{Why: b.snap.say("%s", why)}
}

// inForce is policy's word on the request's action today. Where that asks for nothing, what was asked for when the
// request was made stands. A tool that this worker does not have is what the request says that it is.
func (b *bench) inForce() (agent.Verdict, *agent.Terms) {
	r := b.in.Request
	if r.Tool == agent.ToolUpgrade {
		return b.upgrade()
	}
	d := desk{def: b.def, scope: b.in.Scope, senders: b.in.Senders}
	req := d.request(tool.Spec{Name: r.Tool, Class: r.Class, Risk: r.Terms.Risk}, r.Args)
	req.Resource = r.Terms.Resource
	if t, ok := b.snap.Tools.Lookup(r.Tool); ok {
		if isUndo(r.Key) {
			d.def = listing(d.def, t.Spec())
		}
		req = d.request(t.Spec(), r.Args)
	}
	verdict, terms := b.snap.Policy.Decide(req)
	if terms == nil {
		terms = &r.Terms
	}
	return verdict, terms
}

// upgrade is policy's word on going on with another definition today.
func (b *bench) upgrade() (agent.Verdict, *agent.Terms) {
	r := b.in.Request
	verdict, terms := b.snap.Policy.Upgrade(upgradeRequest(r.Args, r.Terms.Resource, b.in.Scope, b.in.Senders))
	if terms == nil { // nobody may approve it; who may decline or withdraw it, it says itself
		terms = &r.Terms
	}
	return verdict, terms
}

func (b *bench) weigh(v agent.Verdict, terms *agent.Terms) (agent.Decided, error) {
	decided, err := b.snap.Policy.Judge(policy.Judgement{
		Scope: b.in.Scope, Request: b.in.Request, Decision: b.in.Decision, At: b.at, Given: b.in.Given,
		Senders: b.in.Senders, Verdict: v, Terms: terms,
	})
	decided.At = b.at
	return decided, err
}

// edited returns the action that the approver made of the request's, nil if it is the same one, or why it cannot be.
func (b *bench) edited(ctx context.Context) (*agent.Call, string) {
	r := b.in.Request
	if r.Tool == agent.ToolUpgrade {
		return nil, "a definition is taken as it is or not at all and cannot be edited: decline it, and change holdfast.yaml"
	}
	args, err := approval.Canonical([]byte(b.in.Decision.Args))
	switch {
	case err != nil:
		return nil, "the edited arguments cannot be used: " + err.Error()
	case args == r.Args:
		return nil, ""
	case isUndo(r.Key): // its key does not change with its arguments, and one key is one action
		return nil, "what undoes an effect follows from it and cannot be edited: decline it and undo the effect by hand"
	}
	d := &desk{snap: b.snap, def: b.def, scope: b.in.Scope, place: r.Place, senders: b.in.Senders}
	call := d.decide(agent.Call{Tool: r.Tool, Args: args}, r.Place.Call)
	t, there := b.snap.Tools.Lookup(r.Tool)
	switch {
	case there && action(t.Spec(), r.Args, r.Place).Digest() != r.Action: // it may send elsewhere than the approver has seen
		return nil, "the tool " + quoted(r.Tool) + " has changed since this was asked for: decline it, so that it is asked for again"
	case call.Verdict.Decision == agent.DecisionDeny:
		return nil, "policy denies the edited action (" + call.Verdict.Rule + ")"
	case call.Trouble != "":
		return nil, "the edited arguments cannot be used: " + call.Trouble
	case call.Terms == nil: // policy would allow it by itself: then it takes what the first one took
		call.Verdict, call.Terms = r.Verdict, versioned(&r.Terms, t.Spec())
		call.Terms.Resource = resource(t.Spec().Resource, args)
	}
	d.see(ctx, b.claims(b.in.Scope, b.in.Root), &call, r.Place.Call, editFor)
	if call.Terms.Resource != "" && call.Terms.Resource == r.Terms.Resource {
		call.Terms.Observed = r.Terms.Observed // it is what the approver has seen that must still hold
	}
	return &call, ""
}
