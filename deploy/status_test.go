package deploy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
)

func completed(p ...*commonpb.Payload) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
		WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{Result: &commonpb.Payloads{Payloads: p}},
	}}
}

func failed(p ...*commonpb.Payload) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
		WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{
			FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
				Details: &commonpb.Payloads{Payloads: p},
			}},
		}},
	}}
}

func cancelled(p ...*commonpb.Payload) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionCanceledEventAttributes{
		WorkflowExecutionCanceledEventAttributes: &historypb.WorkflowExecutionCanceledEventAttributes{Details: &commonpb.Payloads{Payloads: p}},
	}}
}

func TestHowATurnEndedStandsInItsLastEvent(t *testing.T) {
	t.Parallel()
	c := converter.GetDefaultDataConverter()
	payload := func(v any) *commonpb.Payload {
		p, err := c.ToPayload(v)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	done := payload(agent.TurnResult{Status: agent.StatusDone, Steps: 3})
	for name, test := range map[string]struct {
		ev *historypb.HistoryEvent
		ok bool
	}{
		"done":                 {completed(done), true},
		"failed":               {failed(done), true},
		"cancelled":            {cancelled(done), true},
		"nothing":              {completed(), false},
		"a null":               {completed(nil), false},
		"another result":       {completed(payload("x")), false},
		"no final status":      {completed(payload(agent.TurnResult{Status: agent.StatusRunning})), false},
		"stored":               {completed(payload(map[string]string{"driverName": "holdfast"})), false},
		"a failure of its own": {failed(), false},
		"terminated": {&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{},
		}}, false},
	} {
		if r, ok := resultIn(test.ev, c); ok != test.ok || ok && r.Steps != 3 {
			t.Errorf("%s: %+v, %v", name, r, ok)
		}
	}
}

func FuzzResult(f *testing.F) {
	b, _ := json.Marshal(agent.TurnResult{Status: agent.StatusFailed})
	f.Add([]byte("json/plain"), b)
	f.Fuzz(func(t *testing.T, encoding, data []byte) {
		p := &commonpb.Payload{Metadata: map[string][]byte{"encoding": encoding}, Data: data}
		for _, ev := range []*historypb.HistoryEvent{completed(p), failed(p), cancelled(p)} {
			if r, ok := resultIn(ev, converter.GetDefaultDataConverter()); ok && !r.Status.Final() {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestMeansAreOfTheTurnsThatWereRead(t *testing.T) {
	t.Parallel()
	e := &Ended{Turns: 100, Sampled: 5}
	if _, ok := e.Cost(); ok {
		t.Error("a cost of no turns")
	}
	uncertain := agent.Effect{State: agent.StateUncertain}
	e.add(agent.TurnResult{Usage: agent.Usage{Micros: 10}, Steps: 1})
	e.add(agent.TurnResult{Usage: agent.Usage{Micros: 11}, Steps: 2, Effects: []agent.Effect{uncertain, {State: agent.StateCommitted, Conflict: "x"}, uncertain}})
	cost, _ := e.Cost()
	steps, _ := e.MeanSteps()
	if e.Read != 2 || cost != 11 || steps != 1.5 || e.Uncertain != 2 {
		t.Errorf("%+v: cost %d, steps %v", e, cost, steps)
	}
	var none *Ended
	if _, ok := none.MeanSteps(); ok {
		t.Error("steps of no turns")
	}
}

func TestWhereTheNextTaskGoes(t *testing.T) {
	t.Parallel()
	at := func(name, build string) *deploymentpb.WorkerDeploymentVersion {
		return &deploymentpb.WorkerDeploymentVersion{DeploymentName: name, BuildId: build}
	}
	on := &workflowpb.WorkflowExecutionVersioningInfo{DeploymentVersion: at("d", "v1")}
	held := &workflowpb.WorkflowExecutionVersioningInfo{DeploymentVersion: at("d", "v1"), VersioningOverride: &workflowpb.VersioningOverride{
		Override: &workflowpb.VersioningOverride_Pinned{Pinned: &workflowpb.VersioningOverride_PinnedOverride{Version: at("d", "v2")}},
	}}
	moves := &workflowpb.WorkflowExecutionVersioningInfo{
		DeploymentVersion: at("d", "v1"), VersionTransition: &workflowpb.DeploymentVersionTransition{DeploymentVersion: at("d", "v3")},
	}
	elsewhere := &workflowpb.WorkflowExecutionVersioningInfo{DeploymentVersion: at("other", "v1")}
	f := Fleet{Deployment: "d"}
	got := []string{f.destination(nil), f.destination(on), f.destination(held), f.destination(moves), f.destination(elsewhere)}
	if diff := cmp.Diff([]string{"", "v1", "v2", "v3", ""}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTroublesAreOfTheBuildThatHasThem(t *testing.T) {
	t.Parallel()
	log := newTroubleLog(&Deployment{Builds: []Build{{ID: "v1"}, {ID: "v2"}, {ID: "v3"}}})
	log.add("v1", "v1", 2, nil)
	log.add("v1", "v2", 0, &Stuck{Workflow: "a", Replay: true})
	log.add("v1", "gone", 0, &Stuck{Workflow: "b"})
	want := []*Troubles{
		{Looked: 3, Uncertain: 2, Stuck: []Stuck{{Workflow: "b"}}},
		{Arriving: 1, Stuck: []Stuck{{Workflow: "a", Replay: true}}},
		nil,
	}
	got := []*Troubles{log.of("v1"), log.of("v2"), log.of("v3")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got[0].Replays() != 0 || got[1].Replays() != 1 || got[2].Replays() != 0 {
		t.Error("replay failures are counted wrong")
	}
}
