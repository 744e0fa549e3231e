package starter

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

// TestAttentionLooksPastWhatIsNoneOfOurs: others use the namespace, too, and may name a workflow type as we do.
func TestAttentionLooksPastWhatIsNoneOfOurs(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "others")
	wants := temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword(agent.AttributeAttention).ValueSet("\x1b[31mevil"))
	for id, kind := range map[string]string{"backup": agent.WorkflowTurn, "backup-2:turn-1": agent.WorkflowSession, "backup-3": agent.WorkflowSession, "backup-4:turn-1": agent.WorkflowTurn} {
		_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "elsewhere", TypedSearchAttributes: wants}, kind, 42)
		if err != nil {
			t.Fatal(err)
		}
	}
	s.worker(worker.Options{})
	s.end("run", "asker", "pay", "--session", "ours")
	s.matter(matterApproval, "ours/turn-1")
}

// TestAPinnedSessionWhoseModelIsGoneNeedsAPerson: no turn and no task of it fails, its next turn just does not open.
func TestAPinnedSessionWhoseModelIsGoneNeedsAPerson(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "pinned-model")
	edit := func(pairs ...string) {
		text, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.NewReplacer(pairs...).Replace(string(text)))
		if err := writeFile(s.file, text); err != nil {
			t.Fatal(err)
		}
		if s.config, err = worker.Parse(s.file, filepath.Dir(s.file), text); err != nil {
			t.Fatal(err)
		}
	}
	edit("helper: {", "helper: {upgrade: pin, ")
	stop := s.worker(worker.Options{})
	s.end("run", "helper", "hello", "--session", "pinned")
	stop()
	edit("models: {m: ", "models: {other: ", "model: m,", "model: other,")
	s.worker(worker.Options{})
	s.ok("send", "pinned", "again")
	m := s.matter(matterFailing, "pinned/turn-2")
	if m.Activity != agent.ActivityOpen || m.Attempt < failingAttempt || m.Command != "holdfast deploy check" || m.Since.IsZero() ||
		!strings.Contains(m.Why, `no model "m", which agent "helper" uses`) {
		t.Errorf("%+v", m)
	}
	out, _, code := s.holdfast("attention")
	if code != ExitWaiting || !strings.Contains(out, "failing") || !strings.Contains(out, "holdfast cancel pinned --turn 2") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestARunWhoseFirstWorkerDiedAndWhoseStateIsRefusedNamesRecover plays the workers: the first takes the task of a run with a
// state that nobody can take, and dies; the next ones refuse it, which leaves no event.
func TestARunWhoseFirstWorkerDiedAndWhoseStateIsRefusedNamesRecover(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "died")
	c, err := versioning.Seal(1, map[string]int{"step": 1})
	if err != nil {
		t.Fatal(err)
	}
	altered(c)
	input, err := converter.GetDefaultDataConverter().ToPayloads(agent.TurnInput{Checkpoint: c})
	if err != nil {
		t.Fatal(err)
	}
	start := client.StartWorkflowOptions{ID: "died:turn-1", TaskQueue: s.queue, WorkflowTaskTimeout: time.Second}
	if _, err := s.client.ExecuteWorkflow(t.Context(), start, agent.WorkflowTurn, agent.TurnInput{}); err != nil {
		t.Fatal(err)
	}
	service := s.client.WorkflowService()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	poll := func() *workflowservice.PollWorkflowTaskQueueResponse {
		task, err := service.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: client.DefaultNamespace, TaskQueue: &taskqueuepb.TaskQueue{Name: s.queue},
		})
		if err != nil || len(task.GetTaskToken()) == 0 {
			t.Fatalf("no task: %v", err)
		}
		return task
	}
	_, err = service.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{
		Namespace: client.DefaultNamespace, TaskToken: poll().GetTaskToken(),
		Commands: []*commandpb.Command{{
			CommandType: enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
			Attributes: &commandpb.Command_ContinueAsNewWorkflowExecutionCommandAttributes{
				ContinueAsNewWorkflowExecutionCommandAttributes: &commandpb.ContinueAsNewWorkflowExecutionCommandAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: agent.WorkflowTurn}, TaskQueue: &taskqueuepb.TaskQueue{Name: s.queue},
					Input: input, WorkflowTaskTimeout: durationpb.New(time.Second),
				},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	poll() // and dies
	if _, err = service.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
		Namespace: client.DefaultNamespace, TaskToken: poll().GetTaskToken(), Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
	}); err != nil {
		t.Fatal(err)
	}
	m := s.matter(matterStuck, "died/turn-1")
	if m.Command != "holdfast recover died/turn-1" || !strings.Contains(m.Why, "the state that was carried into the run") {
		t.Errorf("%+v", m)
	}
}
