package starter

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

type compensateOptions struct {
	app *App
	signFlags
	turn   address
	keys   []string
	reason string
	wait   time.Duration
}

func newCompensate(a *App) *cobra.Command {
	o := &compensateOptions{app: a}
	cmd := &cobra.Command{
		Use:   "compensate SESSION/turn-N [EFFECT-KEY...]",
		Short: "Run, or try again, the compensations of a turn that has ended",
		Long: `Orders the session to undo what a turn has done, or only the effects named: the last one first, each by the
compensating tool that its tool names. The session runs it as a workflow of its own, which this command follows:
0 when all of it was undone that some tool undoes, 4 when something was not, 7 when the order was refused, 8 when it waits for a person or
has not begun in time. The order goes on without this command.`,
		Example: `  holdfast compensate support-x7k2mq/turn-2 --reason "wrong customer"
  holdfast compensate support-x7k2mq/turn-2 KEY --as alice --key ~/.ssh/id_ed25519`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.StringVar(&o.reason, "reason", "", "why; recorded and shown")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "how long to wait for its beginning")
	o.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("as", a.completeApprovers)
	return cmd
}

// parse reads SESSION/turn-N and keys of effects of that turn.
func (o *compensateOptions) parse(args []string) (err error) {
	if o.turn, err = parseTurn(args[0]); err != nil {
		return err
	}
	o.keys = args[1:]
	for _, key := range o.keys {
		k, err := parseKey(key)
		switch {
		case err != nil:
			return err
		case k.Scope.Session != o.turn.session || k.Place.Turn != o.turn.turn:
			return usageError("effect %q is not of %s", line(key, 240), o.turn)
		case k.Undo > 0:
			return usageError("%q is a compensation itself; name the effect that it undoes", line(key, 240))
		}
	}
	return o.check()
}

// A compensated is what compensate prints with -o json after the events.
type compensated struct {
	Type     string         `json:"type"` // "result"
	Session  string         `json:"session"`
	Turn     int            `json:"turn"`
	Workflow string         `json:"workflow,omitempty"`
	Ref      string         `json:"ref"`
	Result   string         `json:"result"` // accepted, refused or unanswered
	Status   agent.Status   `json:"status,omitempty"`
	Why      string         `json:"why,omitempty"`
	Effects  []agent.Effect `json:"effects,omitempty"` // that were to be undone, and the compensations
	// Standing are the turn's other effects that have happened and stand: their tools name nothing that undoes them.
	Standing []agent.Effect `json:"standing,omitempty"`
}

func (o *compensateOptions) run(ctx context.Context) error {
	c, err := o.app.openSession(ctx, o.turn.session)
	if err != nil {
		return err
	}
	defer c.Close()
	info, err := c.describeSession(ctx, o.turn.session)
	if err != nil {
		return err
	}
	order, err := o.order(ctx, agent.NewScope(o.turn.session, firstRunOf(info)))
	if err != nil || o.print {
		return err
	}
	earlier, err := c.pastOf(ctx, o.turn)
	if err != nil {
		return err
	}
	if err := c.SignalWorkflow(ctx, o.turn.session, "", agent.SignalCompensate, order); err != nil {
		return err
	}
	res := compensated{Type: "result", Session: o.turn.session, Turn: o.turn.turn, Ref: order.Ref, Result: wordUnanswered}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	child, err := o.child(limit, c, earlier.started, &res)
	switch {
	case ctx.Err() != nil:
		o.app.leave("the order was given; see what becomes of it: holdfast effects %s", o.turn)
		return ctx.Err()
	case errors.Is(err, errStored):
		return withHint(&exitError{ExitWaiting, fmt.Errorf("the order was given; which compensation carries it out cannot be seen: %w", err)},
			"see what becomes of it: holdfast effects %s; or %s", o.turn, storeHint)
	case err != nil && limit.Err() == nil:
		return err
	case child.undo == 0:
		return o.report(res)
	}
	return o.follow(ctx, c, child, info.GetTaskQueue(), res)
}

// order makes the order and signs it, or prints the bytes to sign.
func (o *compensateOptions) order(ctx context.Context, scope agent.Scope) (agent.Compensate, error) {
	at, err := o.moment()
	if err != nil {
		return agent.Compensate{}, err
	}
	x := agent.Compensate{
		Turn: o.turn.turn, Keys: o.keys, Reason: o.reason, Approver: o.approver(), Time: at, Ref: rand.Text(),
	}
	b := approval.CompensateBytes(scope, x)
	if o.print {
		return x, o.printSigned(o.app, b, at)
	}
	x.Signature, err = o.prove(ctx, b)
	return x, err
}

// child waits for the workflow that carries out the order, which is none of the earlier ones, or for the session's refusal.
func (o *compensateOptions) child(ctx context.Context, c *conn, earlier []address, res *compensated) (address, error) {
	var found address
	known := map[address]bool{} // that carry out other orders
	for _, at := range earlier {
		known[at] = true
	}
	err := poll(ctx, func() (bool, error) {
		var v agent.EffectsView
		if c.ask(ctx, o.turn.session, agent.QueryEffects, &v) == nil {
			for _, r := range v.Refused {
				if r.Ref == res.Ref {
					res.Result, res.Why = wordRefused, r.Why
				}
			}
		}
		past, err := c.pastOf(ctx, o.turn)
		if err != nil {
			return false, err
		}
		for _, at := range slices.Backward(past.started) {
			if known[at] {
				continue
			}
			switch ref, err := c.orderOf(ctx, at); {
			case err != nil && !isNotFound(err):
				return false, err
			case err == nil && ref == res.Ref:
				found = at
				return true, nil
			case err == nil:
				known[at] = true
			}
		}
		return res.Result == wordRefused, nil
	})
	return found, err
}

