package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// Check does what a worker's start does short of Temporal: it opens and proves the store, starts every MCP
// server, lists its tools and assembles the agents. What is wrong is in the report; an error means that the
// check itself was ended. The tools are those that the program adds.
func (c *Config) Check(ctx context.Context, own ...tool.Tool) (*Report, error) {
	r := newReport(c.Path())
	r.Serial, r.Digest = c.Serial, c.Digest().Short()
	r.Deployment = c.Worker.Deployment
	r.Store = StoreReport{URL: c.Store.URL, Sealed: c.Store.Seal.Reveal() != ""}
	for _, name := range sortedKeys(c.Models) {
		m := c.Models[name]
		r.Models = append(r.Models, ModelReport{Name: name, Model: m.Model, BaseURL: m.BaseURL, Key: m.Key.String()})
	}
	c.checkTheStore(ctx, r)
	running, s, problems, stop := c.rehearse(ctx, own)
	defer stop()
	r.Problems = append(r.Problems, problems...)
	r.Tools = append(r.Tools, c.toolReports(own, running, s)...)
	for _, name := range sortedKeys(c.Agents) {
		r.Agents = append(r.Agents, agentReport(name, c.Agents[name], s))
	}
	r.Hints = c.hints(r)
	if s != nil {
		r.Policy = c.policyReport(s.Tools, s.Agents)
		r.Hints = append(append(r.Hints, c.policyHints(r.Policy)...), strangers(r.Policy, s.Tools)...)
	}
	r.Problems = c.masked(r.Problems)
	return r, ctx.Err()
}

// rehearse starts the MCP servers and assembles what a worker would work with, nil if there are problems; stop ends the
// servers again.
func (c *Config) rehearse(ctx context.Context, own []tool.Tool) (running servers, s *activities.Snapshot, problems []Problem, stop func()) {
	f := newFleet(slog.New(slog.DiscardHandler))
	ships, problems := f.start(ctx, c, nil)
	f.keep(ships)
	s, err := c.assemble(extras{own: own}, byName(ships))
	var e *ConfigError
	if errors.As(err, &e) {
		problems = append(problems, e.Problems...)
	}
	return byName(ships), s, problems, f.stop
}

// masked returns problems in the order of the file and without a secret.
func (c *Config) masked(problems []Problem) []Problem {
	for i, p := range problems {
		problems[i].Message, problems[i].Excerpt = c.mask.String(p.Message), c.mask.String(p.Excerpt)
	}
	return sortProblems(problems)
}

func (c *Config) checkTheStore(ctx context.Context, r *Report) {
	s, err := openStore(ctx, c)
	if err != nil {
		d := c.problemsAt()
		d.fail("store/url", "%v", err)
		r.Problems = append(r.Problems, d.problems...)
		return
	}
	r.Store.ID, r.Store.Proven = s.ID(), true
	_ = s.Close() // it was only looked at
}

func agentReport(name string, a Agent, s *activities.Snapshot) AgentReport {
	out := AgentReport{Name: name, Model: a.Model, Upgrade: a.Upgrade, Tools: a.Tools, Limits: a.Limits}
	if s == nil {
		return out
	}
	out.Tools = nil
	for _, t := range s.Agents[name].Tools {
		out.Tools = append(out.Tools, t.Name)
	}
	return out
}

// toolReports lists every tool there is; s is nil when the agents could not be assembled.
func (c *Config) toolReports(own []tool.Tool, running servers, s *activities.Snapshot) []ToolReport {
	users := map[string][]string{}
	if s != nil {
		for _, name := range sortedKeys(s.Agents) {
			for _, t := range s.Agents[name].Tools {
				users[t.Name] = append(users[t.Name], name)
			}
		}
	}
	var out []ToolReport
	for _, t := range own {
		out = append(out, specReport(t.Spec(), true))
	}
	for _, name := range sortedKeys(c.Tools) {
		t := c.Tools[name]
		if t.HTTP != nil {
			out = append(out, httpReport(name, t))
		}
		if m := running[name]; m != nil {
			out = append(out, mcpReports(name, t, m)...)
		}
	}
	for i := range out {
		out[i].Agents = users[out[i].Name]
		out[i].Problem, out[i].Suggest = c.mask.String(out[i].Problem), c.mask.String(out[i].Suggest)
	}
	return out
}

