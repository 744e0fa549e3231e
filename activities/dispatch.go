package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// maxSendBy bounds how long after its dispatch record an attempt may still send.
const maxSendBy = 30 * time.Second

// effect runs an action that may change the world. Whoever creates the dispatch record owns the first
// send; whoever finds one must first find out what became of its owner.
func (r *toolRun) effect() (agent.ToolResult, error) {
	if err := r.ctx.Err(); err != nil {
		return agent.ToolResult{}, err
	}
	if res, err := r.discarded(); res != nil || err != nil {
		return value(res), err
	}
	if err := failpoint.AtErr(failpoint.ToolBeforeDispatch); err != nil {
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, 0, "%v", err)
	}
	r.phase("recording the dispatch")
	d := claimOf(r.key, r.attempt, r.spec.Class, r.in.Action)
	began := time.Now()
	d.At = r.clock()
	d.Verdict, d.SendBy, d.Revoked = r.verdict, d.At.Add(r.span()), false
	d.Tool = r.in.Tool
	var err error
	if d.Intent, err = intent(r.spec, r.in.Args); err != nil {
		return agent.ToolResult{}, r.snap.final(agent.ErrInternal, "the arguments that were accepted have no intent: %v", err)
	}
	standing, err := persist(r.ctx, func(ctx context.Context) (store.Dispatch, error) {
		// Trying again with the same token finds out whether a create that failed had succeeded.
		_, standing, err := r.space.CreateDispatch(ctx, d)
		return standing, err
	})
	switch {
	case unreadable(err):
		return r.findOut(store.Dispatch{}, err)
	case err != nil:
		return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "recording the dispatch", err)
	case standing.Token != d.Token:
		return r.findOut(standing, nil)
	}
	return r.first(d, began)
}

// claimOf returns a dispatch record of this attempt that claims the key and sends nothing.
func claimOf(key string, attempt int, class agent.Class, action agent.Digest) store.Dispatch {
	return store.Dispatch{
		Key: key, Attempt: attempt, Token: rand.Text(), Class: class, Action: action, At: now(), Revoked: true,
	}
}

// first sends an action that nobody has sent before. While nothing has left, it may try again itself: the
// record is its own. began is the moment of d.At by this machine's clocks.
func (r *toolRun) first(d store.Dispatch, began time.Time) (agent.ToolResult, error) {
	if err := failpoint.AtErr(failpoint.ToolAfterDispatch); err != nil {
		return r.conclude(d, tool.Result{}, tool.Ambiguous(err))
	}
	for try := 1; ; try++ {
		switch {
		case r.ctx.Err() != nil:
			return r.unsent(d, errors.New("the attempt was cancelled before it could send"))
		case late(r.span(), began, began.Round(0)):
			return r.unsent(d, errors.New("the attempt was held up before it could send"))
		}
		out, err := r.send()
		if err == nil || tool.Meaning(err) != tool.OutcomeNotSent {
			return r.conclude(d, out, err)
		}
		wait := backoff(try)
		if r.spec.Class == agent.ClassIdempotent || try >= dialTries || time.Since(began)+wait > r.span() {
			return r.unsent(d, err)
		}
		_ = sleep(r.ctx, wait) // its end is looked at before the next send
	}
}

// span is how long after its dispatch record the attempt may still send.
func (r *toolRun) span() time.Duration { return min(r.spec.Timeout, maxSendBy) }

// late says whether the time to send is over since a moment, by the monotonic clock or by the wall clock: a
// frozen machine may hold either of them still.
func late(span time.Duration, monotonic, wall time.Time) bool {
	return time.Since(monotonic) > span || now().Sub(wall) > span
}

// send runs the tool with a context that a cancellation does not end: what has left cannot be called back,
// so its outcome is waited for, at most for the tool's timeout.
func (r *toolRun) send() (tool.Result, error) {
	r.phase("running")
	return r.do(context.WithoutCancel(r.ctx))
}

// conclude turns what the tool said into the action's outcome.
func (r *toolRun) conclude(d store.Dispatch, out tool.Result, err error) (agent.ToolResult, error) {
	if err == nil {
		failpoint.At(failpoint.ToolAfterCommit)
	}
	switch {
	case err == nil:
		res, _ := r.told(out, nil) // a result that cannot be stored has happened all the same
		return r.record(res), nil
	case tool.Meaning(err) == tool.OutcomeFailed:
		return r.nothingDone(d, err)
	case tool.Meaning(err) == tool.OutcomeNotSent:
		return r.unsent(d, err)
	}
	if !r.repeatable(d) || r.progress().Troubles >= sendTries-1 {
		return r.uncertain(d, err.Error()), nil
	}
	p := r.trouble()
	return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, pause(tool.RetryAfter(err), p.Troubles), "tool %q: %v", r.in.Tool, err)
}

// repeatable says whether the same key may be sent again: the destination honours it for a window from the
// dispatch on, in which the next attempt must have arrived.
func (r *toolRun) repeatable(d store.Dispatch) bool {
	return r.spec.Class == agent.ClassIdempotent && r.clock().Add(r.spec.Timeout).Before(d.At.Add(r.spec.Window))
}

// unsent is for an attempt of which nothing has left. An idempotent action is tried again.
func (r *toolRun) unsent(d store.Dispatch, err error) (agent.ToolResult, error) {
	if r.repeatable(d) && r.progress().Troubles < sendTries-1 && r.ctx.Err() == nil {
		p := r.note(func(p *Progress) {
			p.Troubles++
			if p.Unsent == r.place {
				p.Unsent++
			}
		})
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, pause(tool.RetryAfter(err), p.Troubles), "tool %q: %v", r.in.Tool, err)
	}
	return r.nothingDone(d, fmt.Errorf("nothing was sent: %w", err))
}

// record keeps a final outcome under the action's key. A record that stands already wins; one that cannot
// be written changes nothing about what happened.
func (r *toolRun) record(own agent.ToolResult) agent.ToolResult {
	type written struct {
		first    bool
		standing store.Result
	}
	r.phase("recording the outcome")
	w, err := persist(r.ctx, func(ctx context.Context) (written, error) {
		first, standing, err := r.space.CreateResult(ctx, store.Result{Key: r.key, Tool: &own})
		return written{first, standing}, err
	})
	if err != nil {
		own.Note = joined(own.Note, "its record could not be written: "+cut(r.snap.Mask.String(err.Error()), maxWords))
		return own
	}
	failpoint.At(failpoint.ToolAfterAdoption)
	if w.first || w.standing.Tool == nil {
		return own
	}
	res := adopted(w.standing)
	if res.State != own.State {
		res.Conflict = fmt.Sprintf("attempt %d saw %s, the record of attempt %d says %s", own.Attempt, own.State, res.Attempt, res.State)
	}
	return res
}

// adopted returns a recorded outcome.
func adopted(r store.Result) agent.ToolResult {
	res := *r.Tool
	res.Adopted = true
	return res
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
