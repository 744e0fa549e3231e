package starter

import (
	"cmp"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// What a boundary of versions is between.
const (
	ofCode        = "workflow code" // the build whose workflow code went on with the run
	ofBuild       = "build"         // of the worker that produced a result
	ofDefinition  = "definition"    // of the agent
	ofModel       = "model"         // as the provider reported it
	ofFingerprint = "fingerprint"
	ofPrompt      = "prompt"
	ofTools       = "tool schemas"
	ofToolVersion = "tool version"
	ofPolicy      = "policy"
)

// A boundary of versions is crossed where something is made by another version than the step before was.
type boundary struct {
	What string `json:"what"`
	Tool string `json:"tool,omitempty"` // of a tool version
	From string `json:"from"`
	To   string `json:"to"`
}

// String is the boundary for a line.
func (b boundary) String() string {
	if b.What == ofTools {
		return fmt.Sprintf("%s: %s -> %s", b.What, schemasText(b.From), schemasText(b.To))
	}
	what := b.What
	if b.Tool != "" {
		what += " of " + line(b.Tool, 64)
	}
	return fmt.Sprintf("%s %s -> %s", what, line(b.From, 80), line(b.To, 80))
}

// schemasText says which tool schemas an answer got.
func schemasText(v string) string {
	if v == asDefined {
		return "as the definition has them"
	}
	return "others (" + line(v, 80) + ")"
}

// boundariesNamed is how many boundaries a line names one by one.
const boundariesNamed = 10

func crossed(bs []boundary) string {
	var out []string
	for _, b := range bs[:min(len(bs), boundariesNamed)] {
		out = append(out, b.String())
	}
	if n := len(bs) - boundariesNamed; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, "; ")
}

// versions are those that made the latest of each kind.
type versions map[[2]string]string

// note takes the version that made the next one. A version that nobody recorded is no boundary.
func (v versions) note(to []boundary, what, tool, now string) []boundary {
	if now == "" {
		return to
	}
	k := [2]string{what, tool}
	before, known := v[k]
	v[k] = now
	if !known || before == now {
		return to
	}
	return append(to, boundary{What: what, Tool: tool, From: before, To: now})
}

// opened takes what a turn begins with. A session goes on with another definition of its agent only where the policy
// of upgrades says so.
func (v versions) opened(before agent.Digest, r *agent.OpenResult) []boundary {
	v.note(nil, ofDefinition, "", before.Short())
	out := v.note(nil, ofDefinition, "", r.Definition.Short())
	out = v.note(out, ofBuild, "", r.Build)
	return v.note(out, ofPolicy, "", r.Policy)
}

// asDefined stands for the tool schemas of the agent's definition: an answer names them only if it got others.
const asDefined = "as defined"

func (v versions) answered(r *agent.ModelResult) []boundary {
	p := r.Producer
	out := v.note(nil, ofBuild, "", p.Build)
	out = v.note(out, ofModel, "", p.Model)
	out = v.note(out, ofFingerprint, "", p.Fingerprint)
	out = v.note(out, ofTools, "", cmp.Or(p.Tools, asDefined))
	for _, c := range r.Calls {
		out = v.note(out, ofPolicy, "", c.Verdict.Policy)
	}
	return out
}

func (v versions) acted(tool string, r *agent.ToolResult) []boundary {
	out := v.note(nil, ofBuild, "", r.Build)
	out = v.note(out, ofToolVersion, tool, r.Version)
	if r.Verdict != nil {
		out = v.note(out, ofPolicy, "", r.Verdict.Policy)
	}
	return out
}

// codeOf returns the build whose workflow code completed a task: the deployment's or, of a worker that is in none, the
// worker's own.
func codeOf(a *historypb.WorkflowTaskCompletedEventAttributes) string {
	return cmp.Or(a.GetDeploymentVersion().GetBuildId(), a.GetWorkerVersion().GetBuildId(), a.GetBinaryChecksum()) //nolint:staticcheck // of old servers
}

// taskCompleted notes whose workflow code goes on.
func (t *turnLog) taskCompleted(ev *historypb.HistoryEvent) []event {
	a := ev.GetWorkflowTaskCompletedEventAttributes()
	if d := a.GetDeploymentVersion(); d != nil {
		t.deployment = d.GetDeploymentName() + ":" + d.GetBuildId()
	}
	if b := a.GetVersioningBehavior(); b != enumspb.VERSIONING_BEHAVIOR_UNSPECIFIED {
		t.behavior = behaviorText(b)
	}
	t.code = codeOf(a)
	bs := t.seen.note(nil, ofCode, "", t.code)
	t.crossed = append(t.crossed, bs...)
	return t.told(bs)
}

// crossing enters the boundaries that an activity's result shows.
func (t *turnLog) crossing(act *activity, bs []boundary) []event {
	act.crossed = append(act.crossed, bs...)
	out := t.told(bs)
	for i := range out {
		switch {
		case act.model != nil:
			out[i].Step = act.model.Step
		case act.tool != nil:
			out[i].Step, out[i].Call, out[i].Tool = act.tool.Step, act.tool.Call, act.tool.Tool
		}
	}
	return out
}

// optionsUpdated reads that an operator moved the run to a build, or let it go again.
func (t *turnLog) optionsUpdated(ev *historypb.HistoryEvent) []event {
	a := ev.GetWorkflowExecutionOptionsUpdatedEventAttributes()
	to, from := a.GetVersioningOverride(), t.held
	switch build := to.GetPinned().GetVersion().GetBuildId(); {
	case build != "":
		t.held = build
		return []event{{Type: evOther, Text: "moved to build " + line(build, 64)}}
	case to.GetAutoUpgrade():
		t.held = ""
		return []event{{Type: evOther, Text: "goes on with the current build of its deployment"}}
	case a.GetUnsetVersioningOverride() && from != "":
		t.held = ""
		return []event{{Type: evOther, Text: "let go of build " + line(from, 64)}}
	case a.GetUnsetVersioningOverride():
		return []event{{Type: evOther, Text: "let go: nothing but its own build holds it now"}}
	}
	return t.unknown(ev)
}

func behaviorText(b enumspb.VersioningBehavior) string {
	switch b {
	case enumspb.VERSIONING_BEHAVIOR_PINNED:
		return "pinned"
	case enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE:
		return "auto_upgrade"
	}
	return ""
}

// told is the event of boundaries that were crossed.
func (t *turnLog) told(bs []boundary) []event {
	if len(bs) == 0 {
		return nil
	}
	return []event{{Type: evVersion, Text: "another version: " + crossed(bs), Boundary: bs}}
}

// numbered reads the change number of the run from the marker of workflow.GetVersion.
func (t *turnLog) numbered(a *historypb.MarkerRecordedEventAttributes) {
	var id string
	var n int
	if a.GetMarkerName() == "Version" && t.first(a.GetDetails()["change-id"], &id) == nil &&
		id == versioning.ChangeID(agent.WorkflowTurn) && t.first(a.GetDetails()["version"], &n) == nil {
		t.change = n
	}
}
