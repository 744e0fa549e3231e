package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// A Ramp is what [Fleet.Ramp] did.
type Ramp struct {
	Deployment string  `json:"deployment"`
	Build      string  `json:"build"`
	Current    string  `json:"current,omitempty"`
	Before     float32 `json:"before"` // percent of the build's ramp, 0 if it had none
	Percent    float32 `json:"percent"`
	// Gaps are change numbers that runs on the build take and the current one does not understand: those that have
	// crossed cannot come back.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Ramp lets a share of new runs, and of the next tasks of sessions that are not held anywhere, go to a build; 0 percent
// takes that away. Temporal chooses by a hash of the workflow id. That hash is a turn's own, so that turns of one session
// are on both builds. Force ramps a build of which no worker polls.
func (f Fleet) Ramp(ctx context.Context, build string, percent float32, force bool) (*Ramp, error) {
	if !(percent >= 0 && percent <= 100) { // nor no number
		return nil, fmt.Errorf("a ramp of %v percent: want 0 to 100", percent)
	}
	d, err := f.Describe(ctx)
	if err != nil {
		return nil, err
	}
	b, err := d.Build(build)
	if err != nil {
		return nil, err
	}
	r := &Ramp{Deployment: f.Deployment, Build: build, Current: d.Current, Before: b.Percent, Percent: percent, Gaps: d.gapsTo(b)}
	if percent > 0 && !force {
		b = f.await(ctx, b)
	}
	if done, err := d.mayRamp(b, percent, force); done || err != nil {
		return r, err
	}
	o := client.WorkerDeploymentSetRampingVersionOptions{
		BuildID: build, Percentage: percent, IgnoreMissingTaskQueues: force, AllowNoPollers: force,
	}
	if percent == 0 {
		o.BuildID = ""
	}
	return r, f.change(ctx, d.token, func(token []byte) error {
		o.ConflictToken = token
		_, err := f.Client.WorkerDeploymentClient().GetHandle(f.Deployment).SetRampingVersion(ctx, o)
		return err
	}, func(d *Deployment) bool { return d.Ramping == o.BuildID && d.Percent == percent })
}

// change changes what a deployment does. A server that was slow may have done it although it did not say so in time: then
// it is looked at, and tried again if it was not done.
func (f Fleet) change(ctx context.Context, token []byte, do func(token []byte) error, done func(*Deployment) bool) error {
	for attempt := 1; ; attempt++ {
		err := do(token)
		if !isOutage(err) || ctx.Err() != nil || attempt == changeAttempts {
			return f.explainChange(ctx, err)
		}
		d, err := f.describe(ctx, func(Build) bool { return false })
		if err != nil || done(d) {
			return err
		}
		token = d.token
	}
}

// changeAttempts is how often a change is asked for; the SDK gives each up to 10 seconds.
const changeAttempts = 3

// mayRamp says whether there is nothing to do, or why it cannot be done.
func (d *Deployment) mayRamp(b Build, percent float32, force bool) (done bool, err error) {
	switch {
	case b.ID == d.Current && percent == 0:
		return true, nil
	case b.ID == d.Current:
		return false, fmt.Errorf("build %q is current: it takes all already; name the build that comes after it", b.ID)
	case percent == 0 && b.ID != d.Ramping && d.Ramping != "":
		return false, fmt.Errorf("build %q does not ramp, build %q does; name that one", b.ID, d.Ramping)
	case b.Percent == percent && (percent == 0 || b.ID == d.Ramping):
		return b.ID != d.Ramping || percent != 0, nil
	case percent > 0 && !b.Polls() && !force:
		return false, &SilentError{Build: b}
	case percent > 0 && !force:
		return false, d.apart(b)
	}
	return false, nil
}

// gapsTo returns what runs that cross to a build take with them that the current build does not understand.
func (d *Deployment) gapsTo(b Build) []Gap {
	now, err := d.Build(d.Current)
	if err != nil || now.ID == b.ID {
		return nil
	}
	return gaps(b.Table, now.Table)
}

// ErrChanged reports that a deployment was changed while this was about to change it.
var ErrChanged = errors.New("the deployment was changed by somebody else at this moment, or a new build joined it; look at it and try again")

// explainChange says in our words why the server did not change what a deployment does.
func (f Fleet) explainChange(ctx context.Context, err error) error {
	var failed *serviceerror.FailedPrecondition
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && strings.Contains(failed.Error(), "conflict token"):
		return ErrChanged
	case errors.As(err, &failed):
		return fmt.Errorf("the server refuses: %w; if it is for missing workers or task queues, --force overrides that", err)
	case isNotFound(err):
		return fmt.Errorf("the server does not know the build: %w", err)
	}
	return f.explain(ctx, err)
}