func specReport(s tool.Spec, declared bool) ToolReport {
	r := ToolReport{
		Name: s.Name, Source: s.Source, Effect: s.Class, Risk: s.Risk, Declared: declared, Version: s.Version.Short(),
	}
	switch {
	case s.Irreversible:
		r.Undo = "irreversible"
	case s.Compensate != nil:
		r.Undo = "undone by " + s.Compensate.Tool
	}
	return r
}

func httpReport(name string, t Tool) ToolReport {
	cfg := t.httpConfig(name)
	h, err := tool.NewHTTP(cfg)
	if err != nil {
		return ToolReport{Name: name, Source: "http", Problem: err.Error()}
	}
	r := specReport(h.Spec(), t.Effect != "")
	if t.Effect != "" {
		return r
	}
	switch {
	case cfg.Reconcile != nil:
		r.Suggest = "effect: reconcilable, as it says how to ask what became of a call"
	case cfg.Method == "GET" || cfg.Method == "HEAD":
		r.Suggest = "effect: read, if it changes nothing there (it is sent with " + cfg.Method + ")"
	case cfg.Method == "PUT" || cfg.Method == "DELETE":
		r.Suggest = "effect: idempotent, if doing it twice is the same as once there (it is sent with " + cfg.Method + ")"
	default:
		r.Suggest = "effect: idempotent, if the service honours the Idempotency-Key header; read, if it changes nothing; else say once"
	}
	return r
}

func mcpReports(server string, t Tool, m *tool.MCPServer) []ToolReport {
	var out []ToolReport
	for _, l := range m.Listing() {
		r := specReport(l.Spec, t.Trusted || t.Tools[l.Tool].Effect != "")
		r.Listed, r.Suggest, r.Problem = server+"."+l.Tool, l.Suggest, l.Problem
		if r.Name == "" {
			r.Name, r.Source = l.Tool, "mcp:"+server
		}
		if r.Declared {
			r.Suggest = ""
		}
		out = append(out, r)
	}
	return out
}

// hints says what works and is yet seldom meant.
func (c *Config) hints(r *Report) []string {
	var out []string
	if strings.HasPrefix(c.Store.URL, "mem:") {
		out = append(out, "the store is in memory: it forgets everything when the worker ends, and no other worker sees it")
	}
	var undeclared []string
	for _, t := range r.Tools {
		if t.Effect == agent.ClassOnce && !t.Declared && len(t.Agents) > 0 {
			undeclared = append(undeclared, t.Name)
		}
	}
	if len(undeclared) > 0 {
		out = append(out, fmt.Sprintf("no effect is declared for %s, so each counts as once: a call that a crash interrupts is never sent again and its outcome may stay uncertain", clipList(undeclared)))
	}
	for _, name := range sortedKeys(c.Tools) {
		t := c.Tools[name]
		if t.HTTP != nil && t.HTTP.Reconcile != nil && (t.Effect == "" || t.Effect == agent.ClassOnce) {
			out = append(out, onlyAsked(name))
		}
		for _, one := range sortedKeys(t.Tools) {
			if d := t.Tools[one]; d.Reconcile != nil && (d.Effect == "" || d.Effect == agent.ClassOnce) {
				out = append(out, onlyAsked(name+"."+one))
			}
		}
	}
	return out
}

func onlyAsked(name string) string {
	return fmt.Sprintf("%s says how to ask what became of a call and its effect is once: it is never sent again, also when nothing happened; declare effect: reconcilable if the answer can be relied on", name)
}
