package starter

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/worker"
)

type deployDrainOptions struct {
	*deployOptions
	build   string
	timeout time.Duration
	move    bool
}

func newDeployDrain(d *deployOptions) *cobra.Command {
	o := &deployDrainOptions{deployOptions: d}
	cmd := &cobra.Command{
		Use:   "drain BUILD",
		Short: "Wait until nothing needs a build, and say what does",
		Long: `Waits until no open run needs the build, and names those that do with what they wait for. Then its workers can be
stopped. It exits with 0 when nothing needs the build, and with 8 when the time is up, or an interrupt came, and
something does. What runs is not touched by an interrupt; start it again at any time.

With --move, turns that may go to another build by their agent's upgrade policy (follow, ask) are moved to the current
build: each only after its history was replayed on this program, which has to be that build. They go on there from
their next task on. One in which an activity runs is moved when that has ended; one of an agent with "upgrade: pin"
stays and is named.`,
		Example: `  holdfast deploy drain v1
  holdfast deploy drain v1 --timeout 10m --move
  holdfast deploy drain v1 -o json | jq -r 'select(.type == "held").workflow'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.build = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.completeBuilds,
	}
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", 0, "give up after this `time`; 0 waits for as long as it takes")
	f.BoolVar(&o.move, "move", false, "move turns to the current build, where policy and their histories let them")
	return cmd
}

func (o *deployDrainOptions) run(ctx context.Context) error {
	if o.timeout < 0 {
		return usageError("--timeout %s: want a time such as 10m, or 0", o.timeout)
	}
	c, fleet, err := o.fleet(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	watch := &drainPrinter{app: o.app, build: o.build, flag: o.flag()}
	do := deploy.DrainOptions{Build: o.build, Each: watch.event}
	if o.move {
		m := &deploy.Mover{Binary: worker.BuildID()}
		if m.Upgrade, err = o.upgrades(); err != nil {
			return err
		}
		try, done := o.trial(c)
		defer done()
		m.Try, do.Move = try, m
	}
	limit := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	d, err := fleet.Drain(limit, do)
	if err != nil {
		return o.explain(err)
	}
	return o.report(watch, d)
}

// report says how it ended.
func (o *deployDrainOptions) report(p *drainPrinter, d *deploy.Drain) error {
	if o.app.json() {
		if err := o.app.printJSON(struct {
			Type string `json:"type"`
			*deploy.Drain
		}{"result", d}); err != nil {
			return err
		}
	}
	if d.Drained {
		if !o.app.json() {
			p.drained(d)
		}
		return nil
	}
	if len(d.Held) == 0 {
		return withHint(&exitError{ExitWaiting, fmt.Errorf("no open run was seen that needs build %q, and one look is not enough", line(d.Build, 64))},
			"look again: holdfast deploy drain %s%s", word(o.build), o.flag())
	}
	err := fmt.Errorf("%s of build %q", need(int64(len(d.Held))), line(d.Build, 64))
	hint := "keep its workers; end a turn with: holdfast cancel SESSION; or wait on: holdfast deploy drain " + word(o.build) + o.flag()
	if d.Workers == 0 {
		hint = "no worker of it polls, so that they stand still: start one"
	}
	if !o.move {
		hint += "; or move what may be moved: --move"
	}
	return withHint(&exitError{ExitWaiting, err}, "%s", hint)
}
