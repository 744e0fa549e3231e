package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// A Question is about one call, as a model might ask for it.
type Question struct {
	// Tool is what the model calls, or "server.tool" for a tool of an MCP server.
	Tool string
	// Args is the JSON text of an object; empty is no arguments.
	Args string
	// Agent may be empty when only one agent lists the tool.
	Agent   string
	Session string
	// Actor sent the turn's message and signed it; empty is somebody who only claims a name.
	Actor string
}

// An Answer is what policy says about the call of a [Question].
type Answer struct {
	Session  string      `json:"session,omitempty"`
	Args     string      `json:"args"` // canonical
	Resource string      `json:"resource,omitempty"`
	Effect   agent.Class `json:"effect"`
	Risk     agent.Risk  `json:"risk"`
	Actor    string      `json:"actor,omitempty"`
	// Invalid says why the tool would not be called whatever policy says.
	Invalid string `json:"invalid,omitempty"`
	policy.Explanation
}

// String returns the answer for a terminal, in several lines.
func (a Answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "action       %s %s\n", approval.Visible(a.Tool), approval.Visible(a.Args))
	if a.Resource != "" {
		fmt.Fprintf(&b, "resource     %s\n", approval.Visible(a.Resource))
	}
	fmt.Fprintf(&b, "effect       %s, risk %s\n", a.Effect, a.Risk)
	if a.Actor != "" {
		fmt.Fprintf(&b, "sent by      %s, signed\n", approval.Visible(a.Actor))
	}
	b.WriteString(a.Explanation.String())
	if a.Invalid != "" {
		fmt.Fprintf(&b, "note: this call goes back to the model in any case: %s\n", approval.Visible(a.Invalid))
	}
	return b.String()
}

// ExplainPolicy says what the policy of the file at path decides about a call, and why. References are resolved,
// and a server started, only for an MCP server whose tool is asked about. The tools are those that the program adds.
func ExplainPolicy(ctx context.Context, path string, q Question, own ...tool.Tool) (*Answer, error) {
	c, err := LoadPolicy(path)
	if err != nil {
		return nil, err
	}
	running := servers{}
	if server := c.serverOf(q.Tool, own); server != "" {
		f := newFleet(slog.New(slog.DiscardHandler))
		defer f.stop()
		if c, running, err = f.only(ctx, path, server); err != nil {
			return nil, err
		}
	}
	return c.explain(q, own, running)
}

// serverOf returns the MCP server that a tool belongs to, "" if it is of the program or the file.
func (c *Config) serverOf(name string, own []tool.Tool) string {
	for _, t := range own {
		if t.Spec().Name == name {
			return ""
		}
	}
	for _, sep := range []string{"__", "."} {
		if server, _, ok := strings.Cut(name, sep); ok && c.Tools[server].MCP != nil {
			return server
		}
	}
	return ""
}

// only starts one server of the file, with what that needs of the environment.
func (f *fleet) only(ctx context.Context, path, server string) (*Config, servers, error) {
	c, err := load(path, func(p string) bool { return strings.HasPrefix(p, "tools/"+server+"/") })
	if err != nil {
		return nil, nil, err
	}
	one := *c
	one.Tools = map[string]Tool{server: c.Tools[server]}
	ships, problems := f.start(ctx, &one, nil)
	f.keep(ships)
	if len(problems) > 0 {
		return nil, nil, &ConfigError{problems}
	}
	return c, byName(ships), nil
}

func (c *Config) explain(q Question, own []tool.Tool, running servers) (*Answer, error) {
	d := c.problemsAt()
	set := c.toolSet(d, extras{own: own}, running)
	t, err := c.named(set, running, q.Tool)
	if err != nil {
		if len(d.problems) > 0 {
			return nil, &ConfigError{sortProblems(d.problems)}
		}
		return nil, err
	}
	spec := t.Spec()
	def, err := c.asker(set, running, q.Agent, spec.Name)
	if err != nil {
		return nil, err
	}
	if q.Args == "" {
		q.Args = "{}"
	}
	args, err := approval.Canonical([]byte(q.Args))
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	s := &activities.Snapshot{Policy: c.source.policy}
	a := &Answer{
		Session: q.Session, Args: args, Resource: activities.Resource(spec, args), Effect: spec.Class, Risk: spec.Risk,
		Actor:       q.Actor,
		Explanation: s.Explain(def, spec, args, agent.Scope{Session: q.Session}, []agent.Actor{{Name: q.Actor, Signed: q.Actor != ""}}),
	}
	if err := set.Validate(spec.Name, args); err != nil {
		a.Invalid = err.Error()
	}
	return a, nil
}

// named returns the tool that somebody names as a model or as an agent's list does.
func (c *Config) named(set *tool.Set, running servers, name string) (tool.Tool, error) {
	if t, ok := set.Lookup(name); ok {
		return t, nil
	}
	if server, one, ok := strings.Cut(name, "."); ok && one != "*" && running[server] != nil {
		for _, n := range running[server].Select(name) {
			if t, ok := set.Lookup(n); ok {
				return t, nil
			}
		}
	}
	known := set.Names()
	for _, server := range sortedKeys(c.Tools) {
		if c.Tools[server].MCP != nil && running[server] == nil {
			known = append(known, server+".*")
		}
	}
	return nil, fmt.Errorf("there is no tool %q; %sthere are: %s", clip(name), meant(name, known), clipList(known))
}

// asker returns the agent that would ask for a tool.
func (c *Config) asker(set *tool.Set, running servers, name, tool string) (agent.Definition, error) {
	scratch := c.problemsAt() // what is wrong elsewhere in an agent's list is no matter here
	if name != "" {
		if _, ok := c.Agents[name]; !ok {
			known := sortedKeys(c.Agents)
			return agent.Definition{}, fmt.Errorf("there is no agent %q; %sthere are: %s", clip(name), meant(name, known), clipList(known))
		}
		return c.define(scratch, name, set, running), nil
	}
	var found []string
	for _, n := range sortedKeys(c.Agents) {
		if lists(c.define(scratch, n, set, running), tool) {
			found = append(found, n)
		}
	}
	if len(found) == 0 && len(c.Agents) == 1 {
		found = sortedKeys(c.Agents)
	}
	switch len(found) {
	case 0:
		return agent.Definition{}, fmt.Errorf("no agent lists the tool %q; name one with --agent: %s", tool, clipList(sortedKeys(c.Agents)))
	case 1:
		return c.define(scratch, found[0], set, running), nil
	}
	return agent.Definition{}, fmt.Errorf("several agents list the tool %q; name one with --agent: %s", tool, clipList(found))
}

func lists(def agent.Definition, tool string) bool {
	for _, t := range def.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}
