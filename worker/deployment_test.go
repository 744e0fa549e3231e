package worker

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

func TestNamesThatTemporalOrAShellWouldTripOverAreRefused(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "support-agents_2": true, strings.Repeat("a", 63): true,
		"": false, "off": false, "a.b": false, "a:b": false, "-a": false, "__a": false, "a b": false, "ä": false, strings.Repeat("a", 64): false, "a\n": false,
	} {
		if err := CheckDeployment(name); (err == nil) != ok {
			t.Errorf("deployment %q: %v", name, err)
		}
	}
	for id, ok := range map[string]bool{
		"v1": true, "0123456789ab": true, "v1.2.3-0.20260102030405-0123456789ab+dirty": true, "dev-0123456789ab": true, "a_b~c@d=e": true, strings.Repeat("a", 128): true,
		"": false, "v1:2": false, "a/b": false, "a b": false, "it's": false, `"`: false, "__v1": false, "-v1": false, ".v1": false, "vä": false, "v1\n": false, strings.Repeat("a", 129): false,
	} {
		if err := CheckBuild(id); (err == nil) != ok {
			t.Errorf("build %q: %v", id, err)
		}
	}
	if err := CheckBuild(BuildID()); err != nil {
		t.Errorf("what a program is called by itself: %v", err)
	}
}

func TestOptionsOverrideTheFilesDeployment(t *testing.T) {
	t.Parallel()
	const filed = least + "worker: {deployment: filed}\n"
	for _, tt := range []struct {
		name, file string
		o          Options
		want       worker.WorkerDeploymentVersion
		err        string
	}{
		{"none", least, Options{Build: "v1"}, worker.WorkerDeploymentVersion{BuildID: "v1"}, ""},
		{"the file's", filed, Options{Build: "v1"}, worker.WorkerDeploymentVersion{DeploymentName: "filed", BuildID: "v1"}, ""},
		{"another", filed, Options{Build: "v1", Deployment: "other"}, worker.WorkerDeploymentVersion{DeploymentName: "other", BuildID: "v1"}, ""},
		{"none after all", filed, Options{Build: "v1", Deployment: NoDeployment}, worker.WorkerDeploymentVersion{BuildID: "v1"}, ""},
		{"a build by itself", filed, Options{}, worker.WorkerDeploymentVersion{DeploymentName: "filed", BuildID: BuildID()}, ""},
		{"no name", least, Options{Build: "v1", Deployment: "a.b"}, worker.WorkerDeploymentVersion{}, "cannot name a deployment"},
		{"no build", least, Options{Build: "v:1"}, worker.WorkerDeploymentVersion{}, "cannot be a build id"},
		{"any build", filed, Options{Build: unknownBuild}, worker.WorkerDeploymentVersion{}, "name it with --build-id"},
	} {
		c, err := parseWith(nil, t.TempDir(), tt.file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tt.o.version(c)
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: error is %v, want %q in it", tt.name, err, tt.err)
		}
	}
}

func TestAWorkerWithoutADeploymentIsNotVersioned(t *testing.T) {
	t.Parallel()
	var o worker.Options
	claim(&o, worker.WorkerDeploymentVersion{BuildID: "v1"})
	if o.BuildID != "v1" || o.DeploymentOptions.UseVersioning || o.PreferredVersionProvider == nil { //nolint:staticcheck // it is what is looked at
		t.Errorf("options: %+v", o)
	}
	var d worker.Options
	v := worker.WorkerDeploymentVersion{DeploymentName: "agents", BuildID: "v1"}
	claim(&d, v)
	want := worker.DeploymentOptions{UseVersioning: true, Version: v, DefaultVersioningBehavior: workflow.VersioningBehaviorPinned}
	if d.BuildID != "" || d.DeploymentOptions != want || d.PreferredVersionProvider == nil { //nolint:staticcheck // the version says it
		t.Errorf("options: %+v", d)
	}
}

func TestNewRunsTakeTheNumberThatThisReleasePrefers(t *testing.T) {
	t.Parallel()
	for _, w := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
		got := prefer(worker.PreferredVersionProviderInput{ChangeID: versioning.ChangeID(w)})
		if got == nil || got.Version != workflow.Version(versioning.Bounds(w).Preferred) {
			t.Errorf("%s: %+v", w, got)
		}
	}
	if got := prefer(worker.PreferredVersionProviderInput{ChangeID: "somebody-elses"}); got != nil {
		t.Errorf("a change that is not ours: %+v", got)
	}
}
