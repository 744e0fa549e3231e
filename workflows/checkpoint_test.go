package workflows

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// recordedCheckpoints are those that runs of every release began with, by the name of their history.
func recordedCheckpoints(t *testing.T, workflowType string) map[string]*agent.Checkpoint {
	t.Helper()
	files, err := filepath.Glob("../tests/histories/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	found := map[string]*agent.Checkpoint{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h := &historypb.History{}
		if err := (temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, h); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		var in struct {
			Checkpoint *agent.Checkpoint `json:"checkpoint"`
		}
		if a.GetWorkflowType().GetName() != workflowType || converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &in) != nil {
			continue
		}
		if in.Checkpoint != nil {
			found[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = in.Checkpoint
		}
	}
	return found
}

// kept says which members of an older state are not in the newer one as they were.
func kept(t *testing.T, before string, after any) string {
	t.Helper()
	var old, now map[string]any
	b, err := json.Marshal(after)
	if err == nil {
		err = json.Unmarshal(b, &now)
	}
	if err == nil {
		err = json.Unmarshal([]byte(before), &old)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name := range now {
		if _, ok := old[name]; !ok {
			delete(now, name) // a later schema's
		}
	}
	return cmp.Diff(old, now)
}

// TestEveryOlderCheckpointIsTakenWithoutLoss opens what the runs of every release handed on. The upgrades so far
// leave what is there as it is; one that does not needs its own word on what it makes of a fixture.
func TestEveryOlderCheckpointIsTakenWithoutLoss(t *testing.T) {
	t.Parallel()
	for workflowType, test := range map[string]struct {
		upgrades []versioning.Upgrade
		state    func() any
	}{
		agent.WorkflowSession: {sessionUpgrades(), func() any { return &sessionState{} }},
		agent.WorkflowTurn:    {turnUpgrades(), func() any { return &turnState{} }},
	} {
		schemas := map[int]bool{}
		for name, c := range recordedCheckpoints(t, workflowType) {
			schemas[c.Schema] = true
			state := test.state()
			if err := versioning.Open(c, test.upgrades, state); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if diff := kept(t, c.State, state); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		for schema := 1; schema <= len(test.upgrades); schema++ {
			if !schemas[schema] {
				t.Errorf("%s: no history holds a checkpoint of schema %d: its upgrade is tested by nothing", workflowType, schema)
			}
		}
	}
}

func TestTheSchemaIsThatOfTheUpgrades(t *testing.T) {
	t.Parallel()
	if len(sessionUpgrades()) != sessionSchema-1 || len(turnUpgrades()) != turnSchema-1 {
		t.Error("a schema without its upgrade")
	}
}

// A build that understands a number and prefers the one before may get a run's checkpoint from a build that preferred
// it. What that holds must not be lost in an older schema, which has no room for it.
func TestACheckpointIsHandedOnInNoOlderSchema(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change int
		from   *agent.Checkpoint
		want   int
	}{
		"the first run":                 {2, nil, 2},
		"of an older run":               {3, &agent.Checkpoint{Schema: 2}, 3},
		"of a newer run":                {2, &agent.Checkpoint{Schema: 3}, 3},
		"a number that changed nothing": {9, nil, 3},
	} {
		if got := schemaOf(test.change, test.from, 3); got != test.want {
			t.Errorf("%s: schema %d, want %d", name, got, test.want)
		}
	}
}

// A run that cannot take its checkpoint fails its task, and so stays open for a worker that can.
func TestABadCheckpointFailsTheTaskAndNotTheRun(t *testing.T) {
	t.Parallel()
	good, err := versioning.Seal(3, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	newer, altered := *good, *good
	newer.Schema = 99
	altered.State = `{"step":1}`
	for name, c := range map[string]struct {
		checkpoint agent.Checkpoint
		want       string
	}{
		"newer": {newer, "a worker of a newer build has to take this run"}, "altered": {altered, "it was altered"},
	} {
		for _, workflowType := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			o := Options{}
			env.RegisterWorkflowWithOptions(o.Session, workflow.RegisterOptions{Name: agent.WorkflowSession})
			env.RegisterWorkflowWithOptions(o.Turn, workflow.RegisterOptions{Name: agent.WorkflowTurn})
			env.ExecuteWorkflow(workflowType, map[string]any{"checkpoint": c.checkpoint})
			// The test environment ends a run that panics; a worker fails its task.
			if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "checkpoint of schema") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s: %v", name, workflowType, err)
			}
		}
	}
}
