package report_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/tests/chaos/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// row is a cell in which all is well.
func row(boundary, fault, destination string) report.Row {
	return report.Row{
		Cell: "pay/" + destination + "/" + fault + "@" + boundary, Scenario: "pay", Destination: destination, Boundary: boundary, Fault: fault,
		Expect: "same", Expected: 2, Applied: 2, Ledger: map[string]int{"committed": 2}, Status: []string{"done", "done"}, Struck: true,
		Recovery: 2100 * time.Millisecond, Wall: 9 * time.Second,
	}
}

// full has something in every section.
func full() report.Report {
	twice := row("tool.after_commit:1", "kill", "http-keyed")
	twice.Recovery = 4400 * time.Millisecond
	twice.Naive = &report.Naive{Applied: 3, Duplicates: 1, Status: "done", Extra: 1}
	unknown := row("tool.after_send:1", "kill", "mcp-blind")
	unknown.Applied, unknown.Ledger, unknown.Recovery = 1, map[string]int{"uncertain": 1, "committed": 1}, 5200*time.Millisecond
	paid := row("model.after_answer:2", "kill", "http-asked")
	paid.Extra, paid.Naive = 1, &report.Naive{Applied: 1, Lost: 1, Status: "done"}
	calm := row("", "clock 1h", "http-keyed")
	calm.Recovery, calm.Naive = 0, &report.Naive{Applied: 2, Status: "stuck"}
	changed := row("tool.before_admission:2", "revoke", "http-keyed")
	changed.Expect, changed.Applied, changed.Ledger, changed.Recovery = "agree", 1, map[string]int{"committed": 1, "denied": 1}, 0
	idle := row("continue.after:1", "kill", "http-keyed")
	idle.Struck, idle.Recovery = false, 0
	broken := row("undo.after_commit:1", "kill", "http-blind")
	broken.Applied, broken.Duplicates = 3, 1
	broken.Violations = []string{"once: key a~1|b was made *twice*\nby `two` <attempts>", "agree: the ledger says committed 2, the destination 3"}
	open := row("tool.last_check:1", "freeze", "http-blind")
	open.Expect, open.Applied, open.Duplicates, open.Recovery = "window", 3, 1, 0
	r := report.Report{
		When: time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC), Commit: "0123abcd", CPUs: 2, Took: 24*time.Minute + 9*time.Second + 400*time.Millisecond,
		Bound: 5 * time.Second,
		Boundaries: []string{
			"worker.ready", "model.after_answer", "tool.before_admission", "tool.last_check", "tool.after_send", "tool.after_commit",
			"undo.after_commit", "continue.after",
		},
		Rows:    []report.Row{calm, twice, open, unknown, broken, idle, paid, changed},
		LeftOut: []report.Omission{{Boundary: "worker.ready", Fault: "freeze", Why: "nothing has begun | nothing can be lost"}, {Destination: "mcp-keyed", Why: "as over HTTP"}},
		Invariants: []report.Invariant{
			{Name: "once", Says: "no effect is made twice", Checked: 7},
			{Name: "agree", Says: "the four witnesses agree", Checked: 8},
			{Name: "on", Says: "its name begins another's", Checked: 1},
		},
		Window: report.WidthOf([]time.Duration{90 * time.Microsecond, 30 * time.Microsecond, 1500 * time.Microsecond}),
		Soak:   &report.Soak{Seed: "18446744073709551615", Commit: "4567cdef", Took: 2*time.Hour + 3*time.Minute},
	}
	r.Soak.Add("-seed 18446744073709551615 -first 0 -soak 1", row("tool.after_send:1", "kill", "mcp-blind"))
	wrong := row("tool.after_send:2", "kill + hang 4s", "http-asked")
	wrong.Lost, wrong.Struck, wrong.Violations = 1, false, []string{"once: lost"}
	r.Soak.Add("-seed 18446744073709551615 -first 1 -soak 1", wrong)
	return r
}

func markdown(t *testing.T, r report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Markdown(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func inJSON(t *testing.T, r report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.JSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got), -update writes it anew:\n%s", path, d)
	}
}

func TestAReportIsWrittenForPeopleAndForPrograms(t *testing.T) {
	t.Parallel()
	golden(t, "full.md", markdown(t, full()))
	golden(t, "full.json", inJSON(t, full()))
}

func TestAReportOfNothingSaysSo(t *testing.T) {
	t.Parallel()
	golden(t, "empty.md", markdown(t, report.Report{}))
}

func TestWhatWasSavedIsRenderedAgain(t *testing.T) {
	t.Parallel()
	back, err := report.ParseJSON(strings.NewReader(inJSON(t, full())))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(full(), back); d != "" {
		t.Errorf("what came back (-want +got):\n%s", d)
	}
}

