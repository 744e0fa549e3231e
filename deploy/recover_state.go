package deploy

import (
	"context"
	"encoding/json"

	"go.temporal.io/sdk/converter"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// Refusal says why this build would not take the state that a run was started with, "" if it would as far as can be seen
// from outside, or if there is none or it cannot be read here. Workers need not have said so: of the tasks that fail one
// after the other only the first leaves an event, and one that a worker died with leaves no reason. The run's first event,
// started, is decoded in place.
func (g Gate) Refusal(ctx context.Context, workflowType string, started *historypb.HistoryEvent) string {
	if g.newPayloads(ctx).restore(ctx, &historypb.History{Events: []*historypb.HistoryEvent{started}}) != nil {
		return ""
	}
	input := started.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()
	if len(input) == 0 {
		return ""
	}
	var in struct {
		Checkpoint *agent.Checkpoint `json:"checkpoint"`
	}
	if converter.GetDefaultDataConverter().FromPayload(input[0], &in) != nil || in.Checkpoint == nil {
		return ""
	}
	// Each change number has come with a schema. What the upgrades between them make is not looked at.
	upgrades := make([]versioning.Upgrade, max(versioning.Bounds(workflowType).Newest-1, 0))
	for i := range upgrades {
		upgrades[i] = versioning.Same
	}
	var state json.RawMessage
	if err := versioning.Open(in.Checkpoint, upgrades, &state); err != nil {
		return err.Error()
	}
	return ""
}
