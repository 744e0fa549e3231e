package starter

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/deploy"
)

type deployPromoteOptions struct {
	*deployOptions
	build string
	force bool
}

func newDeployPromote(d *deployOptions) *cobra.Command {
	o := &deployPromoteOptions{deployOptions: d}
	cmd := &cobra.Command{
		Use:   "promote BUILD",
		Short: "Make a build the current one",
		Long: `From now on the build takes all that begins, and every session when it is resumed. Its ramp ends, and sessions that
"deploy ramp --resumed" put on it move on by themselves again. Turns stay with the build that they began on: keep its
workers until "deploy drain" says that nothing needs them.

Refused unless --force: a build of which no worker polls; one that does not understand what open runs carry (a way
back to an old build, after runs have crossed; roll forward instead); and one whose workers read a file with a lower
serial than another build's, because they refuse what has seen that one.`,
		Example: `  holdfast deploy promote v2
  holdfast deploy promote v2 && holdfast deploy drain v1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.build = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.completeBuilds,
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "although no worker of the build polls, task queues are missing, or open runs cannot go on with it")
	return cmd
}

func (o *deployPromoteOptions) run(ctx context.Context) error {
	c, fleet, err := o.fleet(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := fleet.Promote(ctx, o.build, o.force)
	switch {
	case err != nil && p == nil:
		return o.explain(err)
	case err != nil:
		return withHint(fmt.Errorf("build %q is current, and not all is done that belongs to it: %w", o.build, err), "do it again: holdfast deploy promote %s%s", word(o.build), o.flag())
	}
	o.app.warnGaps(p.Build, p.Before, p.Gaps)
	if o.app.json() {
		err = o.app.printJSON(p)
	} else {
		o.print(p)
	}
	if err == nil && len(p.Left) > 0 {
		err = withHint(fmt.Errorf("%s could not be let go: %w", count(len(p.Left), "session"), p.Left[0].Err()), "do it again: holdfast deploy promote %s%s", word(o.build), o.flag())
	}
	return err
}

func (o *deployPromoteOptions) print(p *deploy.Promotion) {
	out := o.app.Out
	switch {
	case p.Already:
		fmt.Fprintf(out, "build %s is current, as it was\n", line(p.Build, 64))
	case p.Before == "":
		fmt.Fprintf(out, "build %s is current; none was\n", line(p.Build, 64))
	default:
		fmt.Fprintf(out, "build %s is current; build %s was\n", line(p.Build, 64), line(p.Before, 64))
	}
	if p.RampEnded {
		fmt.Fprintln(out, "its ramp has ended")
	}
	if p.Ramping != "" {
		fmt.Fprintf(out, "build %s still ramps\n", line(p.Ramping, 64))
	}
	if p.Back > 0 {
		fmt.Fprintf(out, "%s that crossed first %s let go\n", count(p.Back, "session"), were(p.Back))
	}
	fmt.Fprintf(out, "%s open: with this build from the next message on\n", count(int(p.Sessions), "session"))
	for _, h := range p.Held {
		fmt.Fprintf(out, "%s on build %s until the end, %d of them waiting for people; workers that poll: %d\n",
			count(int(h.Runs), "open run"), line(h.Build, 64), h.Waiting, h.Workers)
	}
	for _, h := range p.Held {
		keep := "keep the workers of"
		if h.Workers == 0 {
			keep = "start a worker, with the file that it had, of"
		}
		o.app.note("%s %s; next: holdfast deploy drain %s%s", keep, line(h.Build, 64), word(h.Build), o.flag())
	}
	if len(p.Held) == 0 && p.Before != "" && !p.Already {
		o.app.note("next: holdfast deploy drain %s%s", word(p.Before), o.flag())
	}
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
