package activities

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// pins says whether work with a definition uses models and tools in the versions that it names only. Without, the
// names count, and what this worker has under them.
func (s *Snapshot) pins(def agent.Definition) bool { return s.Upgrades[def.Name] == agent.UpgradePin }

// model returns the model that a definition means, and its name on this worker: the operator may have given the name
// to another one and kept the pinned one under a new name.
func (s *Snapshot) model(def agent.Definition) (name string, m Model, ok bool) {
	m, ok = s.Models[def.Model]
	if !s.pins(def) || def.ModelVersion == "" || ok && m.Version == def.ModelVersion {
		return def.Model, m, ok
	}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if m := s.Models[name]; m.Version == def.ModelVersion {
			return name, m, true
		}
	}
	return def.Model, Model{}, false
}

// noModel says that this worker has no model for a definition, and what to do about it.
func (s *Snapshot) noModel(def agent.Definition) string {
	if _, other := s.Models[def.Model]; other {
		return fmt.Sprintf("this worker has the model %q in another version than agent %q is pinned to; "+
			"add that one under models, by any name, or let the agent follow (upgrade: follow)", def.Model, def.Name)
	}
	return fmt.Sprintf("this worker has no model %q, which agent %q uses; add it to holdfast.yaml", def.Model, def.Name)
}

// withheld says that a pinned definition names a tool in other versions than this worker has.
func (s *Snapshot) withheld(def agent.Definition, spec tool.Spec) bool {
	if !s.pins(def) {
		return false
	}
	named := false
	for _, ref := range def.Tools {
		switch {
		case ref.Name != spec.Name:
		case ref.Version == spec.Version:
			return false
		default:
			named = true
		}
	}
	return named
}

// lookup returns a tool that may be used with the desk's definition.
func (d *desk) lookup(name string) (tool.Tool, bool) {
	t, ok := d.snap.Tools.Lookup(name)
	return t, ok && !d.snap.withheld(d.def, t.Spec())
}

// missing says, in words for the model, why there is no such tool.
func (d *desk) missing(name string) string {
	if _, ok := d.snap.Tools.Lookup(name); ok {
		return fmt.Sprintf("the tool %s is not there in the version that this agent is pinned to: nothing was run; "+
			"do without it, or tell the user; %s", quoted(name), d.listed())
	}
	return fmt.Sprintf("there is no tool %s; %s", quoted(name), d.listed())
}
