package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// How often a tool is tried.
const (
	// missTries is for a worker that does not have the tool, or has another version of it: in the
	// middle of a rollout another worker may do better.
	missTries = 3
	readTries = 5 // of a read, in all
	sendTries = 8 // of an idempotent effect, in all
	dialTries = 5 // of an effect of which nothing was sent, in one attempt
)

// maxFailure bounds the error text of a tool in bytes.
const maxFailure = 64 << 10

// doGrace is how long a tool may take beyond its timeout before its attempt is given up.
const doGrace = 2 * time.Second

// Tool runs one action: it admits it, records the dispatch, sends it and keeps the outcome. It returns a
// result for everything that the model or the ledger must hear of, and an error only for what is worth
// another attempt: whether that attempt sends again is decided from the records of this one.
func (a *Activities) Tool(ctx context.Context, in agent.ToolInput) (agent.ToolResult, error) {
	p := begin(ctx, "admitting")
	defer p.stop()
	return a.tool(p, in) //nolint:contextcheck // the pulse carries the context of its attempt
}

func (a *Activities) tool(p *pulse, in agent.ToolInput) (agent.ToolResult, error) {
	if in.Grant != nil && in.Undoes == "" {
		failpoint.At(failpoint.ToolApproved)
	}
	failpoint.EffectAt(failpoint.ToolBeforeAdmission, in.Undoes != "")
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.ToolResult{}, err
	}
	r := &toolRun{
		Activities: a, pulse: p, snap: snap, in: in, space: a.Store.Space(in.Scope), key: in.Key(),
	}
	res, err := r.run()
	if err != nil {
		return agent.ToolResult{}, err
	}
	res.Cancel = r.fact(res)
	res.Serial = snap.newer(in.Serial)
	return res, nil
}

// toolRun is one attempt of one action.
type toolRun struct {
	*Activities
	*pulse
	snap     *Snapshot
	in       agent.ToolInput
	space    *store.Space
	key      string
	tool     tool.Tool
	spec     tool.Spec
	def      agent.Definition
	verdict  agent.Verdict
	terms    *agent.Terms // set when the verdict is to ask
	admitted time.Time
	refusal  *agent.ToolResult // what becomes of the action if nothing was sent; nil when it may be sent
	// passing says that the refusal is about a first send only: the approval's time is over, or the target
	// is in another state, often by our own effect.
	passing bool
	place   int  // among the attempts that may send: see again
	clear   int  // that many places before are known to have done nothing: see proven
	only    bool // find out, and send nothing: see Activities.reconcile
	// attempted is the attempt that ends when a run finds out on its behalf: see lastWord.
	attempted *pulse
	stopped   agent.CancelFact // what the tool said to a wish to stop it
	unread    time.Time        // until when whoever wrote a record that cannot be read may send
}

func (r *toolRun) run() (agent.ToolResult, error) {
	refusal, err := r.admission()
	if err == nil && refusal == nil && r.spec.Class != agent.ClassRead {
		refusal, err = r.repeated()
	}
	switch {
	case err != nil:
		return agent.ToolResult{}, err
	case refusal != nil && r.in.Class == agent.ClassRead:
		return *refusal, nil
	case refusal != nil:
		return r.refused(*refusal)
	case r.spec.Class == agent.ClassRead:
		return r.read()
	}
	return r.effect()
}

// result returns a result of this worker in the given state.
func (r *toolRun) result(s agent.State) agent.ToolResult {
	return agent.ToolResult{State: s, Version: r.spec.Version.Short(), Build: r.Build, At: now()}
}

// now is the wall clock as records and results hold it: to the millisecond, which is more than clocks agree on.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// read runs a tool that changes nothing: without records, and again after every trouble.
func (r *toolRun) read() (agent.ToolResult, error) {
	r.phase("running")
	out, err := r.do(r.ctx)
	if r.ctx.Err() != nil {
		return agent.ToolResult{}, r.ctx.Err()
	}
	if err != nil && tool.Meaning(err) != tool.OutcomeFailed && r.progress().Troubles < readTries-1 {
		p := r.trouble()
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, pause(tool.RetryAfter(err), p.Troubles), "tool %q: %v", r.in.Tool, err)
	}
	res, kept := r.told(out, err)
	if kept != nil {
		return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "keeping the result of tool "+r.in.Tool, kept)
	}
	return res, nil
}

// told returns the result of an attempt that has a definite end: what the tool gave back or, with an
// error, why it failed. The error that it returns is the store's; the result then says what is missing.
func (r *toolRun) told(out tool.Result, err error) (agent.ToolResult, error) {
	res := r.result(agent.StateCommitted)
	if err != nil {
		res.State = agent.StateFailed
		res.Note = cut(r.snap.Mask.String(err.Error()), maxWords)
		out = tool.Result{Data: []byte("failed: " + cut(r.snap.Mask.String(err.Error()), maxFailure))}
	}
	res.Attempt = r.attempt
	c, err := r.keepContent(out.Data, out.Type)
	res.Text, res.Body = c.text, c.body
	if err != nil {
		res.Note = "the result could not be stored: " + cut(r.snap.Mask.String(err.Error()), maxWords)
	}
	return res, err
}

// do runs the tool once. That it panicked or did not come back is a plain error: nobody knows the outcome.
func (r *toolRun) do(ctx context.Context) (tool.Result, error) {
	return within(ctx, r.spec.Timeout, doGrace, func(ctx context.Context) (tool.Result, error) {
		return r.tool.Do(ctx, r.call())
	})
}

// within runs something of a tool for a time. What does not come back some grace after that is left behind, because Go
// cannot end it; a panic is an error.
func within[T any](ctx context.Context, most, grace time.Duration, f func(context.Context) (T, error)) (T, error) {
	type end struct {
		v   T
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ended := make(chan end, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- end{err: fmt.Errorf("the tool panicked: %.500v", v)}
			}
		}()
		v, err := f(ctx)
		ended <- end{v, err}
	}()
	select {
	case e := <-ended:
		return e.v, e.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case e := <-ended:
		return e.v, e.err
	case <-late.C:
		return end{}.v, fmt.Errorf("no answer in %s", most)
	}
}
