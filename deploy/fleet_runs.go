package deploy

import (
	"context"
	"fmt"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
)

// Search attributes that the server gives to runs of worker deployments. They say where a run is with its versioning
// override, if it has one (measured on server 1.29.1). A run that moves on by itself is on the build that took its last
// task, although its next one may go elsewhere.
const (
	attributeDeployment = "TemporalWorkerDeployment"
	attributeVersion    = "TemporalWorkerDeploymentVersion" // "<deployment>:<build>"
	attributeBehavior   = "TemporalWorkflowVersioningBehavior"
)

// attributeChanges is written by the SDK: "<change id>-<number>" for each change id that a run has read.
const attributeChanges = "TemporalChangeVersion"

// Parts of searches.
const (
	isOpen      = "ExecutionStatus = 'Running'"
	hasEnded    = "ExecutionStatus != 'Running' AND ExecutionStatus != 'ContinuedAsNew'" // an open run has a close time far ahead
	isSession   = "WorkflowType = '" + agent.WorkflowSession + "'"
	isTurn      = "WorkflowType = '" + agent.WorkflowTurn + "'"
	isOurs      = "(" + isSession + " OR " + isTurn + ")"
	isHeld      = attributeBehavior + " = 'Pinned'"
	isCarried   = attributeBehavior + " = 'AutoUpgrade'"
	isNowhere   = attributeDeployment + " IS NULL"
	waitsPeople = agent.AttributeStatus + " = '" + string(agent.StatusWaiting) + "'"
)

func and(parts ...string) string { return strings.Join(parts, " AND ") }

// literal writes a text as a search wants it.
func literal(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `'`, `''`) + "'"
}

// on finds the runs that are on a build.
func (f Fleet) on(build string) string { return attributeVersion + " = " + f.versionText(build) }

// notOn finds those of the deployment that are on another build.
func (f Fleet) notOn(build string) string {
	return and(f.within(), attributeVersion+" != "+f.versionText(build))
}

func (f Fleet) versionText(build string) string { return literal(f.Deployment + ":" + build) }

// within finds the runs that are on any build of the deployment.
func (f Fleet) within() string { return attributeDeployment + " = " + literal(f.Deployment) }

func (f Fleet) count(ctx context.Context, query string) (int64, error) {
	n, err := f.server().count(ctx, query)
	if err != nil {
		return 0, fmt.Errorf("counting runs: %w", err)
	}
	return n, nil
}

func (f Fleet) list(ctx context.Context, query string, each func(*workflowpb.WorkflowExecutionInfo) bool) error {
	if err := f.server().list(ctx, query, each); err != nil {
		return fmt.Errorf("listing runs: %w", err)
	}
	return nil
}

// some lists at most n runs.
func (f Fleet) some(ctx context.Context, query string, n int) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var out []*workflowpb.WorkflowExecutionInfo
	if n < 1 {
		return nil, nil
	}
	err := f.list(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		out = append(out, info)
		return len(out) < n
	})
	return out, err
}

func (f Fleet) payloads() converter.DataConverter {
	if f.Payloads != nil {
		return f.Payloads
	}
	return converter.GetDefaultDataConverter()
}

// attribute decodes a search attribute into v, which stays as it is if there is none of that kind.
func attribute(info *workflowpb.WorkflowExecutionInfo, name string, v any) {
	if p := info.GetSearchAttributes().GetIndexedFields()[name]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, v) // of another type: nothing
	}
}

// text returns a search attribute of a run, empty if it has none of that name that is a text.
func text(info *workflowpb.WorkflowExecutionInfo, name string) (s string) {
	attribute(info, name, &s)
	return s
}
