package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
)

// maxClaims bounds how often one intent is claimed in a session and its forks.
const maxClaims = 1000

// repeated claims the action's intent, or returns what stands in its way: the same was asked for before in this
// session or another of its family, under another key, and nobody knows what became of it; or it was done, and policy
// wants to hear of a second time. Claims are numbered. Each names one key, and is made before that key's dispatch
// record, once all before it have ended; so whoever holds one may send, and every effect of the intent is found by
// walking them. A session and its forks walk the same list, in which a fork finds what its ancestors did. A
// compensation repeats nothing: its effect's own record stands for it.
func (r *toolRun) repeated() (*agent.ToolResult, error) {
	if r.in.Undoes != "" {
		return nil, nil
	}
	r.phase("claiming the intent")
	wanted, err := r.intent()
	if err != nil {
		return nil, err
	}
	claims := r.claims(r.in.Scope, r.in.Root)
	first := "" // the key that committed before all others
	for n := 1; n <= maxClaims; n++ {
		claim, err := persist(r.ctx, func(ctx context.Context) (store.Intent, error) {
			return claims.CreateIntent(ctx, wanted, n, r.key)
		})
		switch {
		case unreadable(err):
			return r.unreadableClaim(), nil
		case err != nil:
			return nil, r.snap.storeTrouble(r.ctx, "claiming the intent", err)
		case claim.Key == r.key:
			return nil, nil
		}
		res, committed, err := r.earlier(claim.Key)
		if committed && first == "" {
			first = claim.Key
			res, err = r.repeats(first)
		}
		if res != nil || err != nil {
			return res, err
		}
	}
	return r.denied(fmt.Sprintf("not run: the same was asked for %d times in this session and its forks", maxClaims)), nil
}

// earlier looks at an identical action that was asked for before: what stands in the way, nil if nothing does, and
// whether it committed, which is policy's to judge. One whose end is contradicted may have. One that was claimed and
// never sent is withheld for good, where its own session will find that.
func (r *toolRun) earlier(key string) (refusal *agent.ToolResult, committed bool, err error) {
	k, ok := agent.ParseKey(key)
	if !ok {
		return r.unreadableClaim(), false, nil
	}
	unsent := withdrawn(r.result(agent.StateCancelled))
	res, err := r.withhold(r.ctx, r.snap, k.Scope, claimOf(key, r.attempt, r.spec.Class, ""), unsent)
	known := res.State == agent.StateCommitted || res.Conflict != ""
	switch {
	case err != nil || !known && res.State != agent.StateUncertain:
		return nil, false, err
	case r.in.Reset && strings.HasPrefix(key, agent.TurnKeys(r.in.Scope, r.in.Turn)):
		return r.discarded(key, res), false, nil
	case known:
		return nil, true, nil
	}
	return r.denied("not run: an identical action was tried before (" + key + ") and its outcome is not known. " +
		"It is not repeated until somebody has settled it; tell the user."), false, nil
}

func (r *toolRun) unreadableClaim() *agent.ToolResult {
	return r.denied("not run: the record of an identical action cannot be read, and it may have been done; tell the user")
}

// discarded is for a turn that was reset: its history begins anew, but what the discarded run sent has happened. As
// long as the model is asked the same, the new run derives the same keys and adopts. If the agent was edited
// meanwhile, or a read answered differently, the same effect is asked for under another key, and only its intent
// tells. Its outcome is this action's.
func (r *toolRun) discarded(key string, res agent.ToolResult) *agent.ToolResult {
	if res.State == agent.StateUncertain {
		res = r.uncertain(store.Dispatch{Attempt: res.Attempt, At: res.At}, "it was sent before the turn was reset, under the key "+key)
		return &res
	}
	res.Note = joined(res.Note, "done before the turn was reset, under the key "+key)
	return &res
}

// repeats decides on an action that is identical to an effect which committed, the first of its intent. Where a rule
// asks anyhow, the approval that it takes covers this too once the approvers were told of the first.
func (r *toolRun) repeats(first string) (*agent.ToolResult, error) {
	switch r.snap.Policy.Duplicates() {
	case policy.RepeatAllow:
		return nil, nil
	case policy.RepeatDeny:
		return r.denied("not run: the same was done before (" + first + "), and policy does not allow it twice"), nil
	}
	v, terms := r.verdict, r.terms
	if terms == nil {
		v, terms = r.snap.Policy.Repeated(r.request())
	}
	switch g := r.in.Grant; {
	case terms == nil:
		return r.denied(fmt.Sprintf("not run: the same was done before (%s), and nobody may approve a second time (%s)", first, v.Rule)), nil
	case g != nil && g.Terms.First == first && !r.expired() && r.lapsed(v, terms) == "":
		if r.terms != nil { // the target has been looked at
			return nil, nil
		}
		r.verdict, r.terms = v, terms
		refusal, err := r.drifted()
		r.passing = refusal != nil
		return refusal, err
	}
	return r.void(v, terms, "the same was done before, under the key "+first)
}

// intent is what the action means, as [intent] has it.
func (r *toolRun) intent() (string, error) {
	wanted, err := intent(r.spec, r.in.Args)
	if err != nil {
		return "", r.snap.final(agent.ErrInternal, "the arguments that were accepted have no intent: %v", err)
	}
	return wanted, nil
}

// request is what policy gets to decide on.
func (r *toolRun) request() policy.Request {
	d := desk{def: r.def, scope: r.in.Scope, senders: r.in.Senders}
	if r.in.Undoes != "" && r.in.Grant == nil { // the plan's authority: nobody was asked
		d.senders = nil
	}
	return d.request(r.spec, r.in.Args)
}

// claims returns the part of the store in which a session claims its intents: its own, or, where it is a fork, that of
// the session that all forks of its family began with.
func (a *Activities) claims(own agent.Scope, root *agent.Scope) *store.Space {
	if root != nil {
		own = *root
	}
	return a.Store.Space(own)
}

// recordsOf returns the part of the store that has the records of the action that made a claim: that of its own
// session, which need not be the one that the claim lies in. False is for a claim of something that is no action.
func recordsOf(claims *store.Space, key string) (*store.Space, bool) {
	k, ok := agent.ParseKey(key)
	return claims.Of(k.Scope), ok
}

// firstCommitted returns the key of the first effect of an intent that committed in the session or its family, or
// whose end is contradicted, "" if there is none, so that whoever is asked for the same again is told. What cannot be
// read is no reason not to ask: admission looks again.
func firstCommitted(ctx context.Context, claims *store.Space, intent, own string) string {
	for n := 1; ; n++ {
		claim, err := claims.Intent(ctx, intent, n)
		if err != nil && !unreadable(err) {
			return "" // there are no more of them, or the store is in trouble
		}
		if err != nil || claim.Key == own {
			continue
		}
		space, known := recordsOf(claims, claim.Key)
		rec, err := space.Result(ctx, claim.Key)
		if !known || err != nil || rec.Tool == nil {
			continue
		}
		if late, _ := contradicted(ctx, space, claim.Key, *rec.Tool); late != "" || rec.Tool.State == agent.StateCommitted {
			return claim.Key
		}
	}
}
