package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/grpc/codes"
)

// said returns what a worker logs about the routing of its build v2 of the deployment agents.
func said(t *testing.T, f *fakeTemporal, file string) string {
	t.Helper()
	f.namespace = "team"
	c, err := parseWith(nil, t.TempDir(), file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := &process{log: slog.New(slog.NewTextHandler(&out, nil)), client: connect(t, f), live: &live{}}
	p.live.now.Store(&force{config: c})
	p.status.Deployment, p.status.Build = "agents", "v2"
	p.sayRouting(t.Context())
	return out.String()
}

func TestAWorkerSaysOnceWhatReachesItsBuild(t *testing.T) {
	t.Parallel()
	const named = least + "worker: {deployment: agents}\n"
	at := func(build string) *deploymentpb.WorkerDeploymentVersion {
		return &deploymentpb.WorkerDeploymentVersion{DeploymentName: "agents", BuildId: build}
	}
	for name, tt := range map[string]struct {
		routing  *deploymentpb.RoutingConfig
		drainage enumspb.VersionDrainageStatus
		file     string
		want     string
	}{
		"current":    {&deploymentpb.RoutingConfig{CurrentDeploymentVersion: at("v2")}, 0, named, ""},
		"no current": {&deploymentpb.RoutingConfig{}, 0, named, "level=WARN msg=\"build v2 of deployment agents polls; there is no current build: nothing new reaches it until holdfast deploy promote v2\"\n"},
		"another":    {&deploymentpb.RoutingConfig{CurrentDeploymentVersion: at("v1")}, 0, named, "level=WARN msg=\"build v2 of deployment agents polls; the current build is v1: nothing new reaches it until holdfast deploy promote v2\"\n"},
		"by a flag":  {&deploymentpb.RoutingConfig{CurrentDeploymentVersion: at("v1")}, 0, least, "until holdfast deploy promote v2 --deployment agents\"\n"},
		"ramp": {
			&deploymentpb.RoutingConfig{CurrentDeploymentVersion: at("v1"), RampingDeploymentVersion: at("v2"), RampingVersionPercentage: 12.5}, 0, named,
			"level=INFO msg=\"build v2 of deployment agents polls; the current build is v1: 12.5% of what is new reaches it, all of it after holdfast deploy promote v2\"\n",
		},
		"ramp of nothing": {
			&deploymentpb.RoutingConfig{CurrentDeploymentVersion: at("v1"), RampingDeploymentVersion: at("v2")}, 0, named, "nothing new reaches it until",
		},
		"old": {
			&deploymentpb.RoutingConfig{CurrentDeploymentVersion: at("v3")}, enumspb.VERSION_DRAINAGE_STATUS_DRAINING, named,
			"level=INFO msg=\"build v2 of deployment agents polls; the current build is v3: what began on this one ends on it, and nothing new reaches it\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeTemporal{unseen: 2, deployment: &deploymentpb.WorkerDeploymentInfo{
				Name: "agents", RoutingConfig: tt.routing,
				VersionSummaries: []*deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary{{DeploymentVersion: at("v2"), DrainageStatus: tt.drainage}},
			}}
			got := said(t, f, tt.file)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) || strings.Count(got, "\n") > 1 {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAServerThatTellsNothingAboutDeploymentsIsNoTrouble(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]string{
		codes.Unimplemented:    "has no worker deployments; start the worker without one",
		codes.PermissionDenied: "not for you",
	} {
		got := said(t, &fakeTemporal{deny: code}, least)
		if !strings.Contains(got, "level=WARN") || !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: it says %q", code, got)
		}
	}
}

func TestAnUnversionedWorkerAsksNothing(t *testing.T) {
	t.Parallel()
	(&process{}).sayRouting(t.Context()) // without a client it would panic
}
