package starter

import (
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
)

func version(build string) *deploymentpb.WorkerDeploymentVersion {
	return &deploymentpb.WorkerDeploymentVersion{DeploymentName: "agents", BuildId: build}
}

// polled is a task queue that workers polled so long ago; build "" is an unversioned one.
func polled(current string, ago map[string]time.Duration, now time.Time) *pollers {
	d := &workflowservice.DescribeTaskQueueResponse{VersioningInfo: &taskqueuepb.TaskQueueVersioningInfo{}}
	if current != "" {
		d.VersioningInfo.CurrentDeploymentVersion = version(current)
	}
	for build, since := range ago {
		p := &taskqueuepb.PollerInfo{LastAccessTime: timestamppb.New(now.Add(-since))}
		if build != "" {
			p.DeploymentOptions = &deploymentpb.WorkerDeploymentOptions{
				DeploymentName: "agents", BuildId: build, WorkerVersioningMode: enumspb.WORKER_VERSIONING_MODE_VERSIONED,
			}
		}
		d.Pollers = append(d.Pollers, p)
	}
	p := &pollers{last: map[string]time.Time{}}
	p.add(d)
	return p
}

func TestARunIsHeldByTheBuildThatNobodyPollsFor(t *testing.T) {
	t.Parallel()
	now := time.Now()
	pinned := placement{"agents", "v1", true}
	auto := placement{"agents", "v1", false}
	const long = 2 * deploy.PollsWithin
	for name, c := range map[string]struct {
		run      placement
		current  string
		ago      map[string]time.Duration
		missing  string // the build
		unrouted bool
	}{
		"pinned, and its build polls":                      {pinned, "v2", map[string]time.Duration{"v1": time.Second, "v2": time.Second}, "", false},
		"pinned, and only another build polls":             {pinned, "v2", map[string]time.Duration{"v2": time.Second}, "v1", false},
		"pinned, and its build polled long ago":            {pinned, "v2", map[string]time.Duration{"v1": long, "v2": time.Second}, "v1", false},
		"pinned, and its poll is held open":                {pinned, "v2", map[string]time.Duration{"v1": time.Minute}, "", false},
		"goes on with the current build, which polls":      {auto, "v2", map[string]time.Duration{"v2": time.Second}, "", false},
		"goes on with the current build, which is gone":    {auto, "v2", map[string]time.Duration{"v1": time.Second}, "v2", false},
		"unversioned, and the current build is gone":       {placement{}, "v2", map[string]time.Duration{"": time.Second}, "v2", false},
		"unversioned, and only builds poll, none current":  {placement{}, "", map[string]time.Duration{"v1": time.Second}, "", true},
		"unversioned, and an unversioned worker polls":     {placement{}, "", map[string]time.Duration{"": time.Second, "v1": time.Second}, "", false},
		"nobody has ever polled, and no build is involved": {placement{}, "", nil, "", false},
	} {
		p := polled(c.current, c.ago, now)
		at, _, ok := p.missing(c.run, now, deploy.PollsWithin)
		if at.build != c.missing || ok != (c.missing != "") || p.unrouted(c.run, now) != c.unrouted {
			t.Errorf("%s: missing %q, unrouted %v", name, at.build, p.unrouted(c.run, now))
		}
	}
}

func TestAnOverrideCountsBeforeTheRunsOwnBuild(t *testing.T) {
	t.Parallel()
	own := &workflowpb.WorkflowExecutionVersioningInfo{Behavior: enumspb.VERSIONING_BEHAVIOR_PINNED, DeploymentVersion: version("v1")}
	over := &workflowpb.WorkflowExecutionVersioningInfo{
		Behavior: enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE, DeploymentVersion: version("v1"),
		VersioningOverride: &workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_Pinned{
			Pinned: &workflowpb.VersioningOverride_PinnedOverride{Version: version("v2")},
		}},
	}
	free := &workflowpb.WorkflowExecutionVersioningInfo{
		Behavior: enumspb.VERSIONING_BEHAVIOR_PINNED, DeploymentVersion: version("v1"),
		VersioningOverride: &workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_AutoUpgrade{AutoUpgrade: true}},
	}
	for _, c := range []struct {
		v    *workflowpb.WorkflowExecutionVersioningInfo
		want placement
	}{
		{nil, placement{}}, {own, placement{"agents", "v1", true}}, {over, placement{"agents", "v2", true}}, {free, placement{"agents", "v1", false}},
	} {
		if got := placementOf(&workflowpb.WorkflowExecutionInfo{VersioningInfo: c.v}); got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

// What a run is told to go on with has to be something that it can go on with.
func TestTheAdviceForABuildThatIsGoneIsOneThatHelpsTheRun(t *testing.T) {
	t.Parallel()
	pinned := &workflowpb.WorkflowExecutionVersioningInfo{Behavior: enumspb.VERSIONING_BEHAVIOR_PINNED, DeploymentVersion: version("v1")}
	name, err := converter.GetDefaultDataConverter().ToPayload("careful")
	if err != nil {
		t.Fatal(err)
	}
	turn := &workflowpb.WorkflowExecutionInfo{
		VersioningInfo:   pinned,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{agent.AttributeAgent: name}},
	}
	const start, tools, drain = "holdfast worker --deployment agents --build-id v1", "still declares its tools as they were, serial 7 or later", "holdfast deploy drain v1 --move"
	for label, c := range map[string]struct {
		info      *workflowpb.WorkflowExecutionInfo
		pins      string
		has, lack []string
	}{
		"a turn that may be moved":     {turn, "other", []string{start, tools, drain}, []string{"promote"}},
		"a turn of an agent with pin":  {turn, "careful", []string{start, tools, `agent "careful" has upgrade: pin`}, []string{"drain", "promote"}},
		"what is still to be begun":    {nil, "", []string{start, "holdfast deploy promote BUILD --deployment agents"}, []string{"drain", "tools"}},
		"a session, which is not kept": {&workflowpb.WorkflowExecutionInfo{}, "", []string{start, "deploy promote"}, []string{"drain", "tools"}},
	} {
		co := &conn{payloads: converter.GetDefaultDataConverter(), pins: func(name string) bool { return name == c.pins }}
		got := co.advice(placement{"agents", "v1", true}, c.info, 7)
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q: %s", label, want, got)
			}
		}
		for _, not := range c.lack {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q: %s", label, not, got)
			}
		}
	}
}

func TestAWordForAShellIsQuotedWhereItHasToBe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"v1.2.3-rc_1": "v1.2.3-rc_1", "": "''", "a b": "'a b'", "-x": "'-x'", "$(x)": "'$(x)'", "it's": `'it'\''s'`,
	} {
		if got := word(in); got != want {
			t.Errorf("word(%q) = %s, want %s", in, got, want)
		}
	}
}
