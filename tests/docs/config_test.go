package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

const (
	someModel = "models:\n  main: {base_url: \"http://127.0.0.1:1/v1\"}\n"
	someAgent = "agents:\n  helper: {instructions: Help., model: main}\n"
)

var (
	envReference  = regexp.MustCompile(`env:([A-Z_]+)`)
	fileReference = regexp.MustCompile(`file:([a-z][a-z.-]+)`)
	modelName     = regexp.MustCompile(`(?m)^models:\n  ([a-z0-9-]+):`)
)

// load loads a configuration that may be a few sections only, in a folder with all that it refers to.
func load(t *testing.T, name, text string) *worker.Config {
	t.Helper()
	for _, m := range envReference.FindAllStringSubmatch(text, -1) {
		t.Setenv(m[1], "a-secret-of-"+m[1])
	}
	if !strings.Contains(text, "\nmodels:") && !strings.HasPrefix(text, "models:") {
		text += someModel
	}
	if !strings.Contains(text, "\nagents:") && !strings.HasPrefix(text, "agents:") {
		text += strings.Replace(someAgent, "main", modelName.FindStringSubmatch(text)[1], 1)
	}
	dir := t.TempDir()
	for _, m := range fileReference.FindAllStringSubmatch(text, -1) {
		write(t, filepath.Join(dir, m[1]), "something long enough\n")
	}
	path := filepath.Join(dir, "holdfast.yaml")
	write(t, path, text)
	c, err := worker.Load(path)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// passes checks a configuration as "holdfast config check" does, in a store that leaves nothing behind. What
// has an MCP server is loaded only: the server is not ours to start.
func passes(t *testing.T, name string, c *worker.Config) {
	t.Helper()
	for _, one := range c.Tools {
		if one.MCP != nil {
			return
		}
	}
	c.Store.URL = "mem://"
	words, err := tool.New(tool.Spec{Name: "count_words", Class: agent.ClassRead}, countNothing)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Check(t.Context(), words)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, p := range r.Problems {
		t.Errorf("%s: %v", name, p)
	}
}

func TestConfigurationsInDocumentsAreConfigurations(t *testing.T) {
	for _, b := range blocks(t, "yaml") {
		passes(t, b.String(), load(t, b.String(), b.text))
	}
}

func TestExamplesAreConfigurations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, f := range files {
		name := "examples/" + filepath.Base(filepath.Dir(f)) + "/" + filepath.Base(f)
		passes(t, name, load(t, name, file(t, name)))
	}
}

// known are the names that holdfast.yaml may have anywhere, as the decoder's tables have them.
func known(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "worker/sections*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool { return fieldsOf(t, n, names) })
	}
	if len(names) < 80 {
		t.Fatalf("only %d names found in the decoder", len(names))
	}
	return slices.Sorted(maps.Keys(names))
}

// fieldsOf adds the names of one of the decoder's tables, if n is one.
func fieldsOf(t *testing.T, n ast.Node, names map[string]bool) bool {
	t.Helper()
	lit, ok := n.(*ast.CompositeLit)
	if !ok {
		return true
	}
	if id, ok := lit.Type.(*ast.Ident); !ok || id.Name != "fields" {
		return true
	}
	for _, e := range lit.Elts {
		key, err := strconv.Unquote(e.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		names[key] = true
	}
	return true
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|")

func TestTheReferenceHasEveryFieldAndNoOther(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(file(t, "docs/configuration.md"), -1) {
		for name := range strings.SplitSeq(m[1], ".") {
			said[name] = true
		}
	}
	if d := cmp.Diff(known(t), slices.Sorted(maps.Keys(said))); d != "" {
		t.Errorf("fields of the decoder (-) and of docs/configuration.md (+):\n%s", d)
	}
}

// What is written out in the block "yaml defaults" is what applies without it.
func TestDefaultsAreWhatTheReferenceSays(t *testing.T) {
	bare := load(t, "bare", someModel+"tools:\n"+
		"  lookup: {description: Looks it up., http: {url: \"https://example.com/\"}}\n"+
		"  files: {mcp: {command: [server]}}\n"+
		"agents:\n  helper: {instructions: Help.}\n")
	found := false
	for _, b := range blocks(t, "yaml") {
		if !strings.HasPrefix(b.text, "# Every default") {
			continue
		}
		found = true
		got := load(t, b.String(), b.text)
		// Both stores lie beside their file.
		got.Store.URL, bare.Store.URL = filepath.Base(got.Store.URL), filepath.Base(bare.Store.URL)
		exported := cmp.FilterPath(func(p cmp.Path) bool {
			f, ok := p.Last().(cmp.StructField)
			return ok && p.Index(-2).Type() == reflect.TypeFor[worker.Config]() && (f.Name() == "source" || f.Name() == "mask")
		}, cmp.Ignore())
		values := cmp.Comparer(func(a, b worker.Value) bool { return a.Reveal() == b.Reveal() })
		if d := cmp.Diff(bare, got, exported, values); d != "" {
			t.Errorf("%s: what applies by default (-) and what it says (+):\n%s", b, d)
		}
	}
	if !found {
		t.Error(`no block begins with "# Every default"`)
	}
}
