package worker

import (
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// checkCompensations reports tools whose compensating tool is not there: that would only show when something has to
// be undone.
func (c *Config) checkCompensations(d *decoder, set *tool.Set, running servers) {
	at := c.declaredAt(running)
	for _, name := range set.Names() {
		t, _ := set.Lookup(name)
		undo := t.Spec().Compensate
		if undo == nil {
			continue
		}
		if why := c.unfit(set, running, name, undo.Tool); why != "" {
			d.fail(at[name]+"/compensate/tool", "tool %q: what undoes it is %q, %s", name, clip(undo.Tool), why)
		}
	}
}

// unfit says why a tool cannot undo another.
func (c *Config) unfit(set *tool.Set, running servers, name, undo string) string {
	t, ok := set.Lookup(undo)
	switch {
	case !ok && c.unmade(running, undo):
		return ""
	case !ok:
		return fmt.Sprintf("which there is not; %sthere are: %s", meant(undo, set.Names()), clipList(set.Names()))
	case undo == name:
		return "which is itself; name the tool that takes it back"
	case t.Spec().Class == agent.ClassRead:
		return "which only reads; name the tool that takes it back"
	}
	return ""
}

// unmade says whether a tool is not there because of a problem that was reported.
func (c *Config) unmade(running servers, name string) bool {
	if _, ok := c.Tools[name]; ok {
		return true
	}
	server, _, _ := strings.Cut(name, "__")
	return c.Tools[server].MCP != nil && running[server] == nil
}

// declaredAt returns where in the file the tools are declared, by the names that a model calls them by.
func (c *Config) declaredAt(running servers) map[string]string {
	at := map[string]string{}
	for _, name := range sortedKeys(c.Tools) {
		at[name] = "tools/" + name
		if m := running[name]; m != nil {
			for _, l := range m.Listing() {
				at[l.Spec.Name] = "tools/" + name + "/tools/" + l.Tool
			}
		}
	}
	return at
}
