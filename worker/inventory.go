package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// An Inventory is what a worker of this build would work with, by its identities.
type Inventory struct {
	Build  string                    `json:"build"`
	Serial int64                     `json:"serial"`
	Policy agent.Digest              `json:"policy"`
	Agents map[string]InventoryAgent `json:"agents"`
	// Tools are the versions of all tools that an agent could list, by the names that a model calls them by.
	Tools map[string]agent.Digest `json:"tools"`
	// Models are the versions of the models, by their names in the file.
	Models map[string]agent.Digest `json:"models"`
}

// An InventoryAgent is an agent as turns would be opened with it.
type InventoryAgent struct {
	Definition agent.Definition `json:"definition"`
	Digest     agent.Digest     `json:"digest"` // of the definition, as turns and the store name it
	Upgrade    agent.Upgrade    `json:"upgrade"`
}

// Changes says in words what differs between an older definition of the agent and this one: those that people are
// shown who are asked about an upgrade.
func (a InventoryAgent) Changes(old agent.Definition) []string {
	return activities.Changes(old, a.Definition)
}

// Inventory says what [Options.Run] would work with, without Temporal and the store: it starts the file's MCP servers,
// lists their tools and ends them again. What is wrong with the configuration comes back as a *[ConfigError] that shows
// no secret. The tools are those that the program adds.
func (o Options) Inventory(ctx context.Context, c *Config, tools ...tool.Tool) (*Inventory, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	v, err := o.version(c)
	if err != nil {
		return nil, err
	}
	_, s, problems, stop := c.rehearse(ctx, tools)
	defer stop()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(problems) > 0:
		return nil, &ConfigError{c.masked(problems)}
	}
	return inventory(v.BuildID, s)
}

func inventory(build string, s *activities.Snapshot) (*Inventory, error) {
	out := &Inventory{
		Build: build, Serial: s.Serial, Policy: s.Policy.Version(),
		Agents: map[string]InventoryAgent{}, Tools: map[string]agent.Digest{}, Models: map[string]agent.Digest{},
	}
	for name, def := range s.Agents {
		b, err := json.Marshal(def)
		if err != nil {
			return nil, fmt.Errorf("agent %q: its definition has no JSON form: %w", name, err)
		}
		out.Agents[name] = InventoryAgent{Definition: def, Digest: agent.DigestOf(b), Upgrade: s.Upgrades[name]}
	}
	for _, name := range s.Tools.Names() {
		if t, ok := s.Tools.Lookup(name); ok {
			out.Tools[name] = t.Spec().Version
		}
	}
	for name, m := range s.Models {
		out.Models[name] = m.Version
	}
	return out, nil
}
