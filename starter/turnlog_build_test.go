package starter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// task completes a workflow task by a worker of a build.
func (s *story) task(build string) {
	s.add(enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
			WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
				WorkerVersion: &commonpb.WorkerVersionStamp{BuildId: build}, //nolint:staticcheck // of a worker in no deployment
			},
		}
	})
}

func TestABoundaryStandsAtTheStepThatIsTheFirstBeyondIt(t *testing.T) {
	t.Parallel()
	s := &story{t: t}
	scope := agent.NewScope("s", "run")
	model := func(step int, by agent.Producer, policy string) {
		r := agent.ModelResult{Producer: by}
		if policy != "" {
			c := allow("pay")
			c.Verdict.Policy = policy
			r.Calls = []agent.Call{c}
		}
		s.activity(agent.ActivityModel, agent.ModelInput{Scope: scope, Place: agent.Place{Turn: 1, Step: step}}, r)
	}
	pay := func(step int, version, build string) {
		in := toolInput(allow("pay"), 1)
		in.Step = step
		s.activity(agent.ActivityTool, in, agent.ToolResult{State: agent.StateCommitted, Version: version, Build: build})
	}
	before, now := agent.DigestOf([]byte("before")), agent.DigestOf([]byte("now"))
	s.started(agent.TurnInput{Scope: scope, Turn: 1, Agent: "helper", Definition: before})
	s.task("v1")
	s.local(agent.ActivityOpen, agent.OpenResult{Definition: now, Model: "m", Build: "v1", Policy: "p1"})
	model(1, agent.Producer{Model: "gpt", Fingerprint: "f1", Build: "v1"}, "p1")
	s.task("v1")
	pay(1, "t1", "v1")
	s.task("v2")
	model(2, agent.Producer{Model: "gpt", Fingerprint: "f2", Tools: "other", Build: "v2"}, "p2")
	s.task("v2")
	pay(2, "t2", "v2")
	s.task("v2")
	model(3, agent.Producer{Model: "gpt", Fingerprint: "f2", Tools: "other", Build: "v2"}, "")
	s.task("v3")
	log, said := s.read()
	turn := log.shown("s")

	if want := []boundary{
		{What: ofDefinition, From: before.Short(), To: now.Short()}, {What: ofCode, From: "v2", To: "v3"},
	}; cmp.Diff(want, turn.Boundary) != "" {
		t.Errorf("of no step: %s", cmp.Diff(want, turn.Boundary))
	}
	for i, want := range [][]boundary{nil, {
		{What: ofCode, From: "v1", To: "v2"},
		{What: ofBuild, From: "v1", To: "v2"},
		{What: ofFingerprint, From: "f1", To: "f2"},
		{What: ofTools, From: asDefined, To: "other"},
		{What: ofPolicy, From: "p1", To: "p2"},
	}, nil} {
		if diff := cmp.Diff(want, turn.Steps[i].Boundary); diff != "" {
			t.Errorf("step %d: %s", i+1, diff)
		}
	}
	if want := []boundary{{What: ofToolVersion, Tool: "pay", From: "t1", To: "t2"}}; cmp.Diff(want, turn.Steps[1].Actions[0].Boundary) != "" {
		t.Errorf("action: %s", cmp.Diff(want, turn.Steps[1].Actions[0].Boundary))
	}
	if n := strings.Count(said, "version.crossed another version: "); n != 5 || !strings.Contains(said, "tool version of pay t1 -> t2") {
		t.Errorf("%d lines say that a boundary was crossed:\n%s", n, said)
	}
}

func TestAMoveBetweenBuildsIsToldInWords(t *testing.T) {
	t.Parallel()
	s := &story{t: t}
	s.started(agent.TurnInput{Scope: agent.NewScope("s", "run"), Turn: 1, Agent: "helper"})
	options := func(a *historypb.WorkflowExecutionOptionsUpdatedEventAttributes) {
		s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED, func(ev *historypb.HistoryEvent) {
			ev.Attributes = &historypb.HistoryEvent_WorkflowExecutionOptionsUpdatedEventAttributes{WorkflowExecutionOptionsUpdatedEventAttributes: a}
		})
	}
	options(&historypb.WorkflowExecutionOptionsUpdatedEventAttributes{VersioningOverride: &workflowpb.VersioningOverride{
		Override: &workflowpb.VersioningOverride_Pinned{Pinned: &workflowpb.VersioningOverride_PinnedOverride{Version: version("v2")}},
	}})
	options(&historypb.WorkflowExecutionOptionsUpdatedEventAttributes{UnsetVersioningOverride: true})
	options(&historypb.WorkflowExecutionOptionsUpdatedEventAttributes{VersioningOverride: &workflowpb.VersioningOverride{
		Override: &workflowpb.VersioningOverride_AutoUpgrade{AutoUpgrade: true},
	}})
	options(&historypb.WorkflowExecutionOptionsUpdatedEventAttributes{UnsetVersioningOverride: true})
	options(&historypb.WorkflowExecutionOptionsUpdatedEventAttributes{})
	_, said := s.read()
	for _, want := range []string{"moved to build v2\n", "let go of build v2\n", "goes on with the current build", "let go: nothing", "WorkflowExecutionOptionsUpdated\n"} {
		if strings.Count(said, want) != 1 {
			t.Errorf("%q is not said once:\n%s", want, said)
		}
	}
}

