package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

func goTool(t *testing.T, name string) tool.Tool {
	t.Helper()
	out, err := tool.New(tool.Spec{Name: name, Description: "Does.", Class: agent.ClassRead},
		func(context.Context, tool.Call, struct{}) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func check(t *testing.T, env map[string]string, text string, tools ...tool.Tool) *Report {
	t.Helper()
	c, err := parseWith(env, t.TempDir(), text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Check(t.Context(), tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckSaysWhatWouldBeRegistered(t *testing.T) {
	t.Parallel()
	yaml, _ := mcpYAML(t)
	text := strings.Replace(least, "{ins", "{tools: [clock, get, post, files.look, files.*], ins", 1) + `
tools:
  get: {description: Gets., http: {method: GET, url: "http://127.0.0.1:1/{id}"}, parameters: {type: object, properties: {id: {type: string}}, required: [id]}}
  post: {description: Posts., effect: idempotent, http: {url: "http://127.0.0.1:1/x", headers: {Authorization: "Bearer ${env:TOKEN}"}}}
  files: ` + yaml + "\n"
	r := check(t, map[string]string{"TOKEN": "token-value"}, text, goTool(t, "clock"))
	if !r.OK() {
		t.Fatal(r.Problems)
	}
	var got []string
	for _, x := range r.Tools {
		got = append(got, fmt.Sprintf("%s %s %s %v %t", x.Name, x.Source, x.Effect, x.Agents, x.Suggest != ""))
		if len(x.Version) != 16 {
			t.Errorf("%s has version %q", x.Name, x.Version)
		}
	}
	want := []string{
		"clock go read [hello] false",
		"files__act mcp:files once [hello] false",
		"files__look mcp:files once [hello] true",
		"get http once [hello] true",
		"post http idempotent [hello] false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"clock", "get", "post", "files__look", "files__act"}, r.Agents[0].Tools); diff != "" {
		t.Error(diff)
	}
	if !r.Store.Proven || len(r.Store.ID) != 12 {
		t.Errorf("store: %+v", r.Store)
	}
	printed := printed(t, r)
	for _, want := range []string{"files__look", "suggested: ", "effect: read", "no effect is declared for files__act, files__look, get", "ok: a worker can start"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(printed+string(b), "token-value") {
		t.Error("the report shows a secret")
	}
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCheckReportsAllThatAWorkerWouldStumbleOver(t *testing.T) {
	t.Parallel()
	yaml, _ := mcpYAML(t)
	r := check(t, nil, `store: {url: "file:///dev/null/x"}
models:
  main: {base_url: "http://127.0.0.1:1/v1"}
agents:
  hello: {instructions: Hi., tools: [get_ordr, files.lok, broken.*]}
tools:
  get_order: {description: Gets., effect: read, http: {url: "http://127.0.0.1:1/{id}"}}
  files: `+yaml+`
  broken: {mcp: {command: [/no/such/program]}}
`)
	want := []struct {
		line int
		says string
	}{
		{1, "/dev/null/x"},
		{5, `there is no tool "get_ordr"; did you mean "get_order"`},
		{5, `has no tool "lok"; did you mean "look"? it has: act, look`},
		{7, "id"},
		{9, "/no/such/program"},
	}
	if len(r.Problems) != len(want) {
		t.Fatalf("problems: %v", r.Problems)
	}
	for i, w := range want {
		if p := r.Problems[i]; p.Line != w.line || !strings.Contains(p.Message, w.says) {
			t.Errorf("problem %d is %v, want line %d with %q", i, p, w.line, w.says)
		}
	}
	if !strings.Contains(printed(t, r), "not ok: 5 to mend") {
		t.Errorf("the text is\n%s", printed(t, r))
	}
}

func TestTwoToolsOfOneNameAreAProblem(t *testing.T) {
	t.Parallel()
	r := check(t, nil, least+`tools: {clock: {description: x, effect: read, http: {url: "http://127.0.0.1:1/"}}}`, goTool(t, "clock"))
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "taken by another tool") {
		t.Errorf("problems: %v", r.Problems)
	}
}

func TestCheckSaysWhatBecomesOfSessionsAndWhichDeploymentItIs(t *testing.T) {
	t.Parallel()
	r := check(t, nil, least+"  other: {instructions: Say less., upgrade: pin}\npolicy: {upgrade: ask}\nworker: {deployment: agents}\n")
	if !r.OK() {
		t.Fatal(r.Problems)
	}
	text := printed(t, r)
	for _, want := range []string{"deployment     agents, build " + BuildID() + "\n", "hello  model main  upgrade ask  tools -\n", "other  model main  upgrade pin  tools -\n", "upgrade ask\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"deployment":"agents"`, `"name":"other","model":"main","upgrade":"pin"`, `"onFailure":"keep","upgrade":"ask"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%q is not in\n%s", want, b)
		}
	}
}
