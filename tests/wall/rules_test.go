package wall

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/holdfast-run/holdfast"

// storeys says how high each package of ours stands. A package may import only what stands lower.
var storeys = map[string]int{
	"agent":              0,
	"internal/failpoint": 0,

	"internal/expr":      1,
	"internal/secret":    1,
	"internal/openai":    1,
	"internal/devserver": 1,
	"internal/payments":  1,
	"internal/modeltest": 1,

	"approval":           2,
	"approval/signature": 3,
	"effect":             2,
	"store":              2,

	"tool":         4,
	"compensation": 4,
	"policy":       4,
	"transcript":   4,
	"versioning":   4,

	"versioning/replay":      5,
	"internal/payments/bank": 5,

	"workflows":  5,
	"activities": 5,

	"worker":        6,
	"deploy":        7,
	"internal/demo": 7,
	"starter":       8,
	"":              9, // main
}

// aboveAll is where tests/ and examples/ stand: nothing imports them.
const aboveAll = 10

// deterministic packages run inside workflows.
var deterministic = []string{"agent", "approval", "effect", "versioning", "workflows"}

// pure are the standard packages that a deterministic package may import: none does I/O by itself, knows
// the machine, or draws anything. time is there for its types; forbidigo keeps its clock out.
var pure = []string{
	"bytes", "cmp", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json",
	"errors", "fmt", "hash", "io", "iter", "maps", "math", "math/big", "math/bits", "regexp", "slices", "sort",
	"strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8",
}

// known are the packages of others that a deterministic package may import; a slash at the end takes all
// below. Of the SDK only what workflow code is written against: no client, no activity.
var known = []string{
	"github.com/gowebpki/jcs",
	"go.temporal.io/api/",
	"go.temporal.io/sdk/converter",
	"go.temporal.io/sdk/log",
	"go.temporal.io/sdk/temporal",
	"go.temporal.io/sdk/worker",
	"go.temporal.io/sdk/workflow",
	"golang.org/x/text/",
}

// props are what the demo and the tests play the outside world with; the product must not lean on them.
var props = []string{"internal/payments", "internal/payments/bank", "internal/modeltest"}

// A node is one package as "go list" describes it, without what only its tests import.
type node struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// violations returns what is wrong with a graph, a sentence each, in the order of the nodes.
func violations(graph []node) []string {
	standard := map[string]bool{}
	for _, n := range graph {
		standard[n.ImportPath] = n.Standard
	}
	var found []string
	for _, n := range graph {
		from, ours := relative(n.ImportPath)
		if !ours {
			continue
		}
		if _, ok := storey(from); !ok {
			found = append(found, fmt.Sprintf("%s has no storey: give it one in tests/wall", name(from)))
			continue
		}
		for _, path := range n.Imports {
			if why := judge(from, path, standard[path]); why != "" {
				found = append(found, why)
			}
		}
	}
	return found
}

// judge says what is wrong with one import, if something is.
func judge(from, path string, standard bool) string {
	to, ours := relative(path)
	inside := slices.Contains(deterministic, from)
	switch {
	case ours && !below(to, from):
		return fmt.Sprintf("%s imports %s, which does not stand below it", name(from), name(to))
	case ours && slices.Contains(props, to) && !mayUseProps(from):
		return fmt.Sprintf("%s imports %s, which is there for the demo and the tests only", name(from), name(to))
	case ours && inside && !slices.Contains(deterministic, to):
		return fmt.Sprintf("%s runs inside workflows and imports %s, which does not", name(from), name(to))
	case !ours && standard && inside && !slices.Contains(pure, path):
		return fmt.Sprintf("%s runs inside workflows and imports %q: if that is pure, say so in tests/wall", name(from), path)
	case !ours && !standard && inside && !slices.ContainsFunc(known, func(k string) bool {
		return path == k || strings.HasSuffix(k, "/") && strings.HasPrefix(path, k)
	}):
		return fmt.Sprintf("%s runs inside workflows and imports %q: if that is pure, say so in tests/wall", name(from), path)
	}
	return ""
}

func mayUseProps(from string) bool {
	s, _ := storey(from)
	return from == "internal/demo" || s == aboveAll || slices.Contains(props, from)
}

func below(to, from string) bool {
	t, okTo := storey(to)
	f, okFrom := storey(from)
	if t == aboveAll && f == aboveAll {
		return true // helpers of the tests
	}
	return okTo && okFrom && t < f
}

func storey(pkg string) (int, bool) {
	if top, _, _ := strings.Cut(pkg, "/"); top == "tests" || top == "examples" {
		return aboveAll, true
	}
	s, ok := storeys[pkg]
	return s, ok
}

// relative returns a package's path below the module, "" for main, and whether it is ours at all.
func relative(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func name(pkg string) string {
	if pkg == "" {
		return "main"
	}
	return pkg
}
