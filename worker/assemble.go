package worker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tool"
)

// servers are the running MCP servers by their names in the file.
type servers map[string]*tool.MCPServer

// problemsAt returns a decoder that knows the file's places and has no problems yet.
func (c *Config) problemsAt() *decoder {
	d := c.source.decoder
	return &decoder{file: d.file, lines: d.lines, at: d.at, texts: d.texts}
}

// extras are what a snapshot is made of besides the file.
type extras struct {
	own    []tool.Tool // the program's tools
	refuse []string    // addresses that no tool may reach by a name: Temporal's
}

// assemble makes what the activities work with. Problems have the place in the file that they come from.
func (c *Config) assemble(x extras, running servers) (*activities.Snapshot, error) {
	d := c.problemsAt()
	s := &activities.Snapshot{
		Serial: c.Serial, Agents: map[string]agent.Definition{}, Upgrades: map[string]agent.Upgrade{}, Models: map[string]activities.Model{},
		Tools: c.toolSet(d, x, running), Policy: c.source.policy, Mask: c.mask,
		ToolHeartbeat: c.Worker.ToolHeartbeat, MaxResult: c.Limits.Result,
	}
	for _, name := range sortedKeys(c.Models) {
		m, err := c.Models[name].build(name)
		if err != nil {
			d.fail("models/"+name, "%v", err)
		}
		s.Models[name] = m
	}
	c.checkCompensations(d, s.Tools, running)
	for _, name := range sortedKeys(c.Agents) {
		s.Agents[name], s.Upgrades[name] = c.define(d, name, s.Tools, running), c.Agents[name].Upgrade
	}
	if len(d.problems) > 0 {
		return nil, &ConfigError{sortProblems(d.problems)}
	}
	return s, nil
}

// toolSet puts the program's own tools, the HTTP tools and those of the servers together. What a server
// offers does not matter until an agent lists it, so a tool of it that cannot be used is no problem here.
func (c *Config) toolSet(d *decoder, x extras, running servers) *tool.Set {
	set := &tool.Set{}
	for _, t := range x.own {
		if err := set.Add(t); err != nil {
			d.add(position{}, "a tool of this program: %v", err)
		}
	}
	for _, name := range sortedKeys(c.Tools) {
		t := c.Tools[name]
		if t.HTTP != nil {
			cfg := t.httpConfig(name)
			cfg.Refuse = x.refuse
			h, err := tool.NewHTTP(cfg)
			if err == nil {
				err = set.Add(h)
			}
			if err != nil {
				d.failTool("tools/"+name, "/http", err)
			}
		}
		if m := running[name]; m != nil {
			for _, t := range m.Tools() {
				if err := set.Add(t); err != nil {
					d.fail("tools/"+name, "%v", err)
				}
			}
		}
	}
	return set
}

func (t Tool) httpConfig(name string) tool.HTTPConfig {
	h := t.HTTP
	method := h.Method
	if method == "" {
		method = "POST"
		if t.Effect == agent.ClassRead {
			method = "GET"
		}
	}
	values, refs := revealed(h.Headers)
	return tool.HTTPConfig{
		Name: name, Description: t.Description, Method: method, URL: h.URL, Headers: values, HeaderRefs: refs,
		Parameters: t.Parameters, Class: t.Effect, Window: t.Window, Timeout: t.Timeout,
		Identity: t.Identity, Resource: t.Resource, Query: h.Query, Body: h.Body,
		AllowPrivate: h.AllowPrivate, MaxResult: h.MaxResult,
		Risk: t.Harm.Risk, Irreversible: t.Harm.Irreversible, Compensate: t.Harm.Compensate, AbsentAfter: t.Harm.AbsentAfter,
		Reconcile: h.Reconcile.config(), Observe: h.Observe.config(),
	}
}

func (a *HTTPAsk) config() *tool.HTTPAsk {
	if a == nil {
		return nil
	}
	values, refs := revealed(a.Headers)
	return &tool.HTTPAsk{
		URL: a.URL, Query: a.Query, Headers: values, HeaderRefs: refs, Found: a.Found, Absent: a.Absent,
	}
}

// revealed returns the values of headers and, for those that are secrets, what they refer to.
func revealed(m map[string]Value) (values, refs map[string]string) {
	values, refs = map[string]string{}, map[string]string{}
	for name, v := range m {
		values[name] = v.Reveal()
		if v.Secret() {
			refs[name] = v.String()
		}
	}
	return values, refs
}

