package activities

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// Bounds of what people are shown of an upgrade, in bytes. It stands in history.
const (
	maxChanges      = 40 // of them
	maxChange       = 160
	maxInstructions = 2 << 10
	maxUpgrade      = 100 // of the summary
)

// changes are [Changes], masked and bounded.
func (s *Snapshot) changes(old, next defined) []string {
	all := Changes(old.Definition, next.Definition)
	out := make([]string, 0, min(len(all), maxChanges+1))
	for _, c := range all[:min(len(all), maxChanges)] {
		out = append(out, cut(s.Mask.String(c), maxChange))
	}
	if more := len(all) - maxChanges; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

func (s *Snapshot) upgradeArgs(old, next defined, changes []string) (string, error) {
	a := agent.UpgradeArgs{Agent: next.Name, From: old.digest, To: next.digest, Changes: changes}
	if old.Instructions != next.Instructions {
		a.Instructions = cut(s.Mask.String(next.Instructions), maxInstructions)
	}
	b, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	return approval.Canonical(b)
}

// upgradeSummary is a line for the Web UI: "agent support: instructions, tool refund".
func upgradeSummary(name string, changes []string) string {
	parts := make([]string, 0, len(changes))
	for _, c := range changes {
		part, _, _ := strings.Cut(c, ": ")
		parts = append(parts, part)
	}
	return cut(approval.Visible("agent "+name+": "+strings.Join(parts, ", ")), maxUpgrade)
}

// Changes says in words what differs between two definitions of an agent, in the order of a definition's fields. There
// is at least one: what has the same parts has another form.
func Changes(from, to agent.Definition) []string {
	var out []string
	if from.Instructions != to.Instructions {
		out = append(out, "instructions")
	}
	switch {
	case from.Model != to.Model:
		out = append(out, fmt.Sprintf("model %s -> %s", from.Model, to.Model))
	case from.ModelVersion == "" && to.ModelVersion != "":
		out = append(out, fmt.Sprintf("model %s: the old one does not say its version", to.Model))
	case from.ModelVersion != to.ModelVersion:
		out = append(out, fmt.Sprintf("model %s: another version", to.Model))
	}
	out = append(out, toolChanges(from.Tools, to.Tools)...)
	if !reflect.DeepEqual(from.Limits, to.Limits) {
		out = append(out, "limits")
	}
	if len(out) == 0 {
		out = append(out, "the order or the form of its parts")
	}
	return out
}

// toolChanges goes through the old tools in their order and then through the new ones.
func toolChanges(from, to []agent.ToolRef) []string {
	var out []string
	before, after := versions(from), versions(to)
	for _, t := range from {
		switch v, there := after[t.Name]; {
		case !there:
			out = append(out, fmt.Sprintf("tool %s: removed", t.Name))
		case v != t.Version:
			out = append(out, fmt.Sprintf("tool %s: another version", t.Name))
		}
	}
	for _, t := range to {
		if _, there := before[t.Name]; !there {
			out = append(out, fmt.Sprintf("tool %s: added", t.Name))
		}
	}
	return out
}

func versions(tools []agent.ToolRef) map[string]agent.Digest {
	m := make(map[string]agent.Digest, len(tools))
	for _, t := range tools {
		m[t.Name] = t.Version
	}
	return m
}
