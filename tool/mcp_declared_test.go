package tool

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestAToolThatChangedOnTheServerIsRefused(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "changes"))
	if _, err := callMCP(t, m, "echo", `{}`); err != nil {
		t.Fatal(err)
	}
	wantMCPText(t, m, "changed", "changed")
	_, err := callMCP(t, m, "echo", `{}`)
	wantMeaning(t, err, OutcomeFailed, "tool changed on the server")
	wantMCPText(t, m, "twice", "first")
}

func TestBrokenToolsAreNamedAndTheOthersWork(t *testing.T) {
	t.Parallel()
	cfg := helper(t, "badtools")
	cfg.Tools = map[string]Declaration{"absent": {}}
	m := startMCP(t, cfg)
	got := map[string]string{}
	var good []string
	for _, l := range m.Listing() {
		if l.Problem == "" {
			good = append(good, l.Spec.Name)
		} else {
			got[l.Tool] = l.Problem
		}
	}
	want := []string{"raw__a_tool_whose_name_is_much_longer_than_any_provider_", "raw__good", "raw__output"}
	if len(good) != 3 || !strings.HasPrefix(good[0], want[0]) || len(good[0]) != 64 || good[1] != want[1] || good[2] != want[2] {
		t.Errorf("usable: %q", good)
	}
	for tool, part := range map[string]string{
		"none": "no input schema", "null": "no input schema", "text": "not a JSON object", "array": `"array"`,
		"untyped": "none", "wrong": "schema", "remote": "schema", "lost ref": "schema", "17": "not in the protocol's form",
		"<nil>": "not in the protocol's form", "a.b": "would both be called", "a b": "would both be called",
		"same": "twice", "absent": "does not list it",
	} {
		if !strings.Contains(got[tool], part) {
			t.Errorf("%q: problem %q lacks %q", tool, got[tool], part)
		}
	}
	if s := string(toolOf(t, m, "good").Spec().Parameters); !strings.Contains(s, "9007199254740993") {
		t.Errorf("a number of the schema changed: %s", s)
	}
	if _, err := NewSet(m.Tools()...); err != nil {
		t.Error(err)
	}
}

func TestAnnotationsCountOnlyOnATrustedServer(t *testing.T) {
	t.Parallel()
	list := toolList{
		{Name: "both", Annotations: annotations{ReadOnly: new(true), Destructive: new(true)}},
		{Name: "declared", Annotations: annotations{ReadOnly: new(true)}},
		{Name: "idem", Annotations: annotations{Idempotent: new(true)}},
		{Name: "plain"},
		{Name: "read", Annotations: annotations{ReadOnly: new(true), Destructive: new(false)}},
	}
	for i := range list {
		list[i].InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	cfg := MCPConfig{Name: "s", Tools: map[string]Declaration{"declared": {Class: agent.ClassOnce}}}
	classes := func() (c []agent.Class, suggestions []string) {
		for _, l := range describe(cfg, list) {
			if l.Problem != "" {
				t.Fatal(l.Problem)
			}
			c, suggestions = append(c, l.Spec.Class), append(suggestions, l.Suggest)
		}
		return c, suggestions
	}
	c, s := classes()
	if diff := cmp.Diff([]agent.Class{"once", "once", "once", "once", "once"}, c); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"annotated both read-only and destructive: declare its effect", "",
		"annotated idempotent: consider effect: idempotent", "", "annotated read-only: consider effect: read",
	}, s); diff != "" {
		t.Error(diff)
	}
	cfg.Trusted = true
	c, _ = classes()
	if diff := cmp.Diff([]agent.Class{"once", "once", "idempotent", "once", "read"}, c); diff != "" {
		t.Error(diff)
	}
}

func declares(d Declaration) func(*MCPConfig, *remoteTool) {
	return func(c *MCPConfig, _ *remoteTool) { c.Tools = map[string]Declaration{"t": d} }
}

