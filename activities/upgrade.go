package activities

import (
	"context"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

// An opening decides which definition of its agent a turn works with, by the configuration in force.
type opening struct {
	*Activities
	snap    *Snapshot
	in      agent.OpenInput
	now     defined       // as the configuration has the agent
	senders []agent.Actor // of the turn's messages
}

// A defined is a definition under the digest of its stored bytes: those of another build need not be the bytes that
// this one would write.
type defined struct {
	agent.Definition
	digest agent.Digest
}

// choose returns the definition that the turn works with, and what people are to be asked about before it does. One
// that the session has and that cannot be read stops an agent that does not simply follow: nothing else may take its
// place without authority.
func (o *opening) choose(ctx context.Context) (defined, *agent.Offer, error) {
	upgrade, last := o.upgrade(), o.in.Definition
	if last == "" || last == o.now.digest || upgrade == agent.UpgradeFollow {
		return o.now, nil, nil
	}
	old, why, err := o.read(ctx, last)
	switch {
	case err != nil:
		return old, nil, err
	case why != "":
		return old, nil, o.snap.final(agent.ErrStore, "the definition %s of agent %s that the session goes on with cannot be used: %s; "+
			"give the store its object back, or let the agent follow (upgrade: follow)", last.Short(), quoted(o.in.Agent), why)
	case o.in.Take != "":
		old, err = o.take(ctx, old)
	case upgrade == agent.UpgradeAsk:
		offer, err := o.offer(ctx, old)
		return old, offer, err
	}
	return old, nil, err
}

func (o *opening) upgrade() agent.Upgrade {
	if u := o.snap.Upgrades[o.in.Agent]; u != "" {
		return u
	}
	return agent.UpgradeFollow
}

// read returns a definition of the agent from the store. Why says what is wrong with it for good.
func (o *opening) read(ctx context.Context, digest agent.Digest) (d defined, why string, err error) {
	if digest == o.now.digest {
		return o.now, "", nil
	}
	b, err := o.Store.Space(o.in.Scope).Body(ctx, agent.Body{Digest: digest})
	switch {
	case err != nil && definite(err):
		return d, err.Error(), nil
	case err != nil:
		return d, "", o.snap.storeTrouble(ctx, "reading the agent's definition", err)
	}
	d.digest = digest
	if d.Definition, err = parseDefinition(b); err != nil {
		return d, err.Error(), nil
	}
	if d.Name != o.in.Agent {
		why = "it defines agent " + quoted(d.Name)
	}
	return d, why, nil
}

// offer asks for the configuration's definition; nil if nobody could approve it.
func (o *opening) offer(ctx context.Context, old defined) (*agent.Offer, error) {
	call, err := o.call(old, o.now)
	if err != nil {
		return nil, err
	}
	if call.Terms == nil {
		activity.GetLogger(ctx).Warn("Nobody is asked about another definition of the agent: nobody may approve it.",
			"agent", o.in.Agent, "definition", o.now.digest.Short(), "rule", call.Verdict.Rule)
		return nil, nil
	}
	return &agent.Offer{To: o.now.digest, Call: call}, nil
}

// call is what people are asked about: to go on with another definition. It follows from the two definitions, so that
// whoever has them can say which action an approval is for.
func (o *opening) call(old, next defined) (agent.Call, error) {
	changes := o.snap.changes(old, next)
	args, err := o.snap.upgradeArgs(old, next, changes)
	if err != nil {
		return agent.Call{}, o.snap.final(agent.ErrInternal, "the request for an upgrade has no canonical form: %v", err)
	}
	c := agent.Call{Tool: agent.ToolUpgrade, Args: args, Class: agent.ClassRead, Summary: upgradeSummary(o.in.Agent, changes)}
	c.Action = approval.Action{
		Tool: c.Tool, Version: next.digest, Args: args, Resource: o.in.Agent, Place: o.place(),
	}.Digest()
	var terms *agent.Terms
	c.Verdict, terms = o.snap.Policy.Upgrade(upgradeRequest(args, o.in.Agent, o.in.Scope, o.senders))
	if terms != nil {
		terms.Version = next.digest
	}
	c.Terms = terms
	return c, nil
}

// place is before the first step.
func (o *opening) place() agent.Place { return agent.Place{Turn: o.in.Turn, Call: 1} }

// upgradeRequest is what policy gets to say who may approve an upgrade.
func upgradeRequest(args, name string, scope agent.Scope, senders []agent.Actor) policy.Request {
	return policy.Request{
		Tool: agent.ToolUpgrade, Class: agent.ClassRead, Args: args, Resource: name, Scope: scope, Senders: senders,
	}
}

// take returns the definition that people approved; the old one, if the approval does not count for it by the policy
// in force, or if there is nothing to take any more.
func (o *opening) take(ctx context.Context, old defined) (defined, error) {
	next, why, err := o.read(ctx, o.in.Take)
	if err == nil && why == "" {
		why, err = o.unapproved(old, next)
	}
	switch {
	case err != nil:
		return old, err
	case why != "":
		activity.GetLogger(ctx).Warn("The turn goes on with the old definition of the agent.",
			"agent", o.in.Agent, "definition", o.in.Take.Short(), "why", o.snap.say("%s", why))
		return old, nil
	}
	return next, nil
}

// unapproved says why going on with next has no authority, "" if it has.
func (o *opening) unapproved(old, next defined) (string, error) {
	call, err := o.call(old, next)
	if err != nil {
		return "", err
	}
	switch g := o.in.Grant; {
	case o.upgrade() != agent.UpgradeAsk:
		return "it is not asked about any more: upgrade is " + string(o.upgrade()), nil
	case call.Terms == nil:
		return "nobody may approve it (" + call.Verdict.Rule + ")", nil
	case g == nil:
		return "there is no approval", nil
	case !grants(*g, call.Action, agent.ActionKey(o.in.Scope, o.place(), call.Action)):
		return "the approval is for another action", nil
	}
	if err := o.snap.Policy.Satisfied(o.in.Scope, *o.in.Grant, call.Verdict, call.Terms, o.senders); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// grants says whether a grant is for exactly that action, which nobody can have edited.
func grants(g agent.Grant, action agent.Digest, key string) bool {
	if g.Action != action || g.Proposed != "" || !strings.HasPrefix(g.ID, key+"#") {
		return false
	}
	for _, d := range g.Decisions {
		if d.ID != g.ID || d.Digest != action || d.Args != "" {
			return false
		}
	}
	return true
}