// Who asked is the build whose worker decided on the call, for an edited one the build that looked into the arguments.
func TestARequestKnowsTheBuildThatAskedForIt(t *testing.T) {
	t.Parallel()
	s := &story{t: t}
	scope, want := agent.NewScope("s", "run"), ask("pay")
	want.Action = agent.DigestOf([]byte("pay"))
	s.started(agent.TurnInput{Scope: scope, Turn: 1, Agent: "helper"})
	s.task("v1")
	s.activity(agent.ActivityModel, agent.ModelInput{Scope: scope, Place: agent.Place{Turn: 1, Step: 1}},
		agent.ModelResult{Producer: agent.Producer{Build: "v1"}, Calls: []agent.Call{want}})
	s.task("v2")
	log, _ := s.read()
	if waits := log.waitingFor(); len(waits) != 1 || log.askers[waits[0].ID] != "v1" {
		t.Errorf("%+v was asked for by %v", waits, log.askers)
	}
}

func TestAVersionThatNobodyRecordedIsNoBoundary(t *testing.T) {
	t.Parallel()
	v := versions{}
	for _, build := range []string{"", "v1", "", "v1"} {
		if bs := v.note(nil, ofBuild, "", build); bs != nil {
			t.Errorf("%v after %q", bs, build)
		}
	}
}

// A turn that was opened with an offer waits for people before its first step; what they say may open it anew.
func TestAnOfferedUpgradeIsReadFromHistory(t *testing.T) {
	t.Parallel()
	s := &story{t: t}
	scope, offer := agent.NewScope("s", "run"), ask(agent.ToolUpgrade)
	offer.Class, offer.Terms = agent.ClassRead, &agent.Terms{Quorum: 1}
	offer.Action = agent.DigestOf([]byte("take it"))
	before, after := agent.DigestOf([]byte("before")), agent.DigestOf([]byte("after"))
	s.started(agent.TurnInput{Scope: scope, Turn: 1, Agent: "helper", Definition: before})
	s.local(agent.ActivityOpen, agent.OpenResult{Definition: before, Model: "m", Offer: &agent.Offer{To: after, Call: offer}})
	log, said := s.read()
	waits := log.waitingFor()
	if len(waits) != 1 || waits[0].Tool != agent.ToolUpgrade || len(log.effects) != 0 || !strings.Contains(said, "approval.requested") {
		t.Fatalf("%+v, effects %v: %s", waits, log.effects, said)
	}
	s.local(agent.ActivityJudge, decided(waits[0].Key, agent.ChoiceApprove, "alice"))
	s.local(agent.ActivityOpen, agent.OpenResult{Definition: after, Model: "m"})
	log, _ = s.read()
	if want := []boundary{{What: ofDefinition, From: before.Short(), To: after.Short()}}; cmp.Diff(want, log.boundaries) != "" || log.opened.Definition != after {
		t.Errorf("opened with %s: %s", log.opened.Definition, cmp.Diff(want, log.boundaries))
	}
	if len(log.waitingFor()) != 0 {
		t.Errorf("still waits: %+v", log.waitingFor())
	}
}

func TestTheCodesBuildIsTheDeploymentsWhereThereIsOne(t *testing.T) {
	t.Parallel()
	//nolint:staticcheck // of a worker in no deployment
	a := &historypb.WorkflowTaskCompletedEventAttributes{WorkerVersion: &commonpb.WorkerVersionStamp{BuildId: "worker"}}
	if got := codeOf(a); got != "worker" {
		t.Errorf("%q", got)
	}
	a.DeploymentVersion = &deploymentpb.WorkerDeploymentVersion{DeploymentName: "agents", BuildId: "v2"}
	if got := codeOf(a); got != "v2" {
		t.Errorf("%q", got)
	}
}
