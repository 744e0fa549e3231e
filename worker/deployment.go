package worker

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/versioning"
)

// NoDeployment leaves a worker unversioned whatever the file says: see [Options.Deployment].
const NoDeployment = "off"

var (
	deploymentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	buildName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~@=-]{0,127}$`)
)

// CheckDeployment says why name cannot be that of a worker deployment. Temporal puts a dot or a colon between it and a
// build id; the rest would be trouble in a shell and in a search.
func CheckDeployment(name string) error {
	if name == NoDeployment || !deploymentName.MatchString(name) {
		return fmt.Errorf("%q cannot name a deployment; use 1 to 63 letters, digits, underscores and hyphens, a letter or digit first, and not %q", clip(name), NoDeployment)
	}
	return nil
}

// CheckBuild says why id cannot be a build id. The server takes nearly anything, and never registers one that begins
// with "__", without a word; but builds are named in commands, searches and URLs.
func CheckBuild(id string) error {
	if !buildName.MatchString(id) {
		return fmt.Errorf("%q cannot be a build id; use 1 to 128 letters, digits and . _ - + ~ @ =, a letter or digit first", clip(id))
	}
	return nil
}

// version returns what this worker is to Temporal: a build, of a deployment or, without a name, of none.
func (o Options) version(c *Config) (v worker.WorkerDeploymentVersion, err error) {
	v.DeploymentName = cmp.Or(o.Deployment, c.Worker.Deployment)
	if v.DeploymentName == NoDeployment {
		v.DeploymentName = ""
	}
	v.BuildID = cmp.Or(o.Build, BuildID())
	if err = CheckBuild(v.BuildID); err != nil || v.DeploymentName == "" {
		return v, err
	}
	if v.BuildID == unknownBuild {
		return v, errors.New("this program cannot tell which build it is, and two of one id would be one build to Temporal; name it with --build-id, or Options.Build")
	}
	return v, CheckDeployment(v.DeploymentName)
}

// claim makes o those of a worker that polls as v.
func claim(o *worker.Options, v worker.WorkerDeploymentVersion) {
	o.PreferredVersionProvider = prefer
	if v.DeploymentName == "" {
		// Without it the SDK puts a checksum of the executable, twice as long, into half of all events.
		o.BuildID = v.BuildID //nolint:staticcheck // what follows it is for workers of a deployment
		return
	}
	o.DeploymentOptions = worker.DeploymentOptions{
		UseVersioning: true, Version: v,
		// Each workflow says its own when it is registered; one that does not shall stay where it began.
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
	}
}

// prefer lets new runs take the change number that this release prefers: workers of the one before, which run beside
// this one during a rollout, go on with it.
func prefer(in worker.PreferredVersionProviderInput) *worker.VersionPreference {
	number, ok := versioning.Prefer(in.ChangeID)
	if !ok {
		return nil
	}
	return &worker.VersionPreference{Version: workflow.Version(number)}
}
