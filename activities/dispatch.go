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
	switch {
	case r.ctx.Err() != nil:
		return agent.ToolResult{}, r.ctx.Err()
	case r.stopping():
		return agent.ToolResult{}, errStopping
	}
	if err := r.overdue(); err != nil {
		return agent.ToolResult{}, err
	}
	if err := failpoint.Effect(failpoint.ToolBeforeDispatch, r.in.Undoes != ""); err != nil {
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, 0, "%v", err)
	}
	r.phase("recording the dispatch")
	began := time.Now()
	d, err := r.whole(r.sending(0))
	if err != nil {
		return agent.ToolResult{}, err
	}
	standing, err := r.take(d)
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

// overdue ends an attempt that was held up, after its admission, because what it has found out may not be so any more,
// or on its way here. Whether that was so, or only a clock is off, the server knows.
func (r *toolRun) overdue() error {
	switch {
	case late(maxSendBy, r.admitted, r.admitted.Round(0)):
		return r.snap.retryable(agent.ErrTool, 0, "tool %q: the attempt was held up after its admission", r.in.Tool)
	case r.astray() && !r.awaited(r.pulse):
		return r.snap.retryable(agent.ErrTool, 0, "tool %q: the attempt was given up before it came to this worker", r.in.Tool)
	}
	return nil
}

// sending returns the record of this attempt that it is about to send, at a place: see again.
func (r *toolRun) sending(place int) store.Dispatch {
	d := claimOf(r.placeKey(place), r.attempt, r.spec.Class, r.in.Action)
	d.At = r.clock()
	d.Verdict, d.SendBy, d.Revoked = r.verdict, r.latest().Add(r.span()+r.unheld()), false
	// An attempt that came to this worker long after the server had started it, because the machine stood still, knows
	// that from its own wall clock only.
	// One that came so late that it is either given up or its clock is off, overdue has asked about.
	if wall := now().Add(r.span() + r.unheld()); wall.After(d.SendBy) && !r.astray() {
		d.SendBy = wall
	}
	return d
}

// unheld is how long after its last look at the clock an attempt may still send: a tool that is not gated may until
// its timeout.
func (r *toolRun) unheld() time.Duration {
	if tool.Gated(r.tool) {
		return 0
	}
	return r.spec.Timeout
}

// whole adds what whoever has nothing left of the turn but this record needs.
func (r *toolRun) whole(d store.Dispatch) (_ store.Dispatch, err error) {
	d.Tool, d.Args, d.Undoes, d.Grant = r.in.Tool, r.in.Args, r.in.Undoes, r.in.Grant
	d.Intent, err = r.intent()
	return d, err
}

// claimOf returns a dispatch record of this attempt that claims the key and sends nothing.
func claimOf(key string, attempt int, class agent.Class, action agent.Digest) store.Dispatch {
	return store.Dispatch{
		Key: key, Attempt: attempt, Token: rand.Text(), Class: class, Action: action, At: now(), Revoked: true,
	}
}

// first sends an action that nobody has sent before, or that did nothing when it was. While nothing has left, it
// may try again itself: the record is its own. began is the moment of d.At by this machine's clocks.
func (r *toolRun) first(d store.Dispatch, began time.Time) (agent.ToolResult, error) {
	if err := failpoint.Effect(failpoint.ToolAfterDispatch, r.in.Undoes != ""); err != nil {
		return r.conclude(d, tool.Result{}, tool.Ambiguous(err))
	}
	for try := 1; ; try++ {
		if err := r.held(began); err != nil {
			return r.unsent(d, err)
		}
		out, err := r.send(began)
		if err == nil || tool.Meaning(err) != tool.OutcomeNotSent {
			return r.conclude(d, out, err)
		}
		wait := backoff(try)
		if r.spec.Class == agent.ClassIdempotent || try >= dialTries || time.Since(began)+wait > r.span() {
			return r.unsent(d, err)
		}
		_ = r.rest(wait) // its end is looked at before the next send
	}
}

// held says why an attempt that has recorded its dispatch must not send any more, nil if it may.
func (r *toolRun) held(began time.Time) error {
	switch {
	case r.stopping():
		return errStopping
	case r.ctx.Err() != nil:
		return errors.New("the attempt was cancelled before it could send")
	case late(r.span(), began, began.Round(0)):
		return errHeldUp
	}
	return nil
}

// errHeldUp is no trouble of the destination's: the action may be sent by another attempt, if that learns of it.
var errHeldUp = errors.New("the attempt was held up before it could send")

