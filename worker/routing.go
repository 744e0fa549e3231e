package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

const (
	// registerWithin is how long the server may take to list a build whose first poll it has seen: about a second.
	registerWithin = 30 * time.Second
	// registerAgain is the first wait before it is asked again; each one is twice as long.
	registerAgain = 200 * time.Millisecond
)

// sayRouting logs once how work reaches this build, if not all of it does: a worker that polls and gets nothing looks
// like one that is broken. It only looks, so whatever goes wrong is logged and no more.
func (p *process) sayRouting(ctx context.Context) {
	v := worker.WorkerDeploymentVersion{DeploymentName: p.status.Deployment, BuildID: p.status.Build}
	if v.DeploymentName == "" {
		return
	}
	info, err := findBuild(ctx, p.client, v)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.log.Warn(fmt.Sprintf("whether work reaches build %s of deployment %s cannot be said: %v", v.BuildID, v.DeploymentName, err))
	default:
		if level, text := routing(info, v, p.promote(v)); text != "" {
			p.log.Log(ctx, level, text)
		}
	}
}

// promote is the command that makes v the current build; deploy looks for the deployment in the file.
func (p *process) promote(v worker.WorkerDeploymentVersion) string {
	command := "holdfast deploy promote " + v.BuildID
	if p.live.config().Worker.Deployment != v.DeploymentName {
		command += " --deployment " + v.DeploymentName
	}
	return command
}

// findBuild describes the deployment of v as soon as the server lists v.
func findBuild(ctx context.Context, c client.Client, v worker.WorkerDeploymentVersion) (client.WorkerDeploymentInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, registerWithin)
	defer cancel()
	for wait := registerAgain; ; wait *= 2 {
		d, err := c.WorkerDeploymentClient().GetHandle(v.DeploymentName).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
		var none *serviceerror.Unimplemented
		switch {
		case errors.As(err, &none):
			return d.Info, errors.New("this Temporal server has no worker deployments; start the worker without one")
		case isRefusal(err):
			return d.Info, err
		case err == nil && slices.ContainsFunc(d.Info.VersionSummaries, func(s client.WorkerDeploymentVersionSummary) bool { return s.Version == v }):
			return d.Info, nil
		case err == nil:
			err = fmt.Errorf("the server does not list it among %d builds; see holdfast deploy status", len(d.Info.VersionSummaries))
		}
		select {
		case <-ctx.Done():
			return client.WorkerDeploymentInfo{}, err
		case <-time.After(wait):
		}
	}
}

// routing says, for the log, what of a deployment's work reaches v; nothing if all that is new does. promote is the
// command that makes it so.
func routing(info client.WorkerDeploymentInfo, v worker.WorkerDeploymentVersion, promote string) (level slog.Level, text string) {
	r := info.RoutingConfig
	if r.CurrentVersion != nil && *r.CurrentVersion == v {
		return slog.LevelInfo, ""
	}
	current := "there is no current build"
	if r.CurrentVersion != nil {
		current = "the current build is " + r.CurrentVersion.BuildID
	}
	text = fmt.Sprintf("build %s of deployment %s polls; %s: ", v.BuildID, v.DeploymentName, current)
	switch {
	case r.RampingVersion != nil && *r.RampingVersion == v && r.RampingVersionPercentage > 0:
		return slog.LevelInfo, text + fmt.Sprintf("%g%% of what is new reaches it, all of it after %s", r.RampingVersionPercentage, promote)
	case served(info, v):
		return slog.LevelInfo, text + "what began on this one ends on it, and nothing new reaches it"
	}
	return slog.LevelWarn, text + "nothing new reaches it until " + promote
}

// served says whether v was the current build, or a ramp led to it, and no more.
func served(info client.WorkerDeploymentInfo, v worker.WorkerDeploymentVersion) bool {
	return slices.ContainsFunc(info.VersionSummaries, func(s client.WorkerDeploymentVersionSummary) bool {
		return s.Version == v && s.DrainageStatus != client.WorkerDeploymentVersionDrainageStatusUnspecified
	})
}
