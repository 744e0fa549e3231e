package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

const (
	askTries = 4                // of a destination that does not know, or does not answer
	askFor   = 20 * time.Second // of one question
	// lastWords is how long the destination may be asked by an attempt that nobody waits for, or that only
	// finds out.
	lastWords = 25 * time.Second
)

// Words for a person on how an outcome is known.
const (
	evidenceFound  = "found by asking the destination"
	evidenceAbsent = "the destination was asked and has nothing of it"
)

// askable says whether the destination can be asked what became of the action.
func (r *toolRun) askable() bool {
	if r.tool == nil || r.spec.Class == agent.ClassRead {
		return false
	}
	_, ok := tool.AsReconciler(r.tool)
	return ok
}

// inquire asks the destination what became of an action that may have been sent. Found is committed, whatever
// authority says now. Absence proves nothing before the last moment at which anybody may have sent, and the delay
// that the tool declares; it is asked until then. why is what is known without asking.
func (r *toolRun) inquire(standing store.Dispatch, why string) (agent.ToolResult, error) {
	r.phase("asking the destination what became of it")
	for unknown, try := 0, 1; ; try++ {
		place, sendBy, err := r.places(standing)
		if err != nil {
			return agent.ToolResult{}, r.snap.storeTrouble(r.ctx, "reading the dispatches of "+r.key, err)
		}
		at, wait := r.clock(), backoff(try)
		left := sendBy.Add(r.spec.AbsentAfter).Sub(at)
		switch finding, out, said := r.ask(); {
		case r.ctx.Err() != nil:
			return agent.ToolResult{}, r.ctx.Err()
		case finding == tool.Found:
			return r.found(standing, out), nil
		case finding == tool.Absent && left < 0:
			return r.absent(standing, place)
		case finding == tool.Absent:
			wait, why = min(wait, left+time.Millisecond), fmt.Sprintf("the destination has nothing of it, which proves something in %s", left)
		case unknown+1 >= askTries:
			return r.undecided(standing, joined(why, said))
		default:
			unknown++
		}
		if r.only && left > lastWords {
			return r.undecided(standing, why)
		}
		if err := r.spare(wait, left); err != nil {
			return agent.ToolResult{}, err
		}
	}
}

// places returns the first free place of those who may send, and until when one of those before may.
func (r *toolRun) places(standing store.Dispatch) (free int, sendBy time.Time, err error) {
	sendBy = standing.SendBy
	if sendBy.IsZero() {
		sendBy = standing.At.Add(r.reach())
	}
	for free = 1; free <= maxAgain; free++ {
		d, err := r.space.Dispatch(r.ctx, r.placeKey(free))
		switch {
		case unreadable(err):
			if r.unread.IsZero() {
				r.unread = r.clock().Add(r.reach())
			}
			d.SendBy = r.unread
		case err != nil && definite(err), err == nil && d.Revoked:
			return free, sendBy, nil
		case err != nil:
			return 0, sendBy, err
		}
		if d.SendBy.After(sendBy) {
			sendBy = d.SendBy
		}
	}
	return free, sendBy, nil
}

// ask asks once; said is what to tell when the answer is Unknown.
func (r *toolRun) ask() (finding tool.Finding, out tool.Result, said string) {
	asks, ok := tool.AsReconciler(r.tool)
	if !ok {
		return tool.Unknown, out, "it cannot be asked"
	}
	type answer struct {
		finding tool.Finding
		out     tool.Result
	}
	a, err := within(r.ctx, min(r.spec.Timeout, askFor), 0, func(ctx context.Context) (answer, error) {
		f, out, err := asks.Reconcile(ctx, r.call())
		return answer{f, out}, err
	})
	switch {
	case err != nil:
		return tool.Unknown, out, "the destination could not be asked: " + err.Error()
	case a.finding == tool.Found || a.finding == tool.Absent:
		return a.finding, a.out, ""
	}
	return tool.Unknown, out, "the destination does not know"
}

// spare sleeps for wait. An attempt that has no time for that, and for what comes after, ends and is tried again
// when the absence proves something.
func (r *toolRun) spare(wait, left time.Duration) error {
	if end, ok := r.ctx.Deadline(); ok && !r.only && time.Until(end) < wait+r.spec.Timeout+keepFor {
		return r.snap.retryable(agent.ErrTool, max(left, time.Second), "tool %q: the destination is asked again later", r.in.Tool)
	}
	return r.rest(wait)
}

// found is for an action that the destination knows of.
func (r *toolRun) found(standing store.Dispatch, out tool.Result) agent.ToolResult {
	res, _ := r.told(out, nil) // it has happened, whether its result can be stored or not
	res.Attempt, res.Evidence = max(standing.Attempt, 1), evidenceFound
	res.Note = joined(res.Note, evidenceFound)
	return r.record(res)
}

// absent is for an action of which it is proven that the attempts at the places before have done nothing.
func (r *toolRun) absent(standing store.Dispatch, place int) (agent.ToolResult, error) {
	if r.only || r.spec.Class == agent.ClassOnce {
		return r.shut(standing, place, evidenceAbsent)
	}
	return r.resume(standing, place)
}

// undecided is for an action of which the destination cannot say what became of it.
func (r *toolRun) undecided(standing store.Dispatch, why string) (agent.ToolResult, error) {
	if r.only {
		return r.uncertain(standing, why), nil
	}
	return r.await(standing, why)
}

// lastWord asks on behalf of an attempt that has ended, and sends nothing more.
func (r *toolRun) lastWord(d store.Dispatch, why string) (agent.ToolResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), lastWords)
	defer cancel()
	q := *r
	q.only, q.pulse, q.attempted = true, r.quiet(ctx), r.pulse
	res, err := q.inquire(d, why)
	if err != nil {
		return r.uncertain(d, why), nil // the store is in trouble, or there was no more time
	}
	return res, nil
}