// span is how long after its dispatch record the attempt may still send.
func (r *toolRun) span() time.Duration { return min(r.spec.Timeout, maxSendBy) }

// reach is how long after its dispatch record any attempt may still send, whatever the record says.
func (r *toolRun) reach() time.Duration { return maxSendBy + r.unheld() }

// late says whether the time to send is over since a moment, by the monotonic clock or by the wall clock: a
// frozen machine may hold either of them still.
func late(span time.Duration, monotonic, wall time.Time) bool {
	return time.Since(monotonic) > span || now().Sub(wall) > span
}

// send runs the tool with a context that a cancellation does not end: what has left cannot be called back,
// so its outcome is waited for, at most for the tool's timeout. What has not left when the time to send is over stays.
func (r *toolRun) send(began time.Time) (tool.Result, error) {
	r.phase("running")
	answer := r.heed()
	gate := func() error {
		if err := r.held(began); err != nil {
			return err
		}
		return failpoint.AtErr(failpoint.ToolLastCheck)
	}
	ctx := failpoint.Sent(context.WithoutCancel(r.ctx), failpoint.ToolAfterSend)
	out, err := r.do(tool.WithGate(ctx, gate))
	r.stopped = answer()
	return out, err
}

// conclude turns what the tool said into the action's outcome.
func (r *toolRun) conclude(d store.Dispatch, out tool.Result, err error) (agent.ToolResult, error) {
	if err == nil {
		failpoint.EffectAt(failpoint.ToolAfterCommit, r.in.Undoes != "")
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
	if r.repeatable(d) && r.progress().Troubles < sendTries-1 {
		p := r.trouble()
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, pause(tool.RetryAfter(err), p.Troubles), "tool %q: %v", r.in.Tool, err)
	}
	switch {
	case !r.askable():
		return r.uncertain(d, err.Error()), nil
	case r.ctx.Err() != nil:
		return r.lastWord(d, err.Error())
	}
	r.trouble()
	return r.inquire(d, err.Error())
}

// repeatable says whether the same key may be sent again: the destination honours it for a window from the
// dispatch on, in which the next attempt must have arrived.
func (r *toolRun) repeatable(d store.Dispatch) bool {
	return r.spec.Class == agent.ClassIdempotent && r.latest().Add(r.spec.Timeout).Before(d.At.Add(r.spec.Window))
}

// unsent is for an attempt of which nothing has left. An idempotent action is tried again, and so is any that was held
// up, since the next attempt learns that nothing was sent; any is left to another worker when this one stops. One that
// another attempt may send is left to that, where there is one: to record here that nothing was done would take the
// action from it.
func (r *toolRun) unsent(d store.Dispatch, err error) (agent.ToolResult, error) {
	if r.stopping() {
		r.note(r.count)
		return agent.ToolResult{}, errStopping
	}
	if r.spec.Class != agent.ClassOnce && r.followed() {
		return agent.ToolResult{}, errFollowed
	}
	again := r.repeatable(d) || errors.Is(err, errHeldUp) && !r.unheard()
	if again && r.progress().Troubles < sendTries-1 && r.ctx.Err() == nil {
		p := r.note(func(p *Progress) {
			p.Troubles++
			r.count(p)
		})
		return agent.ToolResult{}, r.snap.retryable(agent.ErrTool, pause(tool.RetryAfter(err), p.Troubles), "tool %q: %v", r.in.Tool, err)
	}
	return r.nothingDone(d, fmt.Errorf("nothing was sent: %w", err))
}

// count notes that this attempt has sent nothing, for the next one.
func (r *toolRun) count(p *Progress) {
	p.Unsent = max(p.Unsent, r.clear)
	if p.Unsent == r.place {
		p.Unsent++
	}
}

// record keeps a final outcome under the action's key. A record that stands already wins; one that cannot
// be written changes nothing about what happened.
func (r *toolRun) record(own agent.ToolResult) agent.ToolResult {
	r.phase("recording the outcome")
	first, standing, err := keepResult(r.ctx, r.space, store.Result{
		Key: r.key, Tool: &own, Version: r.spec.Version, Policy: r.snap.Policy.Version(),
	})
	if err != nil {
		own.Note = joined(own.Note, "its record could not be written: "+cut(r.snap.Mask.String(err.Error()), maxWords))
		return own
	}
	failpoint.EffectAt(failpoint.ToolAfterAdoption, r.in.Undoes != "")
	res := own
	if !first && standing.Tool != nil {
		res = adopted(standing)
	}
	if res.State != own.State {
		res.Conflict = contradiction(own, res)
		r.contradict(own)
	}
	r.tellLate()
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
