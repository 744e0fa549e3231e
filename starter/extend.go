package starter

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
)

type extendOptions struct {
	app     *App
	session string
	steps   int
	tokens  int64
	cost    string
	from    string
}

func newExtend(a *App) *cobra.Command {
	o := &extendOptions{app: a}
	cmd := &cobra.Command{
		Use:     "extend SESSION",
		Short:   "Give the running turn more steps, tokens or money",
		Example: `  holdfast extend support-x7k2mq --steps 10 --cost 0.50`,
		Args:    cobra.ExactArgs(1),
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
	f.StringVar(&o.from, "from", claimed(), "who extends; recorded, not verified")
	return cmd
}

func (o *extendOptions) run(ctx context.Context) error {
	x := agent.Extend{Steps: o.steps, Tokens: o.tokens, From: o.from}
	if o.cost != "" {
		micros, err := parseMoney(o.cost)
		if err != nil {
			return usageError("--cost: %w", err)
		}
		x.Micros = micros
	}
	if x.Steps < 0 || x.Tokens < 0 || x.Steps == 0 && x.Tokens == 0 && x.Micros == 0 {
		return usageError("nothing to give: want --steps, --tokens or --cost above zero")
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
	if n == 0 {
		return fmt.Errorf("session %q: no turn is running", o.session)
	}
	if err := c.SignalWorkflow(ctx, o.session, "", agent.SignalExtend, x); err != nil {
		return err
	}
	if o.app.json() {
		return o.app.printJSON(struct {
			Session string `json:"session"`
			Turn    int    `json:"turn"`
			agent.Extend
		}{o.session, n, x})
	}
	fmt.Fprintf(o.app.Out, "turn %d was given%s\n", n, extension(x))
	return nil
}
