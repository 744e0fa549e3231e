package starter

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
)

type deployStatusOptions struct {
	*deployOptions
	since  time.Duration
	sample int
}

func newDeployStatus(d *deployOptions) *cobra.Command {
	o := &deployStatusOptions{deployOptions: d}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the builds of a deployment and how they compare",
		Long: `Lists the builds: what Temporal does with each, whether workers of it poll, and what is open on it. HELD are open runs
that need the build, because they began on it or were put there; nothing else keeps its workers from being stopped.
A session is counted on the build that took its last task.

Below, the builds on which turns ended lately are compared. Turns are counted; what counting cannot tell is read in
the latest turns and open runs of each build, at most --sample of either, and it says how many.`,
		Example: `  holdfast deploy status
  holdfast deploy status --since 1h --sample 500 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.DurationVar(&o.since, "since", 24*time.Hour, "compare the turns that ended in this `time`")
	f.IntVar(&o.sample, "sample", 100, "look into at most so many turns and open runs of each build")
	return cmd
}

func (o *deployStatusOptions) run(ctx context.Context) error {
	switch {
	case o.since <= 0:
		return usageError("--since %s: want a time such as 24h", o.since)
	case o.sample < 0:
		return usageError("--sample %d: want 0 or more", o.sample)
	}
	c, fleet, err := o.fleet(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	tell, wipe := o.app.progress("looking at builds")
	s, err := fleet.Status(ctx, deploy.StatusOptions{After: time.Now().Add(-o.since), Sample: o.sample, Progress: tell})
	wipe()
	if err != nil {
		return o.explain(err)
	}
	if o.app.json() {
		return o.app.printJSON(s)
	}
	return o.print(s, time.Now())
}

func (o *deployStatusOptions) print(s *deploy.Status, now time.Time) error {
	a := o.app
	fmt.Fprintf(a.Out, "deployment %s in namespace %s\n", line(s.Name, 64), line(s.Namespace, 64))
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "BUILD\tSTANDING\tFOR\tWORKERS\tSESSIONS\tTURNS\tWAITING\tHELD")
	for i, b := range s.Builds {
		open := s.Rows[i].Open
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", line(b.ID, 64), standing(b), span(now.Sub(b.Since)), polling(b, now),
			open.Sessions, open.Turns, open.Waiting, heldText(open))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := s.Elsewhere; n.Runs() > 0 {
		fmt.Fprintf(a.Out, "of no deployment: %s and %s open\n", count(int(n.Sessions), "session"), count(int(n.Turns), "turn"))
	}
	if err := o.compare(s); err != nil {
		return err
	}
	o.troubles(s)
	o.next(s)
	return nil
}

func heldText(o deploy.Open) string {
	if o.Canaries == 0 {
		return fmt.Sprint(o.Held)
	}
	return fmt.Sprintf("%d (%s)", o.Held, count(int(o.Canaries), "session"))
}

// compare prints the builds on which turns ended, or of which open runs were looked at, side by side.
func (o *deployStatusOptions) compare(s *deploy.Status) error {
	var rows []deploy.BuildStatus
	for _, r := range s.Rows {
		if r.Ended != nil || r.Troubles != nil {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		fmt.Fprintf(o.app.Out, "\nno turn ended in the last %s\n", brisk(o.since))
		return nil
	}
	w := tabwriter.NewWriter(o.app.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w)
	for _, l := range o.lines() {
		cells := []string{l.name}
		for _, r := range rows {
			cells = append(cells, l.cell(r))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// A statusLine is one thing in which builds are compared.
type statusLine struct {
	name string
	cell func(deploy.BuildStatus) string
}

func (o *deployStatusOptions) lines() []statusLine {
	out := []statusLine{
		{"IN THE LAST " + brisk(o.since), func(r deploy.BuildStatus) string { return line(r.Build, 64) }},
		{"turns ended", ended(func(e *deploy.Ended) string { return fmt.Sprint(e.Turns) })},
	}
	for _, status := range agent.FinalStatuses() {
		out = append(out, statusLine{"  " + string(status), ended(func(e *deploy.Ended) string { return part(e.Statuses[status], e.Turns) })})
	}
	return append(out,
		statusLine{"  lost", ended(func(e *deploy.Ended) string { return part(e.Lost, e.Turns) })},
		statusLine{"cost per turn", ended(func(e *deploy.Ended) string {
			if micros, ok := e.Cost(); ok {
				return money(micros)
			}
			return "-"
		})},
		statusLine{"steps per turn", ended(func(e *deploy.Ended) string {
			if steps, ok := e.MeanSteps(); ok {
				return fmt.Sprintf("%.1f", steps)
			}
			return "-"
		})},
		statusLine{"uncertain effects", uncertainText},
		statusLine{"  in turns read", ended(func(e *deploy.Ended) string { return fmt.Sprintf("%d of %d", e.Read, e.Turns) })},
		statusLine{"replay failures", func(r deploy.BuildStatus) string {
			if r.Troubles == nil {
				return "-"
			}
			return fmt.Sprint(r.Troubles.Replays())
		}},
		statusLine{"  in open runs", func(r deploy.BuildStatus) string {
			if r.Troubles == nil {
				return "-"
			}
			text := fmt.Sprintf("%d of %d", r.Troubles.Looked, r.Open.Runs())
			if n := r.Troubles.Arriving; n > 0 {
				text += fmt.Sprintf(", %d of other builds", n)
			}
			return text
		}},
	)
}

// brisk is a time as a person would have typed it: "24h" and not "24h0m0s".
func brisk(d time.Duration) string {
	s := d.String()
	for _, nought := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, nought) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// ended is a cell about ended turns.
func ended(text func(*deploy.Ended) string) func(deploy.BuildStatus) string {
	return func(r deploy.BuildStatus) string {
		if r.Ended == nil {
			return "-"
		}
		return text(r.Ended)
	}
}

// part is a number with what it is of another, in percent.
func part(n, of int64) string {
	if n == 0 || of == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%d%%)", n, (100*n+of/2)/of)
}

// uncertainText counts effects whose outcome nobody knows: those that ended turns left, and those of open turns.
func uncertainText(r deploy.BuildStatus) string {
	var n int64
	if r.Ended != nil {
		n += int64(r.Ended.Uncertain)
	}
	if r.Troubles != nil {
		n += r.Troubles.Uncertain
	}
	return fmt.Sprint(n)
}

// shownStuck is how many stuck runs of a build are named.
const shownStuck = 5

func (o *deployStatusOptions) troubles(s *deploy.Status) {
	for _, r := range s.Rows {
		if r.Troubles == nil {
			continue
		}
		for i, x := range r.Troubles.Stuck {
			if i == shownStuck {
				fmt.Fprintf(o.app.Out, "    and %d more on build %s\n", len(r.Troubles.Stuck)-i, line(r.Build, 64))
				break
			}
			what := "fails"
			if x.Replay {
				what = "does not replay"
			}
			fmt.Fprintf(o.app.Out, "%s %s %s on build %s, attempt %d%s\n", o.app.paint(o.app.Out, red, "stuck:"), line(x.Workflow, 120), what,
				line(r.Build, 64), x.Attempt, because(x.Why))
		}
	}
}

// next says what an operator would do.
func (o *deployStatusOptions) next(s *deploy.Status) {
	if s.Current == "" {
		o.app.note("no build is current: nothing new begins until one is; next: holdfast deploy promote BUILD%s", o.flag())
	}
	for i, b := range s.Builds {
		open := s.Rows[i].Open
		switch {
		case b.Standing == deploy.Current && !b.Polls():
			o.app.warn("no worker of the current build %s polls", line(b.ID, 64))
		case b.Standing == deploy.Current || b.Standing == deploy.Ramping:
		case open.Held > 0 && !b.Polls():
			o.app.warn("%s of build %s, and no worker of it polls; next: holdfast deploy drain %s --move%s", need(open.Held), line(b.ID, 64), word(b.ID), o.flag())
		case open.Held > open.Canaries:
			o.app.note("%s of build %s; next: holdfast deploy drain %s%s", need(open.Held), line(b.ID, 64), word(b.ID), o.flag())
		}
	}
}

func need(n int64) string {
	if n == 1 {
		return "1 open run needs the workers"
	}
	return fmt.Sprintf("%d open runs need the workers", n)
}
