package deploy

import (
	"errors"
	"slices"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// madeOf asks a run that was replayed what it was made with. What it answers is all from its own history.
func madeOf(i Item) (m made, err error) {
	m = made{workflow: i.Workflow, run: i.Run, typ: i.Type, home: home(i.Info)}
	if i.Type == agent.WorkflowSession {
		var v agent.SessionView
		err = i.Replayed.Query(agent.QuerySession, &v)
		m.session(v)
		return m, err
	}
	var v agent.TurnView
	var scope agent.ApprovalsView // the other view does not have the session's life
	err = errors.Join(i.Replayed.Query(agent.QueryTurn, &v), i.Replayed.Query(agent.QueryApprovals, &scope))
	m.scope = scope.Scope
	m.turn(v)
	return m, err
}

// unopened is a run whose code has not run yet: the server alone says whose it is.
func unopened(i Item) made {
	return made{workflow: i.Workflow, run: i.Run, typ: i.Type, agent: text(i.Info, agent.AttributeAgent)}
}

func (m *made) session(v agent.SessionView) {
	m.scope, m.agent, m.change, m.store, m.by = v.Scope, v.Agent, v.Change, v.Store, v.By
	m.holds = v.By.Definition != ""
	if m.turns = v.Turns; v.Running != 0 {
		m.turns-- // it says itself what it was opened with
	}
	if v.Last != nil {
		m.serial = v.Last.Serial
	}
	m.open = uncertain(v.Unresolved)
}

func (m *made) turn(v agent.TurnView) {
	m.agent, m.change, m.store, m.serial, m.over = v.Agent, v.Change, v.Store, v.Serial, v.Status.Final()
	m.by = agent.Identity{Definition: v.Definition, Policy: v.Policy, Build: v.Build}
	for _, a := range v.Approvals {
		m.requests = append(m.requests, request{tool: a.Tool, version: a.Terms.Version})
	}
	m.open = uncertain(v.Ledger)
}

func uncertain(effects []agent.Effect) []string {
	var tools []string
	for _, e := range effects {
		if e.State == agent.StateUncertain && !slices.Contains(tools, e.Tool) {
			tools = append(tools, e.Tool)
		}
	}
	return tools
}

// home returns the build of the worker deployment version that Temporal keeps a run on.
func home(i *workflowpb.WorkflowExecutionInfo) string {
	if text(i, attributeBehavior) != "Pinned" {
		return ""
	}
	_, build, _ := strings.Cut(text(i, attributeVersion), ":")
	return build
}
