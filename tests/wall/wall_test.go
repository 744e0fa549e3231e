package wall

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// load asks the go command for every package of the module and all that they reach.
func load(t *testing.T) []node {
	t.Helper()
	read(t, "../..")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Standard", "./...")
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var graph []node
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var n node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return graph
		}
		if err != nil {
			t.Fatal(err)
		}
		graph = append(graph, n)
	}
}

// read opens every Go file below a folder: the test cache sees what this process opens and not what the go
// command does, and would go on saying "ok" after a bad import.
func read(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportsRunDownwardsAndWorkflowsReachNoIO(t *testing.T) {
	t.Parallel()
	graph := load(t)
	for _, v := range violations(graph) {
		t.Error(v)
	}
	// A wall around nothing would hold as well.
	for _, pkg := range deterministic {
		if !slices.ContainsFunc(graph, func(n node) bool { return n.ImportPath == module+"/"+pkg }) {
			t.Errorf("package %s is not in the graph", pkg)
		}
	}
}

func TestTheWallSeesABadGraph(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		from, to string
		standard bool
		want     string
	}{
		"file in a workflow":          {"workflows", "os", true, `workflows runs inside workflows and imports "os"`},
		"network in the vocabulary":   {"agent", "net/http", true, `agent runs inside workflows and imports "net/http"`},
		"randomness in the ledger":    {"effect", "math/rand/v2", true, `effect runs inside workflows and imports "math/rand/v2"`},
		"client in a workflow":        {"workflows", "go.temporal.io/sdk/client", false, `imports "go.temporal.io/sdk/client"`},
		"longer name of a known one":  {"workflows", "go.temporal.io/sdk/workflowservice", false, `imports "go.temporal.io/sdk/workflowservice"`},
		"activities from workflows":   {"workflows", module + "/activities", false, "does not stand below"},
		"workflows from activities":   {"activities", module + "/workflows", false, "does not stand below"},
		"store from a workflow":       {"workflows", module + "/store", false, "workflows runs inside workflows and imports store, which does not"},
		"I/O one package further":     {"versioning", module + "/internal/devserver", false, "versioning runs inside workflows and imports internal/devserver, which does not"},
		"a neighbour":                 {"policy", module + "/tool", false, "policy imports tool, which does not stand below it"},
		"upwards":                     {"store", module + "/transcript", false, "store imports transcript, which does not stand below it"},
		"agent imports something":     {"agent", module + "/effect", false, "agent imports effect, which does not stand below it"},
		"main from below":             {"starter", module, false, "starter imports main"},
		"tests from below":            {"starter", module + "/tests/chaos", false, "starter imports tests/chaos"},
		"a prop in the product":       {"worker", module + "/internal/modeltest", false, "there for the demo and the tests only"},
		"a package nobody has placed": {"helpers", "fmt", true, "helpers has no storey"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			graph := []node{
				{ImportPath: module + "/" + c.from, Imports: []string{"fmt", c.to}},
				{ImportPath: "fmt", Standard: true},
				{ImportPath: c.to, Standard: c.standard},
			}
			found := violations(graph)
			if !slices.ContainsFunc(found, func(v string) bool { return strings.Contains(v, c.want) }) {
				t.Errorf("violations %q, want one with %q", found, c.want)
			}
		})
	}
}

func TestTheWallLetsAGoodGraphPass(t *testing.T) {
	t.Parallel()
	graph := []node{
		{ImportPath: module, Imports: []string{"os", module + "/starter"}},
		{ImportPath: module + "/starter", Imports: []string{"net", module + "/worker", module + "/internal/demo", "github.com/spf13/cobra"}},
		{ImportPath: module + "/internal/demo", Imports: []string{module + "/internal/payments"}},
		{ImportPath: module + "/internal/payments/bank", Imports: []string{module + "/internal/payments", module + "/tool"}},
		{ImportPath: module + "/worker", Imports: []string{module + "/workflows", module + "/activities"}},
		{ImportPath: module + "/activities", Imports: []string{module + "/store", "os"}},
		{ImportPath: module + "/workflows", Imports: []string{module + "/effect", "time", "go.temporal.io/sdk/workflow", "go.temporal.io/api/enums/v1"}},
		{ImportPath: module + "/effect", Imports: []string{module + "/agent"}},
		{ImportPath: module + "/tests/chaos", Imports: []string{module + "/internal/payments", module + "/tests/servers"}},
		{ImportPath: "os", Standard: true},
		{ImportPath: "net", Standard: true},
		{ImportPath: "time", Standard: true},
	}
	if found := violations(graph); len(found) > 0 {
		t.Errorf("violations %q, want none", found)
	}
}