func TestVersionCoversWhatDecidesAndNoSecret(t *testing.T) {
	t.Parallel()
	tool := func() remoteTool {
		return remoteTool{Name: "t", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`)}
	}
	version := func(change func(*MCPConfig, *remoteTool)) agent.Digest {
		c := MCPConfig{
			Name: "s", Command: []string{"a", "b"}, Env: []string{"K=1"},
			Headers: map[string]string{"h": "v"}, HeaderRefs: map[string]string{"h": "env:V"},
		}
		r := tool()
		change(&c, &r)
		l := describe(c, toolList{r, {Name: "u", InputSchema: r.InputSchema}})
		if len(l) != 2 || l[0].Problem != "" {
			t.Fatal(l)
		}
		return l[0].Spec.Version
	}
	base := version(func(*MCPConfig, *remoteTool) {})
	for name, same := range map[string]func(*MCPConfig, *remoteTool){
		"env value":    func(c *MCPConfig, _ *remoteTool) { c.Env[0] = "K=2" },
		"header value": func(c *MCPConfig, _ *remoteTool) { c.Headers["h"] = "w" },
		"list timeout": func(c *MCPConfig, _ *remoteTool) { c.ListTimeout = 5 },
	} {
		if version(same) != base {
			t.Errorf("%s changes the version", name)
		}
	}
	seen := map[agent.Digest]string{base: "base"}
	for name, other := range map[string]func(*MCPConfig, *remoteTool){
		"server":      func(c *MCPConfig, _ *remoteTool) { c.Name = "z" },
		"command":     func(c *MCPConfig, _ *remoteTool) { c.Command[1] = "c" },
		"split":       func(c *MCPConfig, _ *remoteTool) { c.Command = []string{"a b"} },
		"url":         func(c *MCPConfig, _ *remoteTool) { c.URL = "http://h/" },
		"env name":    func(c *MCPConfig, _ *remoteTool) { c.Env = append(c.Env, "L=1") },
		"header ref":  func(c *MCPConfig, _ *remoteTool) { c.HeaderRefs["h"] = "env:W" },
		"description": func(_ *MCPConfig, r *remoteTool) { r.Description = "e" },
		"input":       func(_ *MCPConfig, r *remoteTool) { r.InputSchema = json.RawMessage(`{"a":1,"type":"object"}`) },
		"output":      func(_ *MCPConfig, r *remoteTool) { r.OutputSchema = json.RawMessage(`{}`) },
		"annotation":  func(_ *MCPConfig, r *remoteTool) { r.Annotations.ReadOnly = new(false) },
		"class": func(c *MCPConfig, _ *remoteTool) {
			c.Tools = map[string]Declaration{"t": {Class: agent.ClassRead}}
		},
		"reconcile": declares(Declaration{Reconcile: &MCPAsk{Tool: "u", Found: "true"}}),
		"found":     declares(Declaration{Reconcile: &MCPAsk{Tool: "u", Found: "!error"}}),
		"absent":    declares(Declaration{Reconcile: &MCPAsk{Tool: "u", Found: "true", Absent: "error"}}),
		"delay":     declares(Declaration{Reconcile: &MCPAsk{Tool: "u", Found: "true"}, AbsentAfter: time.Second}),
		"observe":   declares(Declaration{Observe: &MCPAsk{Tool: "u"}}),
		"observe's": declares(Declaration{Observe: &MCPAsk{Tool: "u", Args: map[string]string{"a": "key"}}}),
		"risk":      declares(Declaration{Risk: agent.RiskLow}),
		"harm":      declares(Declaration{Irreversible: true}),
		"undo":      declares(Declaration{Compensate: &Compensation{Tool: "void"}}),
	} {
		v := version(other)
		if seen[v] != "" {
			t.Errorf("%s has the version of %s", name, seen[v])
		}
		seen[v] = name
	}
}

func TestSelectMeansAServersTools(t *testing.T) {
	t.Parallel()
	m := &MCPServer{cfg: MCPConfig{Name: "git"}, listing: []MCPListing{
		{Tool: "log.all", Spec: Spec{Name: "git__log_all"}}, {Tool: "show", Spec: Spec{Name: "git__show"}}, {Tool: "x", Problem: "broken"},
	}}
	for entry, want := range map[string][]string{
		"git.*": {"git__log_all", "git__show"}, "git.log.all": {"git__log_all"}, "git__show": {"git__show"},
		"git.x": nil, "gi.*": nil, "*": nil, "show": nil,
	} {
		if diff := cmp.Diff(want, m.Select(entry)); diff != "" {
			t.Errorf("%s: %s", entry, diff)
		}
	}
}

func TestConfigurationIsCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	ok := MCPConfig{Name: "s", Command: []string{"true"}}
	for want, change := range map[string]func(*MCPConfig){
		"rename it":                 func(c *MCPConfig) { c.Name = "a b" },
		"either a command or":       func(c *MCPConfig) { c.URL = "http://x/" },
		"name a program":            func(c *MCPConfig) { c.Command = []string{""} },
		"not NAME=value":            func(c *MCPConfig) { c.Env = []string{"x"} },
		"https://host/path":         func(c *MCPConfig) { c.Command, c.URL = nil, "ftp://x/" },
		"move them to headers":      func(c *MCPConfig) { c.Command, c.URL = nil, "http://a:hunter22secret@x/" },
		"negative":                  func(c *MCPConfig) { c.MaxResult = -1 },
		"its class is reconcilable": func(c *MCPConfig) { c.Tools = map[string]Declaration{"t": {Class: agent.ClassReconcilable}} },
		"url cannot be read":        func(c *MCPConfig) { c.Command, c.URL = nil, "http://a:hunter22secret@[x/" },
		`mcp server "": a name is`:  func(c *MCPConfig) { c.Name = "" },
	} {
		c := ok
		change(&c)
		_, err := ConnectMCP(t.Context(), c, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
