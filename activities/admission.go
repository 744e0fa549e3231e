package activities

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// lookTries is how often a target that could not be looked at is looked at, before a person is asked anew.
const lookTries = 3

// admission decides whether the action may be sent as things stand now: the tool is there, the bytes handed over
// are still the action that was decided on, policy still allows it or people's approval of it still holds, and
// the target is as they saw it. It returns what becomes of the action if not. What an earlier attempt may have
// sent is not its to judge: see refused.
func (r *toolRun) admission() (*agent.ToolResult, error) {
	t, ok := r.snap.Tools.Lookup(r.in.Tool)
	if !ok {
		return r.miss("the tool %q is not there any more: nothing was run", r.in.Tool)
	}
	r.tool, r.spec = t, t.Spec()
	changed := action(r.spec, r.in.Args, r.in.Place).Digest() != r.in.Action
	var err error
	switch r.def, err = r.definition(r.ctx, r.snap, r.in.Scope, r.in.Definition); {
	case err != nil && !changed:
		return nil, err
	case r.in.Undoes != "":
		r.def = listing(r.def, r.spec)
	case r.snap.withheld(r.def, r.spec):
		return r.miss("the tool %q is not there in the version that this agent is pinned to: nothing was run; tell the user", r.in.Tool)
	}
	if changed {
		return r.miss("the tool %q has changed since this was asked for: nothing was run; ask again if it is still wanted", r.in.Tool)
	}
	refusal, err := r.authority()
	r.admitted = time.Now()
	return refusal, err
}

// authority decides on the action by today's policy. A compensation that policy does not deny has the authority of
// the plan that it is part of.
func (r *toolRun) authority() (*agent.ToolResult, error) {
	r.verdict, r.terms = r.snap.Policy.Decide(r.request())
	if r.verdict.Decision == agent.DecisionAllow && r.undoAsks() {
		r.verdict, r.terms = r.snap.Policy.Repeated(r.request())
		r.verdict.Rule = ruleOnFailure
	}
	switch {
	case r.verdict.Decision == agent.DecisionAllow, r.verdict.Decision == agent.DecisionAsk && r.in.Undoes != "" && r.in.Grant == nil:
		return nil, nil
	case r.verdict.Decision != agent.DecisionAsk || r.terms == nil:
		return r.denied(fmt.Sprintf("not allowed (%s): nothing was run", r.verdict.Rule)), nil
	case r.in.Grant == nil:
		return r.void(r.verdict, r.terms, "policy asks for an approval now")
	}
	if why := r.lapsed(r.verdict, r.terms); why != "" {
		return r.void(r.verdict, r.terms, why)
	}
	if r.passing = r.expired(); r.passing {
		return r.void(r.verdict, r.terms, "the approval has expired")
	}
	refusal, err := r.drifted()
	r.passing = refusal != nil
	return refusal, err
}

// undoAsks says that this undoes an effect and that policy asks about it whatever its rules say: see planner.authority.
func (r *toolRun) undoAsks() bool {
	return r.in.Undoes != "" && r.in.Grant != nil && r.snap.Policy.OnFailure() == agent.UnwindAsk
}

// expired says that the time in which the approval could be used for a first send is over.
func (r *toolRun) expired() bool {
	g := r.in.Grant
	return !g.Expires.IsZero() && r.latest().After(g.Expires)
}

// lapsed says why the approval of this action does not count any more, "" if it does.
func (r *toolRun) lapsed(inForce agent.Verdict, terms *agent.Terms) string {
	g := r.in.Grant
	switch {
	case g.Action != r.in.Action || !strings.HasPrefix(g.ID, r.key+"#") || !r.approved(g):
		return "the approval is for another action"
	}
	if err := r.snap.Policy.Satisfied(r.in.Scope, *g, inForce, terms, r.in.Senders); err != nil {
		return err.Error()
	}
	return ""
}

// approved says whether the arguments that are sent are those that each approver who edited them wrote: the digest
// that such a decision names is of the action that it was made of.
func (r *toolRun) approved(g *agent.Grant) bool {
	for _, d := range g.Decisions {
		if d.Args == "" {
			continue
		}
		if args, err := approval.Canonical([]byte(d.Args)); err != nil || args != r.in.Args {
			return false
		}
	}
	return true
}