func TestASavedReportThatIsNotOneIsRefused(t *testing.T) {
	t.Parallel()
	whole := inJSON(t, full())
	for name, text := range map[string]string{
		"nothing":           "",
		"half":              whole[:len(whole)/2],
		"something follows": whole + "{}",
		"an unknown field":  strings.Replace(whole, `"violations"`, `"violation"`, 1),
	} {
		if _, err := report.ParseJSON(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

var escaped = regexp.MustCompile(`\\.`)

// bare is a line without what is escaped, so that only what Markdown takes for a sign is left of its signs.
func bare(line string) string { return escaped.ReplaceAllString(line, "") }

func TestNoTextBreaksATable(t *testing.T) {
	t.Parallel()
	r := full()
	for _, s := range []string{"a|b", `a\|b`, `a\\|b`, "a\nb", "a\r\n| b |", "`a|b`", "*a*", "~a~", "<b>", "&lt;", "[a](b)", `\`} {
		bad := row(s, s, s)
		bad.Cell, bad.Status, bad.Ledger, bad.Violations = s, []string{s}, map[string]int{s: 1}, []string{s}
		bad.Naive = &report.Naive{Status: s}
		r.Rows = append(r.Rows, bad)
		r.Soak.Add(s, bad)
		r.LeftOut = append(r.LeftOut, report.Omission{Boundary: s, Fault: s, Destination: s, Why: s})
		r.Invariants = append(r.Invariants, report.Invariant{Name: s, Says: s})
		r.Boundaries = append(r.Boundaries, s+"!")
	}
	want, rows := 0, 0
	for i, line := range strings.Split(markdown(t, r), "\n") {
		switch {
		case !strings.HasPrefix(line, "|"):
			want = 0
		case want == 0:
			want = strings.Count(bare(line), "|")
		case strings.Count(bare(line), "|") != want:
			t.Errorf("line %d has %d columns, want %d: %s", i+1, strings.Count(bare(line), "|"), want, line)
		default:
			rows++
		}
		for _, sign := range []string{"*a*", "~a~", "<b>", "&lt; ", "`a|", "[a]"} {
			if strings.Contains(strings.ReplaceAll(bare(line), "**", ""), sign) {
				t.Errorf("line %d lets %q pass as Markdown: %s", i+1, sign, line)
			}
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows of tables", rows)
	}
}

func TestWhatIsBrokenStandsOutAndComesFirst(t *testing.T) {
	t.Parallel()
	page := markdown(t, full())
	_, cells, _ := strings.Cut(page, "## Every cell")
	_, first, _ := strings.Cut(cells, "--- |\n")
	if !strings.HasPrefix(first, "| **undo.after_commit:1** |") {
		t.Errorf("the first cell is not the broken one: %.200s", first)
	}
	for _, want := range []string{"**An invariant is broken in 1 of 8 cells.**", "| **pay/http-asked/kill + hang 4s@tool.after_send:2** | **once: lost** | **-seed 18446744073709551615 -first 1 -soak 1** |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	well := full()
	well.Rows, well.Soak = well.Rows[:1], nil
	if page := markdown(t, well); strings.Contains(page, "Violations") || strings.Contains(page, "is broken in") {
		t.Errorf("a report in which all is well says otherwise:\n%s", page)
	}
}

func TestTheOrderOfRowsIsThatOfATurnHoweverTheyCame(t *testing.T) {
	t.Parallel()
	r := report.Report{Boundaries: []string{"tool.last_check", "tool.after_send"}}
	for _, place := range []string{"", "zeta:1", "tool.after_send:10", "tool.after_send:3-12", "alpha", "tool.after_send:2", "tool.last_check:1"} {
		r.Rows = append(r.Rows, row(place, "hang", "http-keyed"), row(place, "freeze", "http-keyed"), row(place, "freeze", "http-asked"))
	}
	forth := markdown(t, r)
	for i, j := 0, len(r.Rows)-1; i < j; i, j = i+1, j-1 {
		r.Rows[i], r.Rows[j] = r.Rows[j], r.Rows[i]
	}
	if d := cmp.Diff(forth, markdown(t, r)); d != "" {
		t.Errorf("the order in which cells ended shows:\n%s", d)
	}
	var got []string
	for _, line := range strings.Split(forth[strings.Index(forth, "## Every cell"):], "\n") {
		if words := strings.Split(line, " | "); len(words) > 2 && words[2] == "http-asked" {
			got = append(got, strings.TrimPrefix(words[0], "| "))
		}
	}
	want := []string{"tool.last_check:1", "tool.after_send:2", "tool.after_send:3-12", "tool.after_send:10", "alpha", "zeta:1", "the whole run"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("boundaries (-want +got):\n%s", d)
	}
}

func TestRecoveryIsThatOfKillsAtABoundary(t *testing.T) {
	t.Parallel()
	took := func(boundary, fault string, seconds int) report.Row {
		r := row(boundary, fault, "http-keyed")
		r.Recovery = time.Duration(seconds) * time.Second
		return r
	}
	got := report.Recoveries([]report.Row{
		took("b:1", "kill", 6), took("b:2", "kill", 1), took("b:1", "kill", 5), took("b", "kill", 2),
		took("a:1", "kill", 3), took("a:1", "kill", 0), took("a:1", "freeze", 9), took("a:1", "kill + kill at b:1", 9), took("a:1", "kill + word duplicate", 9), took("a:2", "cold", 9), took("a:2", "renew + kill + cold", 3), took("c", "crash", 9),
	}, 5*time.Second)
	want := []report.Recovery{
		{Boundary: "a", Kills: 2, Median: 3 * time.Second, Worst: 3 * time.Second, Bound: 5 * time.Second},
		{Boundary: "b", Kills: 4, Median: 3500 * time.Millisecond, Worst: 6 * time.Second, Bound: 5 * time.Second, Over: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("recoveries (-want +got):\n%s", d)
	}
}

func TestAWidthOfNothingIsNone(t *testing.T) {
	t.Parallel()
	if w := report.WidthOf(nil); w != nil {
		t.Errorf("the width of nothing is %+v", w)
	}
}

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func() error{
		"Markdown": func() error { return report.Markdown(fullDisk{}, full()) },
		"JSON":     func() error { return report.JSON(fullDisk{}, full()) },
	} {
		if err := write(); !errors.Is(err, errFull) {
			t.Errorf("%s: %v, want %v", name, err, errFull)
		}
	}
}

var errFull = errors.New("no space")

// A fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
