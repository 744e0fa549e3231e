package starter

import (
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

// TestARunThatNoWorkerOfItsBuildPollsForIsHeld follows a turn that waits for an approval in one build, is moved to one that
// nobody runs and to one that somebody runs.
func TestARunThatNoWorkerOfItsBuildPollsForIsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "held")
	first, second := worker.Options{Deployment: "agents", Build: "v1"}, worker.Options{Deployment: "agents", Build: "v2"}
	stop := s.worker(first)
	s.promote(first)
	waits := s.end("run", "asker", "pay", "--session", "held")
	if len(waits.Approvals) != 1 {
		t.Fatalf("%+v", waits)
	}
	ask := waits.Approvals[0]
	stop()
	stopSecond := s.worker(second)
	s.promote(second)
	s.fails(ExitWaiting, `of build "v1" of deployment "agents"`, "approve", ask.ID, "--digest", string(ask.Action), "--wait", "8s")
	s.move("held:turn-1", "v9")
	m := s.matter(matterHeld, "held/turn-1")
	if m.Build != "v9" || m.Command != "holdfast worker --deployment agents --build-id v9" || !strings.Contains(m.Advice, "holdfast deploy drain v9 --move") ||
		!strings.Contains(m.Advice, "as they were, serial 1 or later") {
		t.Errorf("%+v", m)
	}
	list, errs, code := s.holdfast("approvals", "--session", "held")
	if code != ExitDone || !strings.Contains(list, ask.ID) || !strings.Contains(list, "⟨no worker of build v9 answers⟩ pay ") ||
		!strings.Contains(errs, `no worker of build "v9" of deployment "agents" polls`) {
		t.Errorf("the list has it as\n%s%s", list, errs)
	}
	if out := s.ok("approvals", "show", "held"); !strings.Contains(out, "the turn's history") || !strings.Contains(out, "the turn is on build v9 now") {
		t.Errorf("the request is shown as\n%s", out)
	}
	var shown shownApproval
	s.json(&shown, "approvals", "show", "held/turn-1")
	if shown.ID != ask.ID || shown.Source != sourceHistory || shown.AskedBy != "v1" || shown.Build != "v9" || !shown.Verified {
		t.Errorf("the request of a turn that was moved: %+v", shown)
	}
	if out := s.ok("show", "held"); !strings.Contains(out, `no worker of build "v9" of deployment "agents" polls`) {
		t.Errorf("show does not say what the turn waits for:\n%s", out)
	}
	// One build that is gone silences no other one.
	s.ok("start", "asker", "pay", "--session", "other")
	s.matter(matterApproval, "other/turn-1")
	s.move("held:turn-1", "v2")
	if end := s.end("watch", "held", "--wait"); end.Status != agent.StatusDone || s.paid.Load() != 1 {
		t.Errorf("%+v, paid %d times", end, s.paid.Load())
	}
	var turn shownTurn
	s.json(&turn, "show", "held")
	if turn.Deployment != "agents:v2" || turn.Versioning != "pinned" || turn.Change == 0 {
		t.Errorf("change %d, %s to %s", turn.Change, turn.Versioning, turn.Deployment)
	}
	for _, what := range []string{ofCode, ofBuild} {
		if want := (boundary{What: what, From: "v1", To: "v2"}); !slices.Contains(turn.Steps[0].Actions[0].Boundary, want) {
			t.Errorf("no %v at the action: %+v", want, turn.Steps[0].Actions[0].Boundary)
		}
	}
	stopSecond()
	s.fails(ExitError, `the last worker of build "v2" of deployment "agents" polled`, "start", "asker", "hello", "--session", "late", "--wait", "8s")
}

// move pins a run to a build.
func (s *stage) move(workflow, build string) {
	s.t.Helper()
	_, err := s.client.UpdateWorkflowExecutionOptions(s.t.Context(), client.UpdateWorkflowExecutionOptionsRequest{
		WorkflowId: workflow,
		WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
			VersioningOverride: &client.VersioningOverrideChange{Value: &client.PinnedVersioningOverride{
				Version: sdkworker.WorkerDeploymentVersion{DeploymentName: "agents", BuildID: build},
			}},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