// drifted compares the target with what the approvers saw of it.
func (r *toolRun) drifted() (*agent.ToolResult, error) {
	was := r.in.Grant.Terms.Observed
	if was == nil || was.Digest == "" {
		return nil, nil
	}
	r.phase("looking at the target")
	seen := r.snap.observe(r.ctx, r.tool, r.call(), observeFor)
	switch {
	case r.ctx.Err() != nil:
		return nil, r.ctx.Err()
	case seen != nil && seen.Digest == was.Digest:
		return nil, nil
	case seen != nil && seen.Trouble != "" && r.progress().Troubles < lookTries-1:
		p := r.trouble()
		return nil, r.snap.retryable(agent.ErrTool, backoff(p.Troubles), "tool %q: looking at the target: %s", r.in.Tool, seen.Trouble)
	}
	terms := *r.terms
	terms.Observed = seen
	return r.void(r.verdict, &terms, "the target is not in the state that was approved")
}

// call returns what the tool gets.
func (r *toolRun) call() tool.Call {
	return tool.Call{Key: r.key, Args: r.in.Args, Attempt: r.attempt, Scope: r.in.Scope, Place: r.in.Place}
}

// miss is for what this worker cannot do. If its configuration is newer than what the turn has seen, no
// other worker will do better; else another one gets a chance first.
func (r *toolRun) miss(format string, name string) (*agent.ToolResult, error) {
	if r.snap.Serial <= r.in.Serial && r.progress().Troubles < missTries {
		p := r.trouble()
		return nil, r.snap.retryable(agent.ErrStaleConfig, backoff(p.Troubles), "on this worker "+format, name)
	}
	res := r.result(agent.StateFailed)
	res.Text = r.snap.say(format, name)
	res.Note = res.Text
	return &res, nil
}

// denied is for an action that nobody is asked about.
func (r *toolRun) denied(text string) *agent.ToolResult {
	res := r.result(agent.StateDenied)
	res.Text = r.snap.say("%s", text)
	res.Note = cut(fmt.Sprintf("policy %s: %s (%s); %s", r.verdict.Policy, r.verdict.Decision, r.verdict.Rule, res.Text), maxNote)
	return &res
}

// maxNote bounds in bytes what a person is told of a refusal.
const maxNote = 400

// void is for an action that needs another approval than it has. It carries what the next ask takes: policy's
// fresh word, and what the world looks like now.
func (r *toolRun) void(v agent.Verdict, terms *agent.Terms, why string) (*agent.ToolResult, error) {
	fresh := *terms // policy's own stay as they are
	fresh.Version = r.spec.Version
	if fresh.Observed == nil {
		fresh.Observed = r.snap.observe(r.ctx, r.tool, r.call(), observeFor)
	}
	if fresh.First == "" && r.spec.Class != agent.ClassRead {
		wanted, err := r.intent()
		if err != nil {
			return nil, err
		}
		fresh.First = firstCommitted(r.ctx, r.claims(r.in.Scope, r.in.Root), wanted, r.key)
	}
	res := r.result(agent.StateVoid)
	res.Text = r.snap.say("not run: it waits for an approval: %s", why)
	res.Note = cut(r.snap.Mask.String(why), maxNote)
	res.Verdict, res.Terms = &v, &fresh
	return &res, nil
}

// refused is for an action that is not to be sent. What may have been sent already is found out first, whatever
// authority says now. What was not, and is not wanted any more, never will be, not by a zombie of an earlier
// attempt either.
func (r *toolRun) refused(refusal agent.ToolResult) (agent.ToolResult, error) {
	r.refusal = &refusal
	standing, err := r.space.Dispatch(r.ctx, r.key)
	switch {
	case unreadable(err):
		return r.findOut(store.Dispatch{}, err)
	case err == nil:
		return r.findOut(standing, nil)
	case !errors.Is(err, store.ErrAbsent):
		return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "reading the dispatch of "+r.key, err)
	case ends(refusal):
		return r.withhold(r.ctx, r.snap, r.in.Scope, claimOf(r.key, r.attempt, r.in.Class, r.in.Action), refusal)
	}
	return refusal, nil
}

// ends says whether a refusal is the end of the action: a void one may still be approved.
func ends(refusal agent.ToolResult) bool {
	return refusal.State == agent.StateDenied || refusal.State == agent.StateFailed
}
