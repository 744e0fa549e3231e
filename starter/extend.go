package starter

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
)

type extendOptions struct {
	app     *App
	session string
	steps   int
	tokens  int64
	cost    string
	effects int
	time    time.Duration
	from    string
}

func newExtend(a *App) *cobra.Command {
	o := &extendOptions{app: a}
	cmd := &cobra.Command{
		Use:   "extend SESSION",
		Short: "Give a session more of what its budget bounds",
		Long: `Gives the running turn, and its session, more steps, tokens, money, effects or time than their budgets have. A turn
that waits because something was used up goes on. While no turn runs it is for the turns to come.`,
		Example: `  holdfast extend support-x7k2mq --steps 10 --cost 0.50
  holdfast extend support-x7k2mq --effects 1 --time 10m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.IntVar(&o.steps, "steps", 0, "further model calls")
	f.Int64Var(&o.tokens, "tokens", 0, "further tokens, input and output together")
	f.StringVar(&o.cost, "cost", "", "further cost, in the currency of the configuration's prices")
	f.IntVar(&o.effects, "effects", 0, "further effects that may be sent")
	f.DurationVar(&o.time, "time", 0, "further time at work, not counting what it waits for people")
	f.StringVar(&o.from, "from", claimed(), "who extends; recorded, not verified")
	return cmd
}

// grant is what the flags give.
func (o *extendOptions) grant() (agent.Extend, error) {
	x := agent.Extend{Steps: o.steps, Tokens: o.tokens, Effects: o.effects, Time: agent.Duration(o.time), From: o.from}
	if o.cost != "" {
		micros, err := parseMoney(o.cost)
		if err != nil {
			return x, usageError("--cost: %w", err)
		}
		x.Micros = micros
	}
	nothing := x.Steps == 0 && x.Tokens == 0 && x.Micros == 0 && x.Effects == 0 && x.Time == 0
	if x.Steps < 0 || x.Tokens < 0 || x.Effects < 0 || x.Time < 0 || nothing {
		return x, usageError("nothing to give: want --steps, --tokens, --cost, --effects or --time above zero")
	}
	return x, nil
}

func (o *extendOptions) run(ctx context.Context) error {
	x, err := o.grant()
	if err != nil {
		return err
	}
	c, err := o.app.openSession(ctx, o.session)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := c.runningTurn(ctx, o.session)
	if err != nil {
		return err
	}
	if err := c.SignalWorkflow(ctx, o.session, "", agent.SignalExtend, x); err != nil {
		return err
	}
	if o.app.json() {
		return o.app.printJSON(struct {
			Session string `json:"session"`
			Turn    int    `json:"turn,omitempty"` // 0: for the turns to come
			agent.Extend
		}{o.session, n, x})
	}
	if n == 0 {
		fmt.Fprintf(o.app.Out, "session %s was given%s for its next turns\n", o.session, extension(x))
		return nil
	}
	fmt.Fprintf(o.app.Out, "turn %d was given%s\n", n, extension(x))
	return nil
}
