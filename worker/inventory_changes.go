package worker

import (
	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
)

// Changes says in words what differs between an older definition of the agent and this one: those that people are
// shown who are asked about an upgrade.
func (a InventoryAgent) Changes(old agent.Definition) []string {
	return activities.Changes(old, a.Definition)
}
