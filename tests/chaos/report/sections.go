package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// summary is what somebody reads who reads nothing else.
func (p *page) summary(r Report) {
	s := summarize(r.Rows)
	p.say("## Summary")
	if s.Holdfast.Violated+s.Window.Violated > 0 {
		p.say("**An invariant is broken in %d of %d cells.**", s.Holdfast.Violated+s.Window.Violated, len(r.Rows))
	}
	var lines []line
	add := func(name string, of func(Totals) int, loud bool) {
		lines = append(lines, line{[]string{name, strconv.Itoa(of(s.Holdfast)), strconv.Itoa(of(s.Shared)), strconv.Itoa(of(s.Plain))}, loud && of(s.Holdfast) > 0})
	}
	add("cells", func(t Totals) int { return t.Cells }, false)
	add("effects expected", func(t Totals) int { return t.Expected }, false)
	add("effects applied", func(t Totals) int { return t.Applied }, false)
	add("duplicates", func(t Totals) int { return t.Duplicates }, true)
	add("lost: expected, not made, and nobody was told", func(t Totals) int { return t.Lost }, true)
	add("shown as uncertain", func(t Totals) int { return t.Uncertain }, false)
	add("model calls charged for beyond the undisturbed run", func(t Totals) int { return t.Extra }, false)
	lines = append(lines, line{[]string{"cells in which an invariant is broken", strconv.Itoa(s.Holdfast.Violated), strconv.Itoa(s.Shared.Violated), ""}, s.Holdfast.Violated > 0})
	p.table([]string{"", "#Holdfast, all cells", "#Holdfast, the plain loop's cells", "#the plain loop"}, lines)
	if s.Plain.Cells > 0 {
		p.say("How the plain loop's cells ended: %s. It has one destination and fewer boundaries: cells that come to the same for it share a run, which each of them counts.", text(counted(endings(r.Rows))))
	}
	p.say("%s", covered(r))
	if s.Window.Cells > 0 {
		p.say("The window, which the promise does not cover, is not in this sum. It has a chapter below.")
	}
	p.say("A destination honours keys (keyed), can be asked what it did (asked), or neither (blind).")
	p.destinations(r.Rows)
}

// endings counts how the plain loop's cells ended.
func endings(rows []Row) map[string]int {
	out := map[string]int{}
	promised, _ := split(rows)
	for _, r := range promised {
		if r.Naive != nil {
			out[r.Naive.Status]++
		}
	}
	return out
}

// covered says at how many boundaries something struck, and names those at which nothing did.
func covered(r Report) string {
	struck := map[string]bool{}
	for _, row := range r.Rows {
		if row.Struck {
			struck[place(row)] = true
		}
	}
	var missing []string
	for _, b := range r.Boundaries {
		if !struck[b] {
			missing = append(missing, text(b))
		}
	}
	out := fmt.Sprintf("A fault struck at %d of %d boundaries.", len(r.Boundaries)-len(missing), len(r.Boundaries))
	if len(missing) > 0 {
		out += fmt.Sprintf(" **None struck at %s.**", strings.Join(missing, ", "))
	}
	return out
}

// destinations are the same figures for each destination, because the promise depends on it.
func (p *page) destinations(rows []Row) {
	promised, _ := split(rows)
	by := map[string][]Row{}
	var names []string
	for _, r := range promised {
		if by[r.Destination] == nil {
			names = append(names, r.Destination)
		}
		by[r.Destination] = append(by[r.Destination], r)
	}
	slices.Sort(names)
	var lines []line
	for _, name := range names {
		t, other := Sum(by[name]), Sum(plain(by[name]))
		cells := []string{name}
		for _, n := range []int{t.Cells, t.Expected, t.Applied, t.Duplicates, t.Lost, t.Uncertain, t.Violated} {
			cells = append(cells, strconv.Itoa(n))
		}
		beside := ""
		if other.Cells > 0 {
			beside = fmt.Sprintf("%d / %d / %d", other.Applied, other.Duplicates, other.Lost)
		}
		lines = append(lines, line{append(cells, beside), t.Violated > 0})
	}
	p.table([]string{"destination", "#cells", "#expected", "#applied", "#duplicates", "#lost", "#uncertain", "#broken", "#the plain loop: applied / duplicates / lost"}, lines)
}

// violations names what is broken, and how to see it again.
func (p *page) violations(r Report, sorted []Row) {
	var lines []line
	add := func(row Row, again string) {
		for _, v := range row.Violations {
			lines = append(lines, line{[]string{row.Cell, v, again}, true})
		}
	}
	for _, row := range sorted {
		add(row, "-only "+row.Cell)
	}
	if r.Soak != nil {
		for _, f := range r.Soak.Failures {
			add(f.Row, f.Again)
		}
	}
	if len(lines) > 0 {
		p.say("## Violations")
		p.table([]string{"cell", "what is broken", "the flags that run it again"}, lines)
	}
}

