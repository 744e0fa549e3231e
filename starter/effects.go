package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
)

type effectsOptions struct {
	app       *App
	uncertain bool
	turns     int
}

func newEffects(a *App) *cobra.Command {
	o := &effectsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "effects [SESSION[/turn-N]]",
		Short: "Show what actions did, or may have done",
		Long: `Lists the effects of a turn, or of a session's latest turns: each with its state and its key. Without a session
it lists, across the namespace, the effects whose outcome nobody knows.

A running turn says it itself. What has ended is read from the closing record in the store that holdfast.yaml
names, from the closed run while a worker answers, or else from the history, which proves no dispatch.`,
		Example: `  holdfast effects support-x7k2mq
  holdfast effects support-x7k2mq/turn-2 --uncertain
  holdfast effects -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args)
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.BoolVar(&o.uncertain, "uncertain", false, "only those whose outcome nobody knows or that contradict themselves")
	f.IntVar(&o.turns, "turns", 20, "of a session: only so many of its latest turns; 0 is all")
	cmd.AddCommand(newEffectsShow(a), newEffectsSettle(a))
	return cmd
}

// A foundEffect is an effect and where it is, as -o json prints it.
type foundEffect struct {
	Session string `json:"session"`
	Turn    int    `json:"turn,omitempty"`
	Source  string `json:"source"`
	agent.Effect
}

// foundEffects is what effects prints with -o json.
type foundEffects struct {
	Effects []foundEffect `json:"effects"`
	Folded  []agent.Count `json:"folded,omitempty"` // settled ones that are only counted
	Earlier int           `json:"earlier,omitempty"`
	// Unlisted counts uncertain effects that nobody could name: no worker answers and no history has them.
	Unlisted int `json:"unlisted,omitempty"`
}

func (o *effectsOptions) run(ctx context.Context, args []string) error {
	if o.turns < 0 {
		return usageError("--turns %d: want a number of turns, or 0 for all", o.turns)
	}
	var at address
	if len(args) > 0 {
		var err error
		if at, err = parseAddress(args[0]); err != nil {
			return err
		}
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f := newFinder(c, o.app.storeAtHand(ctx))
	defer f.close()
	var out foundEffects
	switch {
	case at.session == "":
		o.uncertain = true
		out, err = f.namespace(ctx, o.turns)
	case at.turn == 0:
		out, err = f.session(ctx, at.session, o.turns)
	default:
		out, err = f.one(ctx, at)
	}
	if err != nil {
		return err
	}
	if o.uncertain {
		out.Effects = slices.DeleteFunc(out.Effects, func(e foundEffect) bool { return !doubtful(e.Effect) })
	}
	if o.app.json() {
		out.Effects = append([]foundEffect{}, out.Effects...)
		return o.app.printJSON(out)
	}
	return o.print(at, out)
}

// doubtful says whether nobody knows what an effect did.
func doubtful(e agent.Effect) bool {
	return e.State == agent.StateUncertain || e.Conflict != "" && e.Looked == ""
}

func (o *effectsOptions) print(at address, out foundEffects) error {
	a := o.app
	if len(out.Effects) == 0 {
		a.note("no effects%s", map[bool]string{true: " in doubt"}[o.uncertain])
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	if len(out.Effects) > 0 {
		fmt.Fprintln(w, "STATE\tSINCE\tACTION\tKEY\tNOTE")
	}
	for _, e := range out.Effects {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", line(string(e.State), 32), clock(e.At), line(cmp.Or(e.Summary, e.Tool), 60),
			line(e.Key, 240), line(cmp.Or(conflictText(e.Conflict), e.Note), 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !o.uncertain {
		for _, c := range out.Folded {
			fmt.Fprintf(a.Out, "and %d earlier ones: %s\n", c.N, line(string(c.State), 32))
		}
	}
	if out.Earlier > 0 {
		a.note("%s before these; all of them: holdfast effects %s --turns 0", count(out.Earlier, "turn"), at)
	}
	if out.Unlisted > 0 {
		a.note("%s more in doubt that nobody names: no worker answers", count(out.Unlisted, "effect"))
	}
	if len(out.Effects) > 0 {
		a.note("all about one: holdfast effects show KEY")
	}
	return nil
}

func conflictText(s string) string {
	if s == "" {
		return ""
	}
	return "conflict: " + s
}

// clock is a time for a table.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}