// orderOf returns the mark of the order that a late compensation carries out.
func (c *conn) orderOf(ctx context.Context, at address) (string, error) {
	run, err := c.firstRun(ctx, at.workflow())
	if err != nil {
		return "", err
	}
	var in agent.TurnInput
	var stored error
	err = c.read(ctx, reading{workflow: at.workflow(), run: run, size: 1, each: func(ev *historypb.HistoryEvent) error {
		stored = unread(decoder{c.payloads}.first(ev.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in))
		return errStop
	}})
	if err = errors.Join(err, stored); err != nil || in.Undo == nil {
		return "", err
	}
	return in.Undo.Command.Ref, nil
}

// follow shows the compensation to its end, or until it waits for a person.
func (o *compensateOptions) follow(ctx context.Context, c *conn, child address, queue string, res compensated) error {
	p := &printer{app: o.app, session: o.turn.session}
	f := &follower{conn: c, session: o.turn.session, queue: queue, show: func(e event) {
		e.Cursor = nil // watch follows turns
		p.event(e)
	}}
	log, err := f.workflow(ctx, child, nil)
	if err != nil {
		if ctx.Err() != nil {
			o.app.leave("the compensation goes on without this command: holdfast effects %s", o.turn)
		}
		return err
	}
	res.Workflow, res.Result, res.Status, res.Effects = child.workflow(), wordAccepted, log.status, log.ledger()
	if log.waiting && !log.ended {
		res.Status = agent.StatusWaiting
	}
	if r := log.reason; r != nil {
		res.Why = r.Message
		if r.Type == agent.ErrNotEntitled {
			res.Result = wordRefused
		}
	}
	if res.exit() == ExitDone && len(o.keys) == 0 {
		res.Standing = o.standing(ctx, c)
	}
	return o.report(res)
}

// standing looks for what the turn has done and nobody undoes: whoever ordered everything to be undone has to know.
func (o *compensateOptions) standing(ctx context.Context, c *conn) []agent.Effect {
	f := newFinder(c, o.app.storeAtHand(ctx))
	defer f.close()
	all, err := f.one(ctx, o.turn)
	if err != nil {
		return nil // the order was carried out all the same
	}
	var out []agent.Effect
	for _, e := range all.Effects {
		if e.State == agent.StateCommitted && e.Undoes == "" {
			out = append(out, e.Effect)
		}
	}
	return out
}

func (o *compensateOptions) report(res compensated) error {
	a, exit := o.app, res.exit()
	if a.json() {
		if err := a.printJSON(res); err != nil || exit == ExitDone {
			return err
		}
		return &exitError{code: exit}
	}
	for _, e := range res.Effects {
		fmt.Fprintf(a.Out, "%s: %s  %s%s\n", line(string(e.State), 32), line(e.Tool, 64), line(e.Key, 240), because(e.Note))
	}
	for _, e := range res.Standing {
		a.note("%s not undone, because its tool names nothing that undoes it: %s  %s", a.paint(a.Err, yellow, "note:"), line(cmp.Or(e.Summary, e.Tool), 120), line(e.Key, 240))
	}
	switch {
	case exit == ExitDone && len(res.Effects) == 0:
		a.note("nothing was to be undone")
	case res.Result == wordRefused:
		return &exitError{exit, fmt.Errorf("refused: %s", line(res.Why, 2000))}
	case res.Result == wordUnanswered:
		return withHint(&exitError{exit, fmt.Errorf("the compensation has not begun within %s; the order was given and may be carried out", o.wait)},
			"see what becomes of it: holdfast effects %s", o.turn)
	case exit == ExitWaiting:
		return withHint(&exitError{exit, errors.New("the compensation waits for a person")}, "see what for: holdfast attention")
	case exit != ExitDone:
		return withHint(&exitError{exit, errors.New(cmp.Or(line(res.Why, 2000), "not everything was undone"))},
			"what is left needs a person; then try again with the same command")
	}
	return nil
}

// exit says how the compensation ended: that it was carried out does not mean that everything was undone.
func (res *compensated) exit() int {
	switch {
	case res.Result != wordAccepted:
		return exitOf(res.Result)
	case res.Status == agent.StatusWaiting:
		return ExitWaiting
	case res.Status == agent.StatusCancelled:
		return ExitCancelled
	case res.Status != agent.StatusDone || slices.ContainsFunc(res.Effects, left):
		return ExitFailed
	}
	return ExitDone
}

// left says whether an effect was to be undone and is not.
func left(e agent.Effect) bool {
	return e.State == agent.StateCompensationFailed || e.State == agent.StateIrreversible || e.State == agent.StateUncertain ||
		e.State == agent.StateCompensating
}
