package starter

import (
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
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
