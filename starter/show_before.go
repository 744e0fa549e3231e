package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// versionsBefore returns what the session's turn before this one worked with at last, as far as the history of that
// turn's latest run is there and says it.
func (c *conn) versionsBefore(ctx context.Context, at address) versions {
	if at.turn < 2 || at.undo != 0 {
		return versions{}
	}
	id := address{session: at.session, turn: at.turn - 1}.workflow()
	d, err := c.describe(ctx, id, "")
	if err != nil {
		return versions{}
	}
	log := newTurnLog(decoder{c.payloads}, at.turn-1)
	err = c.read(ctx, reading{workflow: id, run: d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), each: func(ev *historypb.HistoryEvent) error {
		log.add(ev)
		return nil
	}})
	if err != nil {
		return versions{}
	}
	return log.seen
}

// noTools is the digest of the schemas of a step in which the model was offered no tool at all.
func noTools() string { return agent.DigestOf([]byte("null")).Short() }

// withhold says at each step whose tools were not the definition's which of those the model was not offered. A record
// names the schemas by their digest only, so that it is certain where none was offered.
func (s *shownTurn) withhold(ctx context.Context, at *store.Store, scope agent.Scope, pinned bool) {
	var names []string
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.By == nil || step.By.Tools == "" || step.By.Tools != noTools() && !pinned {
			continue
		}
		if names == nil {
			names = toolsOf(ctx, at, scope, s.Definition)
		}
		step.Withheld = withheldText(names, step.By.Tools == noTools(), pinned)
	}
}

// toolsOf returns the tools that a definition names, none when it is not at hand.
func toolsOf(ctx context.Context, at *store.Store, scope agent.Scope, definition agent.Digest) []string {
	names := []string{}
	if at == nil || !scope.Valid() || !definition.Valid() {
		return names
	}
	b, err := at.Space(scope).Body(ctx, agent.Body{Digest: definition})
	var def agent.Definition
	if err != nil || json.Unmarshal(b, &def) != nil {
		return names
	}
	for _, ref := range def.Tools {
		names = append(names, line(ref.Name, 64))
	}
	return names
}

func withheldText(names []string, all, pinned bool) string {
	const why = "declared otherwise, or not there any more"
	which := strings.Join(names, ", ")
	switch {
	case len(names) == 0 && all:
		return "none of the definition's tools is offered: " + why
	case len(names) == 0:
		return "a pinned tool is not offered: " + why
	case len(names) == 1 && pinned:
		return fmt.Sprintf("pinned tool %s is not offered: %s", which, why)
	case len(names) == 1:
		return fmt.Sprintf("tool %s is not offered: not there any more", which)
	case all && pinned:
		return fmt.Sprintf("pinned tools %s are not offered: %s", which, why)
	case all:
		return fmt.Sprintf("tools %s are not offered: not there any more", which)
	}
	return fmt.Sprintf("not all of the pinned tools %s are offered: one is %s", which, why)
}
