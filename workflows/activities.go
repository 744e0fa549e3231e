package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// Bounds of the activities. Attempts are not limited: an attempt that a dead worker took along says nothing
// about the call, and what a destination's trouble means is decided in the activity.
const (
	localTimeout = 10 * time.Second // of one attempt of a local activity
	localTries   = 3                // then the same work goes to any worker, as an ordinary activity
	// attemptGrace is what an attempt may take beyond the call itself: reading the transcript, and
	// writing the answer down.
	attemptGrace = time.Minute
	// recoverTimeout bounds one attempt to learn a turn's end; the turn may still be running.
	recoverTimeout = time.Hour
	// defaultHeartbeat is used before a turn has learnt its worker's configuration.
	defaultHeartbeat = 10 * time.Second
)

// retry is for attempts that ended without a word, such as a dead worker's: an attempt that knows what the
// trouble is says itself when to try again.
var retry = temporal.RetryPolicy{
	InitialInterval:    time.Second,
	BackoffCoefficient: 2,
	MaximumInterval:    10 * time.Second,
}

// local runs a short, idempotent activity inside the workflow task, which costs one event instead of six. If
// this worker cannot do it (its store is another one, its configuration too old), any worker may.
func local(ctx workflow.Context, name, summary string, in, out any) error {
	policy := retry
	policy.MaximumAttempts = localTries
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: localTimeout, RetryPolicy: &policy, Summary: summary,
	}), name, in).Get(ctx, out)
	if err == nil || temporal.IsCanceledError(err) || isPermanent(err) {
		return err
	}
	return ordinary(ctx, name, summary, time.Minute, in, out)
}

// ordinary runs an activity on any worker of the task queue, for as long as it takes.
func ordinary(ctx workflow.Context, name, summary string, timeout time.Duration, in, out any) error {
	return attempted(ctx, name, summary, timeout, 0, in, out)
}

// maxAsks bounds how often a destination is asked for a word that may come by itself.
const maxAsks = 5

// bounded is ordinary, but given up after a few attempts.
func bounded(ctx workflow.Context, name, summary string, in, out any) error {
	return attempted(ctx, name, summary, attemptGrace, maxAsks, in, out)
}

// attempted runs an activity with so many attempts of that length; 0 is no bound.
func attempted(ctx workflow.Context, name, summary string, timeout time.Duration, tries int32, in, out any) error {
	policy := retry
	policy.MaximumAttempts = tries
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout, HeartbeatTimeout: defaultHeartbeat, RetryPolicy: &policy,
		WaitForCancellation: true, Summary: summary,
	}), name, in).Get(ctx, out)
}

// isPermanent says whether no worker can do better.
func isPermanent(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.NonRetryable() && app.Type() != agent.ErrWrongStore && app.Type() != agent.ErrStaleConfig
}

func (t *turn) modelContext(ctx workflow.Context) workflow.Context {
	policy := retry
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: t.st.Open.Attempt.Std() + attemptGrace,
		HeartbeatTimeout:    t.st.Open.Heartbeat.Std(),
		RetryPolicy:         &policy,
		WaitForCancellation: true,
		Summary:             fmt.Sprintf("model: %s step %d", t.st.Open.Model, t.st.Step),
	})
}

func (t *turn) toolContext(ctx workflow.Context, c agent.Call) workflow.Context {
	policy := retry
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		// An attempt may have to wait for an earlier one that still runs, then take its own time.
		StartToCloseTimeout: 2*c.Timeout.Std() + 2*attemptGrace,
		HeartbeatTimeout:    t.st.Open.ToolHeartbeat.Std(),
		RetryPolicy:         &policy,
		WaitForCancellation: true,
		Summary:             "tool: " + c.Summary,
	})
}

// reasonOf says what an activity's error means for the turn.
func reasonOf(err error) agent.Reason {
	if temporal.IsCanceledError(err) {
		return agent.Reason{Type: agent.ErrCancelled, Message: "cancelled"}
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() != "" {
		return agent.Reason{Type: app.Type(), Message: app.Message()}
	}
	return agent.Reason{Type: agent.ErrInternal, Message: err.Error()}
}