func (p *page) recoveries(r Report) {
	all := Recoveries(r.Rows, r.Bound)
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b Recovery) int { return r.rank(a.Boundary) - r.rank(b.Boundary) })
	p.say("## Recovery")
	p.say("From a kill of the worker to the next progress that another one makes. The bound is the longest of the heartbeat, sticky and workflow task time-outs, the delay of a retry, and two seconds.")
	var lines []line
	for _, one := range all {
		lines = append(lines, line{[]string{
			one.Boundary, strconv.Itoa(one.Kills), span(one.Median), span(one.Worst), span(one.Bound),
			fmt.Sprintf("%.2f", one.Worst.Seconds()/one.Bound.Seconds()), strconv.Itoa(one.Over),
		}, one.Over > 0})
	}
	p.table([]string{"boundary", "#kills", "#median", "#worst", "#bound", "#worst by the bound", "#over it"}, lines)
}

func (p *page) window(w *Width, sorted []Row) {
	_, rows := split(sorted)
	if w == nil && len(rows) == 0 {
		return
	}
	p.say("## The window")
	p.say("A process that stands still between its last look at the clock and the first byte that it sends can send when another has sent. At a destination that ignores keys nobody can prevent that: it is outside the promise.")
	if w != nil {
		p.say("How long that is, measured at %d sends: %s at the median, %s at the worst.", w.Sends, span(w.Median), span(w.Worst))
	}
	if len(rows) > 0 {
		p.rows(rows)
	}
}

func (p *page) soak(s *Soak) {
	if s == nil {
		return
	}
	t := s.Total
	p.say("## Random schedules")
	p.say("%d schedules of seed %s at commit %s, in %s: %d effects expected, %d applied, %d duplicates, %d lost, %d shown as uncertain, %d model calls charged for beyond the undisturbed runs. In %d of them not every fault happened. In %d of them an invariant is broken.",
		t.Cells, text(s.Seed), text(cmp.Or(s.Commit, "unknown")), s.Took.Round(time.Second), t.Expected, t.Applied, t.Duplicates, t.Lost, t.Uncertain, t.Extra, t.Idle, t.Violated)
}

func (p *page) invariants(r Report) {
	if len(r.Invariants) == 0 {
		return
	}
	p.say("## Invariants")
	p.say("In how many runs each was looked at, and in how many it is broken.")
	var lines []line
	for _, i := range r.Invariants {
		broken := r.broken(i.Name)
		lines = append(lines, line{[]string{i.Name, i.Says, strconv.Itoa(i.Checked), strconv.Itoa(broken)}, broken > 0})
	}
	p.table([]string{"invariant", "what it says", "#looked at", "#broken"}, lines)
}

// broken counts the runs in which an invariant is broken.
func (r Report) broken(invariant string) int {
	rows := r.Rows
	if r.Soak != nil {
		rows = slices.Clone(rows)
		for _, f := range r.Soak.Failures {
			rows = append(rows, f.Row)
		}
	}
	n := 0
	for _, row := range rows {
		if slices.ContainsFunc(row.Violations, func(v string) bool { return v == invariant || strings.HasPrefix(v, invariant+":") }) {
			n++
		}
	}
	return n
}

func (p *page) cells(sorted []Row) {
	promised, _ := split(sorted)
	if len(promised) == 0 {
		return
	}
	p.say("## Every cell")
	p.say("Effects are those that the undisturbed run has and those that the destination says it made. Where `agree` is expected, policy, agent or people changed, so that fewer may be right. The last column is the name that runs a cell again.")
	p.rows(promised)
}

func (p *page) rows(rows []Row) {
	var lines []line
	for _, r := range rows {
		fault := r.Fault
		if !r.Struck {
			fault += " (did not happen)"
		}
		other := "–"
		if n := r.Naive; n != nil {
			other = fmt.Sprintf("%d / %d / %d, %s", n.Applied, n.Duplicates, n.Lost, n.Status)
		}
		boundary := r.Boundary
		if boundary == "" {
			boundary = "the whole run"
		}
		lines = append(lines, line{[]string{
			boundary, fault, r.Destination, r.Expect, fmt.Sprintf("%d / %d", r.Expected, r.Applied), counted(r.Ledger),
			strings.Join(r.Status, ", "), span(r.Recovery), strconv.Itoa(r.Extra), other, r.Cell,
		}, len(r.Violations) > 0})
	}
	p.table([]string{
		"boundary", "fault", "destination", "expected", "effects: expected / applied", "ledger", "status", "#recovery", "#extra model calls",
		"the plain loop: applied / duplicates / lost", "cell",
	}, lines)
}

func (p *page) leftOut(all []Omission) {
	if len(all) == 0 {
		return
	}
	p.say("## What is left out, and why")
	var lines []line
	for _, o := range all {
		cells := []string{o.Boundary, o.Fault, o.Destination}
		for i, c := range cells {
			if c == "" {
				cells[i] = "each"
			}
		}
		lines = append(lines, line{append(cells, o.Why), false})
	}
	p.table([]string{"boundary", "fault", "destination", "why"}, lines)
}
