package starter

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// shownFindings is how many places of one history are printed; what follows the first often comes of it.
const shownFindings = 3

// printReplay prints what a replay found: what passes in a line for each type, and whole what does not.
func (a *App) printReplay(r deploy.Report) {
	for _, t := range r.Types {
		fmt.Fprintf(a.Out, "%s: %s, %d replay, %s%s\n", line(t.Type, 64), histories(t.Runs), t.Passed, a.failing(t.Failed), numbersText(t.Numbers))
	}
	if r.NotRun > 0 {
		fmt.Fprintf(a.Out, "not begun: %s, whose code has not run yet\n", count(r.NotRun, "run"))
	}
	for _, f := range r.Failures {
		a.printFailure(f)
	}
	for _, u := range r.Unread {
		fmt.Fprintf(a.Out, "%s %s%s\n    %s\n", a.paint(a.Out, red, "could not be looked at:"), sourceText(u.Source), runText(u.Run), line(u.Reason, 4*lineLimit))
	}
}

func histories(n int) string {
	if n == 1 {
		return "1 history"
	}
	return fmt.Sprintf("%d histories", n)
}

func (a *App) failing(n int) string {
	if n == 0 {
		return "0 do not"
	}
	return a.paint(a.Out, red, fmt.Sprintf("%d %s not", n, do(n)))
}

// numbersText counts histories by the change number that they carry.
func numbersText(numbers map[int]int) string {
	parts := make([]string, 0, len(numbers))
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		name := fmt.Sprintf("number %d", n)
		if n == 0 {
			name = "no number"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, numbers[n]))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func runText(run string) string {
	if run == "" {
		return ""
	}
	return ", run " + line(run, 64)
}

func sourceText(source string) string {
	if source == deploy.Stdin {
		return "standard input"
	}
	return line(source, 200)
}

func (a *App) printFailure(f deploy.Failure) {
	more := runText(f.Run)
	if f.Number != 0 {
		more += fmt.Sprintf(", number %d", f.Number)
	}
	if f.Source != f.Workflow {
		more += ", in " + sourceText(f.Source)
	}
	fmt.Fprintf(a.Out, "%s %s %s%s\n", a.paint(a.Out, red, "does not replay:"), line(f.Type, 64), line(f.Workflow, 200), more)
	advice := ""
	for i, found := range f.Findings {
		if i == shownFindings {
			fmt.Fprintf(a.Out, "    %s further on, which may come of that; -o json lists them\n", count(len(f.Findings)-i, "difference"))
			break
		}
		printFinding(a.Out, found)
		if found.Advice != "" && advice == "" {
			advice = found.Advice
		}
	}
	if advice != "" {
		fmt.Fprintf(a.Out, "    what to do: %s\n", line(advice, 4*lineLimit))
	}
}

func printFinding(w io.Writer, f replay.Finding) {
	at := "    "
	if f.Event != 0 {
		at = fmt.Sprintf("    event %d: ", f.Event)
	}
	fmt.Fprintf(w, "%s%s\n", at, line(f.Cause, 4*lineLimit))
	if f.Wanted != "" || f.Recorded != "" {
		fmt.Fprintf(w, "        history has  %s\n        the code has %s\n", line(f.Recorded, 2*lineLimit), line(f.Wanted, 2*lineLimit))
	}
}
