package starter

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// actionText is what a request is about, for a line: a tool with its arguments or, of a request for an upgrade, which is
// of no tool, the agent's new definition.
func actionText(tool, args string) string {
	name, changes := upgradeOf(tool, args)
	switch {
	case name == "":
		return tool + " " + args
	case changes == "":
		return newDefinition(name)
	}
	return newDefinition(name) + ": " + changes
}

// wantedText is what a request waits for: "an approval of refund".
func wantedText(tool, args string) string {
	if name, _ := upgradeOf(tool, args); name != "" {
		return "a word on " + newDefinition(name)
	}
	return "an approval of " + tool
}

func newDefinition(name string) string { return "the new definition of agent " + name }

// upgradeOf reads whose definition a request for an upgrade is about, "" if it is none, and what changes with it.
func upgradeOf(tool, args string) (name, changes string) {
	var u agent.UpgradeArgs
	if tool != agent.ToolUpgrade || json.Unmarshal([]byte(args), &u) != nil {
		return "", ""
	}
	return u.Agent, strings.Join(u.Changes, ", ")
}

// waitingText is what a turn says that it waits for, for a person.
func waitingText(v *agent.TurnView) string {
	if len(v.Approvals) == 1 && v.Approvals[0].Tool == agent.ToolUpgrade && strings.HasPrefix(v.Waiting, "an approval of ") {
		a := &v.Approvals[0]
		return fmt.Sprintf("%s: run %s", wantedText(a.Tool, a.Args), approveCommand(a.ID))
	}
	return v.Waiting
}

// withoutCommand is that text where the commands that answer are named beside it.
func withoutCommand(waiting string) string {
	what, _, _ := strings.Cut(waiting, ": run holdfast approv")
	return what
}
