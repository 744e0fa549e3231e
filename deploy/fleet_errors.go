package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// ErrNoDeployments reports a server, or a namespace of it, without worker deployments.
var ErrNoDeployments = errors.New("the server has no worker deployments for this namespace: they need Temporal 1.29 or newer with system.enableDeploymentVersions")

// A NoDeploymentError reports a worker deployment that is not there.
type NoDeploymentError struct {
	Deployment string
	Known      []string // those that are there, the first few
}

func (e *NoDeploymentError) Error() string {
	others := "there is none"
	if len(e.Known) > 0 {
		others = "there are: " + quoteAll(e.Known)
	}
	return fmt.Sprintf("no worker deployment %q (%s); a worker makes it when it first polls: holdfast worker --deployment %s", e.Deployment, others, e.Deployment)
}

// A NoBuildError reports a build that a deployment does not have.
type NoBuildError struct {
	Deployment, Build string
	Known             []string
}

func (e *NoBuildError) Error() string {
	others := "it has none"
	if len(e.Known) > 0 {
		others = "it has: " + quoteAll(e.Known)
	}
	return fmt.Sprintf("deployment %q has no build %q (%s); a build is there as soon as a worker of it polls", e.Deployment, e.Build, others)
}

// A SilentError reports a build that should take over work and of which no worker polls.
type SilentError struct {
	Build Build
}

func (e *SilentError) Error() string {
	last := "no worker of build %q polls, and the server remembers none"
	if !e.Build.Polled.IsZero() {
		last = "no worker of build %q polls: the last one did at " + e.Build.Polled.UTC().Format("15:04:05 on 2006-01-02") + " UTC"
	}
	return fmt.Sprintf(last+"; start its workers first, or use --force", e.Build.ID)
}

// An OtherBuildError reports that this program cannot say whether histories replay on a build, because it is another one.
type OtherBuildError struct {
	Build, Binary string
}

func (e *OtherBuildError) Error() string {
	return fmt.Sprintf("this program is build %q, so that it cannot tell whether histories replay on build %q; use the program of that build", e.Binary, e.Build)
}

// listedNames bounds how many names an error lists.
const listedNames = 20

func quoteAll(names []string) string {
	out := make([]string, 0, listedNames)
	for _, name := range names[:min(len(names), listedNames)] {
		out = append(out, fmt.Sprintf("%q", name))
	}
	if len(names) > listedNames {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

// explain says in our words what the server's error means for the deployment.
func (f Fleet) explain(ctx context.Context, err error) error {
	switch {
	case isAbsent(err):
		return ErrNoDeployments
	case isNotFound(err):
		return f.absent(ctx)
	}
	return err
}

// absent looks for the reason why the deployment is not there.
func (f Fleet) absent(ctx context.Context) error {
	e := &NoDeploymentError{Deployment: f.Deployment}
	e.Known, _ = f.Deployments(ctx) // what they are is no more than a help
	if len(e.Known) > 0 {
		return e
	}
	// A server that was told to have none says so of a version only (measured on 1.29.1).
	_, err := f.Client.WorkflowService().DescribeWorkerDeploymentVersion(ctx, &workflowservice.DescribeWorkerDeploymentVersionRequest{
		Namespace: f.Namespace, DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{DeploymentName: f.Deployment, BuildId: "none"},
	})
	if isAbsent(err) {
		return ErrNoDeployments
	}
	return e
}

// isAbsent says whether the server does not have the feature at all.
func isAbsent(err error) bool {
	var (
		unknown *serviceerror.Unimplemented
		denied  *serviceerror.PermissionDenied
	)
	return errors.As(err, &unknown) || errors.As(err, &denied) && strings.Contains(err.Error(), "Worker Deployment") && strings.Contains(err.Error(), "disabled")
}
