package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// A desk decides what becomes of the calls that a model asked for in one step.
type desk struct {
	snap    *Snapshot
	def     agent.Definition
	scope   agent.Scope
	place   agent.Place   // of the step
	senders []agent.Actor // of the turn's messages so far
}

// Texts for the model about calls that are not run. Each says what to do.
const (
	cutByLength = "cut off by the output limit before the answer was finished: nothing was run; ask again with less in one answer"
	cutByFilter = "the answer was cut off by the provider's content filter: nothing was run"
	unfinished  = "the answer was not finished: nothing was run; ask again"
)

// calls canonicalises what the model asked for and has policy decide on each call. ids are the calls'
// ids, unique in the conversation.
func (d *desk) calls(asked []openai.Call, ids []string, finish agent.Finish) []agent.Call {
	var out []agent.Call
	for i, c := range asked {
		call := agent.Call{ID: ids[i], Tool: d.name(c.Name)}
		if why := d.unready(i, c, finish); why != "" {
			call.Trouble = why
		} else {
			call = d.canonicalise(call, i+1, c.Args)
		}
		out = append(out, call)
	}
	return out
}

// name returns the name of a tool as it stands in history: a foreign one only for display.
func (d *desk) name(name string) string {
	if _, ok := d.snap.Tools.Lookup(name); ok {
		return name
	}
	return cut(approval.Visible(head(name, 64)), 64)
}

// unready returns why a call cannot be looked at at all.
func (d *desk) unready(i int, c openai.Call, finish agent.Finish) string {
	switch finish {
	case agent.FinishCalls:
	case agent.FinishLength:
		return cutByLength
	case agent.FinishFilter:
		return cutByFilter
	default:
		return unfinished
	}
	if most := d.def.Limits.Calls; most > 0 && i >= most {
		return fmt.Sprintf("not run: at most %d calls are run in one answer; ask again for this one", most)
	}
	if _, ok := d.lookup(c.Name); !ok {
		return d.missing(c.Name)
	}
	if c.Damaged != "" {
		return "not run: " + cut(c.Damaged, 300) + "; ask again"
	}
	return ""
}

// canonicalise turns the raw arguments of the n-th call into the exact bytes that everybody gets.
func (d *desk) canonicalise(call agent.Call, n int, raw string) agent.Call {
	args, err := approval.Canonical([]byte(raw))
	if err != nil {
		call.Trouble = err.Error()
		return call
	}
	call.Args = args
	return d.decide(call, n)
}

// decide gives a call with canonical arguments its identity and its verdict. It is used alike for a new answer, for
// one that an earlier attempt accepted and for what an approver made of one: the verdict is always today's. A call
// that is to be asked about keeps its trouble empty; see [desk.inform] for what people are told.
func (d *desk) decide(call agent.Call, n int) agent.Call {
	t, ok := d.lookup(call.Tool)
	if !ok {
		return refuse(call, d.missing(call.Tool))
	}
	spec := t.Spec()
	place := agent.Place{Turn: d.place.Turn, Step: d.place.Step, Call: n}
	call.Class, call.Timeout = spec.Class, agent.Duration(spec.Timeout)
	call.Action = action(spec, call.Args, place).Digest()
	var err error
	if call.Intent, err = intent(spec, call.Args); err != nil {
		return refuse(call, err.Error())
	}
	call.Summary = d.snap.summary(call.Tool, call.Args)
	var terms *agent.Terms
	call.Verdict, terms = d.snap.Policy.Decide(d.request(spec, call.Args))
	call.Terms = versioned(terms, spec)
	if call.Verdict.Decision != agent.DecisionAllow && call.Verdict.Decision != agent.DecisionAsk {
		return refuse(call, fmt.Sprintf("not allowed (%s); %s", call.Verdict.Rule, d.listed()))
	}
	if err := d.snap.Tools.Validate(call.Tool, call.Args); err != nil {
		return refuse(call, err.Error())
	}
	return call
}

// intent returns what finds the same action asked for again.
func intent(spec tool.Spec, args string) (string, error) {
	d, err := approval.IntentDigest(spec.Name, args, spec.Identity, resource(spec.Resource, args))
	return d.Short(), err
}

// refuse gives a call its trouble. Its arguments stay for the record, from which a later attempt decides anew; see
// [told].
func refuse(call agent.Call, why string) agent.Call {
	call.Terms, call.Trouble = nil, cut(why, maxError)
	return call
}

// told returns the calls as history gets them: what cannot run has no arguments there.
func told(calls []agent.Call) []agent.Call {
	out := slices.Clone(calls)
	for i := range out {
		if out[i].Trouble != "" {
			out[i].Args = ""
		}
	}
	return out
}

// inform gives the calls that are to be asked about what people should know: the state that the target is in now,
// and whether the same was done before. All targets are looked at at once.
func (d *desk) inform(ctx context.Context, space *store.Space, calls []agent.Call) {
	var looks sync.WaitGroup
	for i := range calls {
		c := &calls[i]
		if c.Trouble != "" || c.Verdict.Decision != agent.DecisionAsk || c.Terms == nil {
			continue
		}
		looks.Go(func() { d.see(ctx, space, c, i+1, observeFor) })
	}
	looks.Wait()
}

// see fills in what the n-th call's terms say about the world.
func (d *desk) see(ctx context.Context, space *store.Space, c *agent.Call, n int, most time.Duration) {
	t, ok := d.snap.Tools.Lookup(c.Tool)
	if !ok {
		return
	}
	terms := *c.Terms // policy's own stay as they are
	place := agent.Place{Turn: d.place.Turn, Step: d.place.Step, Call: n}
	key := agent.ActionKey(d.scope, place, c.Action)
	terms.Observed = d.snap.observe(ctx, t, tool.Call{Key: key, Args: c.Args, Attempt: 1, Scope: d.scope, Place: place}, most)
	if c.Class != agent.ClassRead {
		terms.First = firstCommitted(ctx, space, c.Intent, key)
	}
	c.Terms = &terms
}

// listed names the tools that the model is offered.
func (d *desk) listed() string {
	var names []string
	for _, ref := range d.def.Tools {
		if _, ok := d.lookup(ref.Name); ok {
			names = append(names, ref.Name)
		}
	}
	if len(names) == 0 {
		return "there are no tools"
	}
	return "the tools are " + cut(strings.Join(names, ", "), 1<<10)
}

// action is the one place that says what an action digest is taken over.
func action(spec tool.Spec, args string, p agent.Place) approval.Action {
	return approval.Action{
		Tool: spec.Name, Version: spec.Version, Args: args, Resource: resource(spec.Resource, args), Place: p,
	}
}

func quoted(name string) string { return `"` + cut(approval.Visible(head(name, 100)), 100) + `"` }
