package starter

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/worker"
)

type deployRampOptions struct {
	*deployOptions
	build     string
	percent   float64
	given     bool // the percentage
	resumed   bool
	unchecked bool
	force     bool
}

func newDeployRamp(d *deployOptions) *cobra.Command {
	o := &deployRampOptions{deployOptions: d}
	cmd := &cobra.Command{
		Use:   "ramp BUILD",
		Short: "Let a share of the work go to a build",
		Long: `Without --resumed, Temporal lets this share of what begins, and of the sessions that are resumed, go to the build. It
chooses by a hash of the workflow id: a higher share includes a lower one. A turn has an id of its own, so turns of one
session are on both builds. --percent 0 takes the ramp away.

With --resumed, a share of the sessions that there are crosses first, and nothing new does. It is chosen by a hash of
the session's id: a higher share includes a lower one. A session crosses only if its history replays on this program,
which has to be BUILD (--unchecked crosses without); sessions of agents with "upgrade: pin" stay. One that has crossed
is on the build from its next message on, and so are its turns, until its run continues as a new one, after at most 8
turns: the same command again keeps the share. A lower share takes sessions back, --percent 0 all of them; a turn that
runs ends where it is. The command may be interrupted and repeated at any time.`,
		Example: `  holdfast deploy ramp v2 --percent 5 --resumed
  holdfast deploy ramp v2 --percent 10
  holdfast deploy ramp v2 --percent 0`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.build, o.given = args[0], cmd.Flags().Changed("percent")
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.completeBuilds,
	}
	f := cmd.Flags()
	f.Float64Var(&o.percent, "percent", 0, "the share, 0 to 100")
	f.BoolVar(&o.resumed, "resumed", false, "of the sessions that there are, when they are resumed, instead of what begins")
	f.BoolVar(&o.unchecked, "unchecked", false, "with --resumed: cross without replaying histories first")
	f.BoolVar(&o.force, "force", false, "although no worker of the build polls, or the builds read files of different serials")
	return cmd
}

func (o *deployRampOptions) run(ctx context.Context) error {
	switch {
	case !o.given:
		return withHint(usageError("--percent is missing: how much is to go to build %q", line(o.build, 64)), "for example --percent 10; 0 takes it away")
	case !(o.percent >= 0 && o.percent <= 100): // nor no number
		return usageError("--percent %v: want 0 to 100", o.percent)
	case o.unchecked && !o.resumed:
		return usageError("--unchecked is for --resumed: nothing that begins has a history")
	}
	c, fleet, err := o.fleet(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.resumed {
		return o.canary(ctx, c, fleet)
	}
	r, err := fleet.Ramp(ctx, o.build, float32(o.percent), o.force)
	if err != nil {
		return o.explain(err)
	}
	if r.Percent > 0 { // what has begun is the only matter otherwise, and no choice any more
		o.app.warnGaps(r.Build, r.Current, r.Gaps)
	}
	if o.app.json() {
		return o.app.printJSON(r)
	}
	switch {
	case r.Percent == r.Before && r.Percent == 0:
		fmt.Fprintf(o.app.Out, "build %s takes no share\n", line(r.Build, 64))
	case r.Percent == 0:
		fmt.Fprintf(o.app.Out, "build %s takes no share any more; its ramp was %v%%\n", line(r.Build, 64), r.Before)
		o.app.note("what began on it goes on there; next: holdfast deploy drain %s%s", word(r.Build), o.flag())
	default:
		fmt.Fprintf(o.app.Out, "build %s takes %v%% of what begins, before it was %v%%\n", line(r.Build, 64), r.Percent, r.Before)
		o.app.note("next: holdfast deploy status%s; then more, or holdfast deploy promote %s%s", o.flag(), word(r.Build), o.flag())
	}
	return nil
}

func (o *deployRampOptions) canary(ctx context.Context, c *conn, fleet deploy.Fleet) error {
	co := deploy.CanaryOptions{Build: o.build, Percent: o.percent, Force: o.force, Binary: worker.BuildID()}
	if o.percent > 0 {
		var err error
		if co.Upgrade, err = o.upgrades(); err != nil {
			return err
		}
	}
	if !o.unchecked {
		try, done := o.trial(c)
		defer done()
		co.Try = try
	}
	tell, wipe := o.app.progress("sessions")
	co.Progress = tell
	r, err := fleet.Canary(ctx, co)
	wipe()
	var other *deploy.OtherBuildError
	switch {
	case errors.As(err, &other):
		return withHint(err, "--unchecked lets sessions cross without a replay; those that cannot go on then stand still until they are taken back")
	case err != nil && r == nil:
		return o.explain(err)
	case err != nil:
		o.app.leave("stopped: %d crossed and %d taken back until then; the same command goes on", r.Crossed, r.Back)
		return o.explain(err)
	}
	return o.report(r)
}

func (o *deployRampOptions) report(r *deploy.Canary) error {
	o.app.warnGaps(r.Build, r.Current, r.Gaps)
	if o.app.json() {
		if err := o.app.printJSON(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(o.app.Out, "build %s, %v%% of %s: %d crossed, %d had crossed before, %d taken back\n",
			line(r.Build, 64), r.Percent, count(r.Sessions, "session"), r.Crossed, r.Already, r.Back)
		o.app.printLeft(r.Left)
	}
	if n := leftBy(r.Left, deploy.LeftReplay); n > 0 {
		return withHint(fmt.Errorf("%s would not replay on build %q and stay where they are", count(n, "session"), line(r.Build, 64)),
			"see what parts: holdfast replay --query 'WorkflowType=\"Session\"'")
	}
	if r.Crossed > 0 {
		o.app.note("each is on the build from its next message on; next: holdfast deploy status%s", o.flag())
	}
	return nil
}

// leftBy counts the runs that were left for one kind of reason.
func leftBy(left []deploy.Left, kind string) (n int) {
	for _, l := range left {
		if l.Kind == kind {
			n++
		}
	}
	return n
}

// shownLeft is how many runs are named for each kind of reason.
const shownLeft = 5

// printLeft says which runs stay where they are, and why.
func (a *App) printLeft(left []deploy.Left) {
	seen := map[string]int{}
	for _, l := range left {
		if seen[l.Kind]++; seen[l.Kind] > shownLeft {
			continue
		}
		a.printOneLeft(l)
	}
	for _, l := range left {
		if n := seen[l.Kind]; n > shownLeft {
			fmt.Fprintf(a.Out, "left: %d more for the same kind of reason (%s); -o json lists them\n", n-shownLeft, l.Kind)
			seen[l.Kind] = 0
		}
	}
}

func (a *App) printOneLeft(l deploy.Left) {
	found := replay.Explain(l.Err())
	if l.Kind != deploy.LeftReplay || len(found) == 0 {
		fmt.Fprintf(a.Out, "left: %s: %s\n", line(l.Workflow, 120), line(l.Why, 2*lineLimit))
		return
	}
	fmt.Fprintf(a.Out, "left: %s does not replay here\n", line(l.Workflow, 120))
	printFinding(a.Out, found[0])
}
