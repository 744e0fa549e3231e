package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// tellLate makes an outcome known that came after its attempt was given up: nobody takes the activity's result any
// more. The turn, or the session when the turn has ended, is told the key alone and reads the record. An attempt
// that still counts tells nothing: its result is the word.
func (r *toolRun) tellLate() {
	if !r.unheard() {
		return
	}
	r.phase("telling the turn of a late outcome")
	turn := r.turn
	if turn == "" {
		turn = agent.TurnID(r.in.Session, r.in.Turn)
	}
	if told := r.settle(turn); !told {
		_ = r.settle(r.in.Session)
	}
}

// unheard says whether nobody takes the result of this attempt, or of the one that it finds out for.
func (r *toolRun) unheard() bool {
	if r.only && r.attempted == nil {
		return false
	}
	p := r.owner()
	return p.givenUp() || (p.cancelled() || p.old()) && !r.awaited(p)
}

// owner is the attempt that a run is of, or finds out for.
func (r *toolRun) owner() *pulse {
	if r.attempted != nil {
		return r.attempted
	}
	return r.pulse
}

// awaited asks the server whether it still waits for an attempt that may not know: a cancelled one does not hear any more
// that its heartbeat was refused, and one that was cut off has not heard it yet.
func (r *toolRun) awaited(p *pulse) bool {
	if len(p.token) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), keepGrace)
	defer cancel()
	err := r.Client.RecordActivityHeartbeat(ctx, p.token, p.progress())
	return err == nil || temporal.IsCanceledError(err)
}

// followed says whether the server has given this attempt up and another one of the same activity goes on with the
// action: that one finds out for itself what was sent, and sends what was not. Where the server cannot be asked there
// may be none.
func (r *toolRun) followed() bool {
	if !r.givenUp() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), keepGrace)
	defer cancel()
	d, err := r.Client.DescribeWorkflow(ctx, r.turn, r.runID)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(d.RawResponse.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
		return a.GetActivityId() == r.id && int(a.GetAttempt()) > r.attempt
	})
}

// errFollowed ends an attempt that nobody waits for and that has sent nothing.
var errFollowed = errors.New("the attempt was given up before it could send: another one goes on")

// tellFor is how long a server that cannot be reached is told of a late outcome. Nobody waits for the attempt any more.
const tellFor = 15 * time.Minute

// settle signals a workflow; false when it has ended. A signal that is lost leaves the effect as it was: uncertain,
// and to be settled by asking again.
func (r *toolRun) settle(workflow string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), tellFor)
	defer cancel()
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		last := r.owner().stopping() // then the worker waits for it
		err := r.Client.SignalWorkflow(ctx, workflow, "", agent.SignalSettle, agent.Settlement{Key: r.key})
		var gone *serviceerror.NotFound
		switch {
		case errors.As(err, &gone):
			return false
		case err == nil || last || r.pauses(ctx, wait):
			return true
		}
	}
}

// pauses sleeps for a while, or until the worker stops. It returns true when ctx has ended.
func (r *toolRun) pauses(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(jitter(wait))
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.owner().stops:
	case <-ctx.Done():
	}
	return ctx.Err() != nil
}

// Beside the record of an outcome stands, under lateKey, what a given-up attempt saw that contradicts it.
func lateKey(key string) string { return key + "/late" }

// contradict keeps an outcome of this attempt that contradicts the one on record, if its attempt was given up: else
// its result says so.
func (r *toolRun) contradict(own agent.ToolResult) {
	if !r.unheard() {
		return
	}
	_, _, _ = keepResult(r.ctx, r.space, store.Result{Key: lateKey(r.key), Tool: &own})
}

// contradicted says in what a late outcome contradicts the one on record, "" if none does.
func contradicted(ctx context.Context, space *store.Space, key string, res agent.ToolResult) (string, error) {
	rec, err := space.Result(ctx, lateKey(key))
	switch {
	case errors.Is(err, store.ErrAbsent):
		return res.Conflict, nil
	case unreadable(err) || err == nil && rec.Tool == nil:
		return "a late outcome was recorded and cannot be read", nil
	case err != nil:
		return "", err
	}
	return contradiction(*rec.Tool, res), nil
}

func contradiction(own, standing agent.ToolResult) string {
	return fmt.Sprintf("attempt %d saw %s, the record of attempt %d says %s", own.Attempt, own.State, standing.Attempt, standing.State)
}
