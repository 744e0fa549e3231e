package failpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPlaceIsNamedOnceAndExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Points() {
		if p.Name == "" || p.Meaning == "" || seen[p.Name] {
			t.Errorf("place %q: want a unique name and a meaning", p.Name)
		}
		seen[p.Name] = true
	}
	for _, name := range constants(t) {
		if !seen[name] {
			t.Errorf("place %q is not in the table", name)
		}
	}
}

// marked says in which file each place is marked. A place in the table that nobody passes would be a lie, and so would
// be one that is marked somewhere else as well.
var marked = map[string][]string{
	WorkerReady:              {"worker/run.go"},
	ModelBeforeRequest:       {"activities/ask.go"},
	ModelAfterRequest:        {"activities/ask.go"},
	ModelAfterAnswer:         {"activities/ask.go"},
	ModelAfterAdoption:       {"activities/model.go"},
	ApprovalBeforeJudgement:  {"activities/judge.go"},
	ApprovalAfterJudgement:   {"activities/judge.go"},
	ToolApproved:             {"activities/tool.go"},
	ToolBeforeAdmission:      {"activities/tool.go"},
	ToolBeforeDispatch:       {"activities/dispatch.go"},
	ToolAfterDispatch:        {"activities/dispatch.go"},
	ToolLastCheck:            {"activities/dispatch.go"},
	ToolAfterSend:            {"activities/dispatch.go"},
	ToolAfterCommit:          {"activities/dispatch.go"},
	ToolAfterAdoption:        {"activities/dispatch.go"},
	UndoAfterPlan:            {"activities/plan.go"},
	UndoBeforeAdmission:      {"activities/tool.go"},
	UndoBeforeDispatch:       {"activities/dispatch.go"},
	UndoAfterDispatch:        {"activities/dispatch.go"},
	UndoAfterCommit:          {"activities/dispatch.go"},
	UndoAfterAdoption:        {"activities/dispatch.go"},
	ActivityBeforeCompletion: {"internal/failpoint/grpc.go"},
	ActivityAfterCompletion:  {"internal/failpoint/grpc.go"},
	TaskBeforeCompletion:     {"internal/failpoint/grpc.go"},
	TaskAfterCompletion:      {"internal/failpoint/grpc.go"},
	HandoverBefore:           {"internal/failpoint/grpc.go"},
	HandoverAfter:            {"internal/failpoint/grpc.go"},
	EndingBefore:             {"internal/failpoint/grpc.go"},
	EndingAfter:              {"internal/failpoint/grpc.go"},
	ContinueBefore:           {"internal/failpoint/grpc.go"},
	ContinueAfter:            {"internal/failpoint/grpc.go"},
	StoreBeforeWrite:         {"store/file.go"},
	StoreAfterWrite:          {"store/file.go"},
	StoreBeforeRead:          {"store/fileread.go"},
}

func TestEveryPlaceIsMarkedWhereItIsExpectedAndNowhereElse(t *testing.T) {
	t.Parallel()
	places := constants(t)
	got := map[string][]string{}
	for name, file := range sources(t) {
		for place, times := range marks(file, places, name == "internal/failpoint/grpc.go") {
			for range times {
				got[place] = append(got[place], name)
			}
		}
	}
	if diff := cmp.Diff(marked, got); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	if len(marked) != len(Points()) {
		t.Errorf("%d places are expected somewhere, the table has %d", len(marked), len(Points()))
	}
}

// constants returns the places by the names of their constants.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "points.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for n := range ast.Preorder(file) {
		if v, ok := n.(*ast.ValueSpec); ok {
			if out[v.Names[0].Name], err = strconv.Unquote(v.Values[0].(*ast.BasicLit).Value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// sources returns the files that can mark a place: what is built into a worker. Of this package that is one.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	const root = "../.."
	out := map[string]*ast.File{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"tests", "tools", "bin", "docs", "examples"}, name) || strings.HasPrefix(name, ".") && name != "."):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		case filepath.Dir(name) == "internal/failpoint" && name != "internal/failpoint/grpc.go":
			return nil
		}
		out[name], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// marks counts the places that a file names. One that an action's compensation has as well is named once for both.
func marks(file *ast.File, places map[string]string, inside bool) map[string]int {
	out := map[string]int{}
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.Ident:
			if inside && places[n.Name] != "" {
				out[places[n.Name]] = 1 // its requests are told apart in one place
			}
		case *ast.SelectorExpr:
			if place := places[n.Sel.Name]; place != "" && isFailpoint(n.X) {
				out[place]++
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !isFailpoint(f.X) || !strings.HasPrefix(f.Sel.Name, "Effect") {
				continue
			}
			if arg, ok := n.Args[0].(*ast.SelectorExpr); ok {
				out["undo."+strings.TrimPrefix(places[arg.Sel.Name], "tool.")]++
			}
		}
	}
	return out
}

func isFailpoint(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "failpoint"
}
