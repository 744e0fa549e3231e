package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/deploy"
)

type recoverOptions struct {
	app         *App
	at          address
	stuckRun    string
	yes, dryRun bool
	reason      string
}

func newRecover(a *App) *cobra.Command {
	o := &recoverOptions{app: a}
	cmd := &cobra.Command{
		Use:   "recover SESSION|SESSION/turn-N",
		Short: "Start a run again that no worker can begin, from the state of the run before",
		Long: `A session or a turn that lives long goes on in a new run from time to time, which begins with the state of the run
before. A worker that cannot take that state, because a newer build wrote it or because it was altered, refuses it and
tries again: nothing is lost, and a worker that can take it goes on by itself. Where there will be none, this starts the
run again: the last step of the run before is done again by a worker of now, which makes a state anew.

Before, it replays the run before with this build, and refuses if that does not replay, or if the stuck run has begun:
then nothing is wrong with its state. Nothing is done twice, because keys and records stay what they are; the messages
and decisions that the stuck run has received go to the new one, where an approval that has expired meanwhile does not
count. A turn that is pinned to a build goes on with that build: if it is the one to blame, move the turn first
(holdfast deploy drain BUILD --move). --dry-run says what would happen and does nothing.`,
		Example: `  holdfast attention
  holdfast recover support-x7k2mq/turn-3 --dry-run
  holdfast recover support-x7k2mq/turn-3 --yes --reason "rolled back to 1.4"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.at, err = parseAddress(args[0]); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeStuck,
	}
	f := cmd.Flags()
	f.StringVar(&o.stuckRun, "run", "", "only if this is the stuck `run`'s id")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.dryRun, "dry-run", false, "only say what would happen")
	f.StringVar(&o.reason, "reason", "", "why; stands in the history")
	return cmd
}

// A recovered run is what recover prints with -o json.
type recovered struct {
	*deploy.Recovery
	Recovered bool `json:"recovered"`
}

func (o *recoverOptions) run(ctx context.Context) error {
	a := o.app
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	g, closeGate := a.gate(1)
	defer closeGate()
	c.serve(&g)
	x, err := g.Recovery(ctx, o.at.workflow(), o.stuckRun)
	if err != nil {
		return o.explain(ctx, c, err)
	}
	if !a.json() {
		o.say(x)
	}
	if o.dryRun {
		if a.json() {
			return a.printJSON(recovered{x, false})
		}
		a.note("nothing was done; without --dry-run it is")
		return nil
	}
	if err := o.confirm(ctx); err != nil {
		return err
	}
	reason := "holdfast recover, by " + claimed()
	if o.reason != "" {
		reason += ": " + o.reason
	}
	if err := g.Recover(ctx, x, reason); err != nil {
		return o.explain(ctx, c, err)
	}
	if a.json() {
		return a.printJSON(recovered{x, true})
	}
	fmt.Fprintf(a.Out, "%s goes on in run %s\n", o.at, line(x.NewRun, 64))
	for _, s := range x.Signals {
		if s.Sent {
			a.note("signal %s of %s was sent again", line(s.Name, 64), clock(s.At))
		}
	}
	a.note("follow it: holdfast watch %s", o.at.session)
	return nil
}

// say says what will happen.
func (o *recoverOptions) say(x *deploy.Recovery) {
	w := o.app.Err
	fmt.Fprintf(w, "%s cannot begin its run %s: %s\n", o.at, line(x.Run, 64), line(x.Why, 4*lineLimit))
	fmt.Fprintf(w, "  %-10s run %s, which this build can replay (%s, number %d), is done again from event %d on\n",
		"before", line(x.Previous, 64), count(x.Events, "event"), x.Change, x.Event)
	fmt.Fprintf(w, "  %-10s run %s is ended\n", "stuck", line(x.Run, 64))
	if x.Build != "" {
		fmt.Fprintf(w, "  %-10s it is pinned to %s, which goes on with it\n", "build", line(x.Build, 120))
	}
	names := map[string]int{}
	var order []string
	for _, s := range x.Signals {
		if names[s.Name]++; names[s.Name] == 1 {
			order = append(order, s.Name)
		}
	}
	for _, name := range order {
		fmt.Fprintf(w, "  %-10s %s that it has received: handed on to the new run\n", "signals", count(names[name], line(name, 64)+" signal"))
	}
}

func (o *recoverOptions) confirm(ctx context.Context) error {
	if o.yes {
		return nil
	}
	tty, done := o.app.terminal()
	defer done()
	if tty == nil {
		return withHint(usageError("there is no terminal to ask for confirmation; nothing was done"), "if it is what you want: --yes")
	}
	fmt.Fprint(tty, "\nStart it again? [y/N] ")
	text, err := readAnswer(ctx, o.app.In, 100)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was done")
}

// explain says what to do about a run that is not started again. Of a session it may be a turn that is stuck.
func (o *recoverOptions) explain(ctx context.Context, c *conn, err error) error {
	var refused *deploy.NotRecoverableError
	if !errors.As(err, &refused) {
		return err
	}
	advice := refused.Advice
	if o.at.turn == 0 {
		if d, err := c.describe(ctx, o.at.session, ""); err == nil {
			for _, child := range d.GetPendingChildren() {
				at, err := parseAddress(child.GetWorkflowId())
				if of, describeErr := c.describe(ctx, child.GetWorkflowId(), ""); err == nil && describeErr == nil && stuckAt(of) > 0 {
					advice = fmt.Sprintf("%s is stuck: holdfast recover %s; or %s", at, at, advice)
				}
			}
		}
	}
	return withHint(fmt.Errorf("%s is not started again: %s", o.at, line(refused.Why, 8*lineLimit)), "%s", advice)
}