func (t Tool) mcpConfig(name string) tool.MCPConfig {
	m := t.MCP
	c := tool.MCPConfig{
		Name: name, Command: m.Command, URL: m.URL, Trusted: t.Trusted, ListTimeout: t.ListTimeout,
		AllowPrivate: m.AllowPrivate, MaxResult: m.MaxResult, Concurrency: m.Concurrency, Tools: map[string]tool.Declaration{},
	}
	c.Headers, c.HeaderRefs = revealed(m.Headers)
	for _, key := range sortedKeys(m.Env) {
		c.Env = append(c.Env, key+"="+m.Env[key].Reveal())
	}
	for name, t := range t.Tools {
		c.Tools[name] = tool.Declaration{
			Class: t.Effect, Window: t.Window, Timeout: t.Timeout, Identity: t.Identity, Resource: t.Resource,
			Risk: t.Harm.Risk, Irreversible: t.Harm.Irreversible, Compensate: t.Harm.Compensate, AbsentAfter: t.Harm.AbsentAfter,
			Reconcile: t.Reconcile, Observe: t.Observe,
		}
	}
	return c
}

func (m Model) build(name string) (activities.Model, error) {
	c, err := openai.New(openai.Config{
		BaseURL: m.BaseURL, Key: m.Key.Reveal(), Model: m.Model, Stream: m.Stream,
		MaxOutput: m.Limits.OutputTokens, Temperature: m.Temperature,
		AttemptTimeout: m.Timeout.Attempt, IdleTimeout: m.Timeout.Idle,
	})
	if err != nil {
		return activities.Model{}, err
	}
	version, err := m.version()
	if err != nil {
		return activities.Model{}, err
	}
	return activities.Model{
		Name: name, Version: version, Client: c, Price: activities.Price(m.Prices),
		Attempt: m.Timeout.Attempt, Call: m.Timeout.Call, Heartbeat: m.Timeout.Heartbeat,
		Concurrent: m.Limits.Concurrency,
	}, nil
}

// define turns an agent of the file into its definition: the tools that its list means, each once, in the
// order of the list, with the versions that they have now.
func (c *Config) define(d *decoder, name string, set *tool.Set, running servers) agent.Definition {
	a := c.Agents[name]
	def := agent.Definition{Name: name, Instructions: a.Instructions, Model: a.Model, Limits: a.Limits}
	var err error
	if def.ModelVersion, err = c.Models[a.Model].version(); err != nil {
		d.fail("models/"+a.Model, "%v", err)
	}
	listed := map[string]bool{}
	for i, entry := range a.Tools {
		at := "agents/" + name + "/tools/" + strconv.Itoa(i)
		names, why := c.meaning(entry, set, running)
		if why != "" {
			d.fail(at, "agent %q: %s", name, why)
		}
		for _, n := range names {
			t, ok := set.Lookup(n)
			if !ok || listed[n] {
				continue
			}
			listed[n] = true
			def.Tools = append(def.Tools, agent.ToolRef{Name: n, Version: t.Spec().Version})
		}
	}
	return def
}

// meaning returns the names of the tools that an entry of an agent's list means, or why it means none.
func (c *Config) meaning(entry string, set *tool.Set, running servers) (names []string, why string) {
	server, one, dotted := strings.Cut(entry, ".")
	if !dotted {
		if _, ok := set.Lookup(entry); ok {
			return []string{entry}, ""
		}
		if _, ok := c.Tools[entry]; ok {
			return nil, "" // it could not be made, and that was reported
		}
		known := append(set.Names(), sortedKeys(c.Tools)...)
		return nil, fmt.Sprintf("there is no tool %q; %sdeclare it under tools, or run a program that adds it", clip(entry), meant(entry, known))
	}
	m := running[server]
	if m == nil {
		return nil, "" // it did not start, and that was reported
	}
	if names = m.Select(entry); len(names) > 0 {
		return names, ""
	}
	var known []string
	for _, l := range m.Listing() {
		if l.Tool == one && l.Problem != "" {
			return nil, fmt.Sprintf("%q cannot be used: %s", clip(entry), l.Problem)
		}
		known = append(known, l.Tool)
	}
	if one == "*" {
		return nil, fmt.Sprintf("the MCP server %q offers no tool that can be used", server)
	}
	return nil, fmt.Sprintf("the MCP server %q has no tool %q; %sit has: %s", server, clip(one), meant(one, known), clipList(known))
}

func clipList(names []string) string {
	if len(names) > 20 {
		return strings.Join(names[:20], ", ") + fmt.Sprintf(" and %d more", len(names)-20)
	}
	return strings.Join(names, ", ")
}
