package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// A Trial replays open runs on this program before they are moved to it. It returns by run id why it cannot go on with
// one; a run that is not named may be moved.
type Trial func(ctx context.Context, runs []*workflowpb.WorkflowExecutionInfo) (map[string]error, error)

// checkedAtOnce is how many runs are named in one search.
const checkedAtOnce = 50

// ErrNotReplayed is why a run is not moved whose history was not replayed: it ended meanwhile, or the history could
// not be fetched.
var ErrNotReplayed = errors.New("its history could not be replayed")

// Try is a [Trial] by this gate.
func (g Gate) Try(ctx context.Context, runs []*workflowpb.WorkflowExecutionInfo) (map[string]error, error) {
	bad := map[string]error{}
	for len(runs) > 0 {
		some := runs[:min(len(runs), checkedAtOnce)]
		runs = runs[len(some):]
		ids := make([]string, len(some))
		for i, r := range some {
			bad[r.GetExecution().GetRunId()] = ErrNotReplayed
			ids[i] = literal(r.GetExecution().GetWorkflowId())
		}
		_, err := g.Runs(ctx, and(isOpen, "WorkflowId IN ("+strings.Join(ids, ", ")+")"), func(i Item) {
			switch {
			case i.Err == nil && i.Fetched, errors.Is(i.Err, replay.ErrNotRun):
				delete(bad, i.Run)
			case i.Err != nil:
				bad[i.Run] = i.Err
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return bad, nil
}

// pin holds a run on a build from its next task on. A turn that it starts is held there, too, and stays so when the run
// is let go again; a run that continues it is not (measured on server 1.29.1).
func (f Fleet) pin(ctx context.Context, x *commonpb.WorkflowExecution, build string) error {
	return f.override(ctx, x, &client.PinnedVersioningOverride{
		Version: sdkworker.WorkerDeploymentVersion{DeploymentName: f.Deployment, BuildID: build},
	})
}

// carry lets a run that was held move on: its next task goes to the current build.
func (f Fleet) carry(ctx context.Context, x *commonpb.WorkflowExecution) error {
	return f.override(ctx, x, &client.AutoUpgradeVersioningOverride{})
}

// release takes an override back.
func (f Fleet) release(ctx context.Context, x *commonpb.WorkflowExecution) error {
	return f.override(ctx, x, nil)
}

// override changes the run itself and not one that has continued it: another history was looked at.
func (f Fleet) override(ctx context.Context, x *commonpb.WorkflowExecution, to client.VersioningOverride) error {
	_, err := ask(ctx, 0, func(ctx context.Context) (client.WorkflowExecutionOptions, error) {
		return f.Client.UpdateWorkflowExecutionOptions(ctx, client.UpdateWorkflowExecutionOptionsRequest{
			WorkflowId: x.GetWorkflowId(), RunId: x.GetRunId(),
			WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
				VersioningOverride: &client.VersioningOverrideChange{Value: to},
			},
		})
	})
	if err != nil {
		return fmt.Errorf("versioning override of %q: %w", x.GetWorkflowId(), err)
	}
	return nil
}

// A Left is a run that was not moved, and why.
type Left struct {
	Workflow string `json:"workflow"`
	Run      string `json:"run"`
	Agent    string `json:"agent,omitempty"`
	Kind     string `json:"kind"`
	Why      string `json:"why"`

	err error
}

// Err returns the reason as an error; for LeftReplay it is what package versioning/replay found.
func (l Left) Err() error { return l.err }

// Kinds of reasons why a run is left where it is.
const (
	LeftReplay  = "replay"  // this program cannot replay its history
	LeftPinned  = "pin"     // its agent's upgrade policy
	LeftUnknown = "unknown" // the configuration does not have its agent
	LeftBusy    = "busy"    // an attempt of an activity is on its way: looked at again
	LeftNumber  = "number"  // it carries a change number that the other build does not understand
	LeftFailed  = "failed"  // the server did not do it
	LeftOther   = "other"   // it is no session and no turn
)

func left(info *workflowpb.WorkflowExecutionInfo, kind string, err error) Left {
	return Left{
		Workflow: info.GetExecution().GetWorkflowId(), Run: info.GetExecution().GetRunId(),
		Agent: text(info, agent.AttributeAgent), Kind: kind, Why: err.Error(), err: err,
	}
}

// Upgrades says what the configuration in force has for an agent, false for one that it does not have.
type Upgrades func(agent string) (agent.Upgrade, bool)

// mayCross says whether an agent's upgrade policy lets its runs go to another build.
func (u Upgrades) mayCross(info *workflowpb.WorkflowExecutionInfo) *Left {
	name := text(info, agent.AttributeAgent)
	policy, known := u(name)
	var l Left
	switch {
	case name == "":
		l = left(info, LeftUnknown, errors.New("it does not say what its agent is: it was not started by holdfast"))
	case !known:
		l = left(info, LeftUnknown, fmt.Errorf("the configuration has no agent %q: no worker of it would go on with the run", name))
	case policy == agent.UpgradePin:
		l = left(info, LeftPinned, fmt.Errorf("agent %q has upgrade: pin", name))
	default:
		return nil
	}
	return &l
}
