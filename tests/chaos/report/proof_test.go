package report_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
)

const (
	root  = "../../.."
	proof = "docs/proof.md"
)

// file reads a file of the repository. The test cache sees that.
func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// table returns the lines of the first table below a heading of docs/proof.md, each as its columns.
func table(t *testing.T, heading string) [][]string {
	t.Helper()
	_, below, found := strings.Cut(file(t, proof), "\n### "+heading+"\n")
	if !found {
		t.Fatalf("docs/proof.md has no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n#")
	var out [][]string
	for _, line := range strings.Split(below, "\n") {
		if strings.HasPrefix(line, "| ") {
			out = append(out, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	if len(out) < 3 {
		t.Fatalf("docs/proof.md has no table below %q", heading)
	}
	return out[2:]
}

// hold holds a table of the page, of names and sentences, against the code.
func hold(t *testing.T, heading string, want [][]string) {
	t.Helper()
	got := table(t, heading)
	if *update {
		page := strings.Replace(file(t, proof), lines(got), lines(want), 1)
		if err := os.WriteFile(filepath.Join(root, proof), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		got = table(t, heading)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s, %s (-code +page), -update writes it anew:\n%s", proof, heading, d)
	}
}

func lines(table [][]string) string {
	out := ""
	for _, line := range table {
		out += "| " + strings.Join(line, " | ") + " |\n"
	}
	return out
}

func TestTheBoundariesOnThePageAreThoseOfTheCode(t *testing.T) {
	var want [][]string
	for _, p := range failpoint.Points() {
		want = append(want, []string{"`" + p.Name + "`", p.Meaning})
	}
	hold(t, "The boundaries", want)
}

func TestTheInvariantsOnThePageAreThoseOfTheWitnesses(t *testing.T) {
	var want [][]string
	for _, i := range witness.Invariants() {
		want = append(want, []string{"`" + i.Name + "`", i.Sentence})
	}
	hold(t, "The witnesses and what they must agree on", want)
}

func TestTheFaultsOnThePageAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, c := range cell.All() {
		for _, f := range c.Faults {
			want = append(want, "`"+string(f.Kind)+"`")
		}
	}
	for _, line := range table(t, "The faults") {
		got = append(got, line[0])
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(slices.Compact(want), got); d != "" {
		t.Errorf("docs/proof.md (-table of cells +page):\n%s", d)
	}
}

func TestTheDestinationsAndCellsThatThePageNamesAreThere(t *testing.T) {
	t.Parallel()
	page := file(t, proof)
	all := cell.All()
	for _, c := range all {
		for _, name := range []string{string(c.Destination), string(c.Scenario)} {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/proof.md does not name %s", name)
			}
		}
	}
	named := regexp.MustCompile(`(?:-only |\x60)([a-z-]*[/@][a-z./@_:0-9-]+)`).FindAllStringSubmatch(page, -1)
	n := 0
	for _, m := range named {
		if strings.Contains(m[1], "@") {
			n++
			if !slices.ContainsFunc(all, func(c cell.Cell) bool { return strings.Contains(c.Name(), m[1]) }) {
				t.Errorf("docs/proof.md names the cell %q, and there is none", m[1])
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d cells found on the page", n)
	}
}

func TestTheFlagsOnThePageAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	command := file(t, "tests/chaos/main.go")
	shown := regexp.MustCompile(`(?:CHAOSFLAGS="?|[ \x60])-([a-z]+)`).FindAllStringSubmatch(file(t, proof), -1)
	n := 0
	for _, m := range shown {
		n++
		if m[1] != "help" && !strings.Contains(command, `, "`+m[1]+`", `) {
			t.Errorf("docs/proof.md shows the flag -%s, which tests/chaos does not have", m[1])
		}
	}
	if n < 8 {
		t.Errorf("only %d flags found on the page", n)
	}
}

func TestThePlaceInTheCodeThatThePageBreaksIsThere(t *testing.T) {
	t.Parallel()
	const place = "standing.Token != d.Token"
	if !strings.Contains(file(t, proof), place) || !strings.Contains(file(t, "activities/dispatch.go"), "case "+place+":") {
		t.Errorf("docs/proof.md and activities/dispatch.go do not both have %q", place)
	}
}
