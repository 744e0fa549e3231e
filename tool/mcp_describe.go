package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// describe turns what a server lists into what a worker can register, and says what it cannot.
func describe(cfg MCPConfig, list toolList) []MCPListing {
	out := make([]MCPListing, 0, len(list))
	for _, t := range list {
		l := describeTool(cfg, t)
		if l.Problem == "" {
			l.Problem = unasked(cfg.Tools[t.Name], list)
		}
		out = append(out, l)
	}
	out = append(out, undelivered(cfg, list)...)
	slices.SortStableFunc(out, func(a, b MCPListing) int { return strings.Compare(a.Tool, b.Tool) })
	return collisions(out)
}

func describeTool(cfg MCPConfig, t remoteTool) MCPListing {
	l := MCPListing{Tool: t.Name, Problem: t.problem}
	if l.Problem != "" {
		return l
	}
	d, declared := cfg.Tools[t.Name]
	class, reason := t.Annotations.class()
	switch {
	case declared && d.Class != "":
	case cfg.Trusted:
		d.Class = class
	case class != agent.ClassOnce:
		l.Suggest = fmt.Sprintf("annotated %s: consider effect: %s", reason, class)
	default:
		l.Suggest = reason
	}
	spec, err := Declare(Spec{
		Name: MCPName(cfg.Name, t.Name), Description: t.Description, Parameters: t.InputSchema,
		Class: d.Class, Window: d.Window, Timeout: d.Timeout, Identity: d.Identity, Resource: d.Resource,
		Risk: d.Risk, Irreversible: d.Irreversible, Compensate: d.Compensate, AbsentAfter: d.AbsentAfter,
		Source: "mcp:" + cfg.Name,
	}, versionOf(cfg, t))
	if err == nil {
		err = checkExtras(spec, d.Reconcile != nil)
	}
	if err == nil {
		_, err = compile(spec)
	}
	if err != nil {
		l.Problem = err.Error()
		return l
	}
	l.Spec = spec
	return l
}

// versionOf is what decides a tool's behaviour besides its [Spec]. Values of secrets are no part of it.
func versionOf(cfg MCPConfig, t remoteTool) any {
	env := make([]string, 0, len(cfg.Env))
	for _, e := range cfg.Env {
		name, _, _ := strings.Cut(e, "=")
		env = append(env, name)
	}
	slices.Sort(env)
	command, err := json.Marshal(cfg.Command) // as text: Declare's envelope wants valid UTF-8
	if err != nil {
		command = nil // strings always have a JSON form
	}
	v := map[string]any{
		"server": cfg.Name, "command": string(command), "url": cfg.URL, "env": env,
		"headers": plainHeaders(cfg.Headers, cfg.HeaderRefs), "headerRefs": cfg.HeaderRefs,
		"tool": t.Name, "output": string(t.OutputSchema), "annotations": t.Annotations,
	}
	d := cfg.Tools[t.Name]
	if d.Reconcile != nil {
		v["reconcile"] = d.Reconcile
	}
	if d.Observe != nil {
		v["observe"] = d.Observe
	}
	return v
}

// undelivered are the declared tools that the server does not list.
func undelivered(cfg MCPConfig, list toolList) []MCPListing {
	var out []MCPListing
	for name := range cfg.Tools {
		if !slices.ContainsFunc(list, func(t remoteTool) bool { return t.Name == name }) {
			out = append(out, MCPListing{Tool: name, Problem: "it is declared, but the server does not list it; mend the name or remove the declaration"})
		}
	}
	return out
}

// collisions marks tools whose names became equal when they were made fit for a provider.
func collisions(out []MCPListing) []MCPListing {
	first := map[string]int{}
	for i := range out {
		if out[i].Problem != "" {
			continue
		}
		j, taken := first[out[i].Spec.Name]
		if !taken {
			first[out[i].Spec.Name] = i
			continue
		}
		problem := fmt.Sprintf("the server's tools %q and %q would both be called %q", out[j].Tool, out[i].Tool, out[i].Spec.Name)
		out[i].Problem, out[j].Problem = problem, problem
	}
	for i := range out {
		if out[i].Problem != "" {
			out[i].Spec = Spec{}
		}
	}
	return out
}

// class is what the annotations suggest, and why. They are a server's word about itself.
func (a annotations) class() (agent.Class, string) {
	is := func(b *bool) bool { return b != nil && *b }
	switch {
	case is(a.ReadOnly) && is(a.Destructive):
		return agent.ClassOnce, "annotated both read-only and destructive: declare its effect"
	case is(a.ReadOnly):
		return agent.ClassRead, "read-only"
	case is(a.Idempotent):
		return agent.ClassIdempotent, "idempotent"
	}
	return agent.ClassOnce, ""
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]`)

const maxName = 64

// MCPName returns the name under which a server's tool is registered: "<server>__<tool>", with "_" for
// what providers do not allow in a name, and with a digest for the end of one that is too long.
func MCPName(server, tool string) string {
	full := server + "__" + tool
	name := unfit.ReplaceAllString(full, "_")
	if len(name) > maxName {
		name = name[:maxName-9] + "_" + string(agent.DigestOf([]byte(full))[:8])
	}
	return name
}
