package starter

import (
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/deploy"
)

// printCheck prints what a check found besides the replay: what would break, what changes, and what to do next.
func (a *App) printCheck(r deploy.CheckReport, next []string) {
	if r.Replay.Total == 0 {
		fmt.Fprintln(a.Out, "no open session and no open turn: nothing could break")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.Out, "%s %s\n", a.paint(a.Out, red, "error:"), strings.ReplaceAll(visibleLines(p), "\n", "\n    "))
	}
	a.printTroubles("error:", red, r.Errors)
	a.printTroubles("note:", yellow, r.Notes)
	a.printDrift(r.Drift)
	for i, n := range next {
		lead := "next:"
		if i > 0 {
			lead = "     "
		}
		fmt.Fprintf(a.Out, "%s %s\n", lead, n)
	}
}

func (a *App) printTroubles(word string, c colour, found []deploy.TroubleGroup) {
	for _, t := range found {
		fmt.Fprintf(a.Out, "%s %s\n", a.paint(a.Out, c, word), line(t.What, 4*lineLimit))
		fmt.Fprintf(a.Out, "    %s\n", runsText(t.Group))
		if t.Do != "" {
			fmt.Fprintf(a.Out, "    %s\n", line(t.Do, 4*lineLimit))
		}
	}
}

// printDrift prints what drifts together under one line: only what becomes of the runs differs.
func (a *App) printDrift(found []deploy.DriftGroup) {
	head := ""
	for _, d := range found {
		if h := driftHead(d); h != head {
			head = h
			fmt.Fprintf(a.Out, "%s %s\n", a.paint(a.Out, bold, "drift:"), h)
		}
		fmt.Fprintf(a.Out, "    %s: %s\n", runsText(d.Group), fateText(d))
	}
}

func driftHead(d deploy.DriftGroup) string {
	from := line(short(d.From), 64)
	if d.From == "" {
		from = "something that is not known"
	}
	if d.Kind != deploy.DriftDefinition {
		return fmt.Sprintf("%s %s -> %s", d.Kind, from, line(short(d.To), 64))
	}
	changes := strings.Join(d.Changes, ", ")
	switch {
	case d.From == "":
		changes = "these sessions began before number 3 and do not keep what they were made with"
	case changes == "":
		changes = "what differs is not known: the old definition was not read"
	}
	return fmt.Sprintf("agent %s %s -> %s: %s", line(d.Agent, 64), from, short(d.To), line(changes, 4*lineLimit))
}

// short is enough of a digest to tell it from others; anything else stays as it is.
func short(s string) string {
	if len(s) == 64 {
		return s[:16]
	}
	return s
}

func fateText(d deploy.DriftGroup) string {
	switch d.Then {
	case deploy.FateTakes:
		return "the new one at the next turn (follow)"
	case deploy.FateKeeps:
		return "the old one as before (pin)"
	case deploy.FateAsks:
		return "people are asked at the next turn; without their approval the old one (ask)"
	case deploy.FateEnds:
		return "the old one to the turn's end"
	case deploy.FateStays:
		return "the old one to the turn's end, where Temporal keeps it"
	}
	return "the new one from now on"
}

// runsText says how many runs there are and names the first.
func runsText(g deploy.Group) string {
	var parts []string
	if g.Sessions > 0 {
		parts = append(parts, count(g.Sessions, "session"))
	}
	if g.Turns > 0 {
		parts = append(parts, count(g.Turns, "turn"))
	}
	names := make([]string, len(g.First))
	for i, id := range g.First {
		names[i] = line(id, 120)
	}
	text := strings.Join(parts, " and ") + " (" + strings.Join(names, ", ")
	if g.Runs() > len(g.First) {
		text += ", ..."
	}
	return text + ")"
}
