package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A summary is the rows that the promise covers in sum, beside the plain loop.
type summary struct {
	Holdfast Totals `json:"holdfast"`
	Shared   Totals `json:"holdfast_in_the_plain_loops_cells"`
	Plain    Totals `json:"plain_loop"`
	Window   Totals `json:"window"` // of the cells that the promise does not cover
}

func summarize(rows []Row) summary {
	promised, window := split(rows)
	var shared []Row
	for _, r := range promised {
		if r.Naive != nil {
			shared = append(shared, r)
		}
	}
	return summary{Sum(promised), Sum(shared), Sum(plain(promised)), Sum(window)}
}

// Markdown writes a report as a page for people, the figures that matter first.
func Markdown(w io.Writer, r Report) error {
	p := &page{}
	p.say("# What became of each cell")
	p.say("Written by `make chaos`. [proof.md](proof.md) says what the words mean, what is promised, and how to run it yourself.")
	p.say("Commit %s, %s, %d CPUs, took %s.", text(cmp.Or(r.Commit, "unknown")), r.When.UTC().Format("2006-01-02 15:04 UTC"), r.CPUs, r.Took.Round(time.Second))
	if len(r.Rows) == 0 && r.Soak == nil {
		p.say("**No cell was run.**")
	}
	if missing := r.Asked - len(r.Rows); r.Soak == nil && missing > 0 {
		p.say("**Of %d cells that were asked for %d are missing: the run was stopped, or the harness failed in them.** %s", r.Asked, missing, text(strings.Join(r.Failed, ", ")))
	}
	sorted := r.sorted()
	if len(sorted) > 0 {
		p.summary(r)
	}
	p.violations(r, sorted)
	p.recoveries(r)
	p.window(r.Window, sorted)
	p.soak(r.Soak)
	p.invariants(r)
	p.cells(sorted)
	p.leftOut(r.LeftOut)
	_, err := w.Write(p.Bytes())
	return err
}

// sorted are the rows with those first in which something is broken, then as a turn passes their boundaries.
func (r Report) sorted() []Row {
	broken := func(r Row) int { return -min(len(r.Violations), 1) }
	passing := func(r Row) int {
		_, n, _ := strings.Cut(r.Boundary, ":")
		n, _, _ = strings.Cut(n, "-") // of a range the first
		i, _ := strconv.Atoi(n)
		return i
	}
	return slices.SortedStableFunc(slices.Values(r.Rows), func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(broken(a), broken(b)), cmp.Compare(r.rank(place(a)), r.rank(place(b))), cmp.Compare(place(a), place(b)),
			cmp.Compare(passing(a), passing(b)), cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Destination, b.Destination),
			cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Cell, b.Cell))
	})
}

// rank is when a turn passes a boundary. Those that are not listed come after, then what is about the whole run.
func (r Report) rank(boundary string) int {
	switch i := slices.Index(r.Boundaries, boundary); {
	case boundary == "":
		return len(r.Boundaries) + 1
	case i < 0:
		return len(r.Boundaries)
	default:
		return i
	}
}

// A page is Markdown in the making.
type page struct{ bytes.Buffer }

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n\n", args...) }

// A line of a table; a loud one stands out.
type line struct {
	cells []string
	loud  bool
}

// table writes lines under columns; a column whose name begins with # holds numbers.
func (p *page) table(columns []string, lines []line) {
	var rule strings.Builder
	for _, c := range columns {
		name, number := strings.CutPrefix(c, "#")
		fmt.Fprintf(p, "| %s ", text(name))
		if number {
			rule.WriteString("| --: ")
		} else {
			rule.WriteString("| --- ")
		}
	}
	fmt.Fprintf(p, "|\n%s|\n", rule.String())
	for _, l := range lines {
		for _, c := range l.cells {
			if c = text(c); l.loud && c != "" {
				c = "**" + c + "**"
			}
			fmt.Fprintf(p, "| %s ", c)
		}
		p.WriteString("|\n")
	}
	p.WriteString("\n")
}

// text takes from words whatever Markdown would take for a sign of its own. What stands in violations comes from
// anywhere.
func text(s string) string {
	return strings.TrimSpace(signs.Replace(s))
}

var signs = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "`", "\\`", `*`, `\*`, `~`, `\~`, `[`, `\[`, `<`, `&lt;`, `&`, `&amp;`, "\r\n", " ", "\n", " ", "\r", " ")

// span is a duration to as many digits as matter.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// counted writes a map of numbers, "committed 2, uncertain 1".
func counted(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(out, ", ")
}
