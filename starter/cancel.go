package starter

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
)

type cancelOptions struct {
	app     *App
	session string
	turn    int
	reason  string
	from    string
	wait    time.Duration
}

func newCancel(a *App) *cobra.Command {
	o := &cancelOptions{app: a}
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel the running turn",
		Long: `Asks the running turn to stop, waits a little for its end and says what became of each action: whether its tool
stopped it, could not stop it, or had done it before. The session stays open. What an action has done to the world
is undone only if policy says so; by hand: holdfast compensate.`,
		Example: `  holdfast cancel support-x7k2mq --reason "wrong customer"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.IntVar(&o.turn, "turn", 0, "only if this turn is running; a turn that is over is not cancelled")
	f.StringVar(&o.reason, "reason", "", "why; recorded and shown")
	f.StringVar(&o.from, "from", claimed(), "who cancels; recorded, not verified")
	f.DurationVar(&o.wait, "wait", 10*time.Second, "how long to wait for the turn's end")
	return cmd
}

// An ending is what cancel prints with -o json.
type ending struct {
	Session string         `json:"session"`
	Turn    int            `json:"turn"`
	Status  agent.Status   `json:"status"`
	Reason  *agent.Reason  `json:"reason,omitempty"`
	Effects []agent.Effect `json:"effects,omitempty"` // that were asked to stop, or whose outcome is open
	Dropped int64          `json:"dropped,omitempty"` // model calls that were given up, and may be charged for
	Ended   bool           `json:"ended"`
}

func (o *cancelOptions) run(ctx context.Context) error {
	c, err := o.app.openSession(ctx, o.session)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := c.runningTurn(ctx, o.session)
	if err != nil {
		return err
	}
	if n == 0 || o.turn != 0 && o.turn != n {
		return withHint(fmt.Errorf("session %q: %s", o.session, notRunning(o.turn)), "see what happened: holdfast show %s", o.session)
	}
	err = c.SignalWorkflow(ctx, o.session, "", agent.SignalCancel, agent.Cancel{Turn: n, Reason: o.reason, From: o.from})
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	p := &printer{app: o.app, session: o.session}
	f := &follower{conn: c, session: o.session, show: func(e event) {
		if e.Type == evNotice {
			p.stderrNotice(e.Text)
		}
	}, stay: true, mute: true}
	log, err := f.turn(limit, n, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		o.app.leave("turn %d was asked to stop; see whether it has: holdfast show %s --turn %d", n, o.session, n)
		return err
	case err != nil && limit.Err() == nil:
		return err
	case log == nil: // no time was left to look
		log = newTurnLog(decoder{c.payloads}, n)
	}
	return o.print(o.ending(ctx, c, log))
}

func notRunning(turn int) string {
	if turn == 0 {
		return "no turn is running"
	}
	return fmt.Sprintf("turn %d is not running", turn)
}

// ending puts together what became of the turn. Its own word, or its closing record, knows more than the history.
func (o *cancelOptions) ending(ctx context.Context, c *conn, log *turnLog) ending {
	e := ending{Session: o.session, Turn: log.turn, Status: log.status, Reason: log.reason, Ended: log.ended}
	effects := log.ledger()
	f := newFinder(c, o.app.storeAtHand(ctx))
	defer f.close()
	if l, err := f.ledger(ctx, log.scope(), address{session: o.session, turn: log.turn}); err == nil && l.source != sourceHistory {
		effects = l.effects
	}
	for _, ef := range effects {
		if ef.Cancel != "" || ef.State == agent.StateUncertain || !log.ended && ef.State == agent.StateAuthorized {
			e.Effects = append(e.Effects, ef)
		}
	}
	if log.result != nil {
		e.Dropped = log.result.Usage.Dropped
	}
	return e
}

func (o *cancelOptions) print(e ending) error {
	a := o.app
	if a.json() {
		return a.printJSON(e)
	}
	if e.Ended {
		fmt.Fprintf(a.Out, "turn %d: %s\n", e.Turn, line(string(e.Status), 32))
	} else {
		fmt.Fprintf(a.Out, "turn %d was asked to stop and has not ended yet; it waits for what it is doing\n", e.Turn)
	}
	for _, ef := range e.Effects {
		fmt.Fprintf(a.Out, "%s: %s (%s), key %s\n", line(ef.Tool, 64), stopText(ef), line(string(ef.State), 32), line(ef.Key, 240))
	}
	if e.Dropped > 0 {
		a.note("%s dropped while it was under way: it may be charged for, and is not in the usage", count(int(e.Dropped), "model call"))
	}
	return nil
}

// openSession connects and checks that the session is there and open.
func (a *App) openSession(ctx context.Context, session string) (*conn, error) {
	if err := checkSessionID(session); err != nil {
		return nil, err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	info, err := c.describeSession(ctx, session)
	if err == nil && info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		err = errSessionClosed{session}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// runningTurn returns the number of the turn that runs now, or 0. It needs no worker.
func (c *conn) runningTurn(ctx context.Context, session string) (int, error) {
	n, err := c.latestTurn(ctx, session)
	if err != nil || n == 0 {
		return 0, err
	}
	d, err := c.describe(ctx, agent.TurnID(session, n), "")
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return 0, err
	}
	return n, nil
}

// stopText says what became of the wish to stop an effect that is open or was asked to stop.
func stopText(e agent.Effect) string {
	if e.Cancel == "" && e.State == agent.StateUncertain {
		return "it had been sent, and nobody knows what became of it"
	}
	return cancelText(cmp.Or(e.Cancel, agent.CancelAsked))
}

// cancelText says what became of the wish to stop an action.
func cancelText(c agent.CancelFact) string {
	switch c {
	case agent.CancelAsked:
		return "asked to stop, no answer yet"
	case agent.CancelAccepted:
		return "the tool stopped it"
	case agent.CancelRefused:
		return "the tool could not stop it"
	case agent.CancelCompleted:
		return "it was done before it could be stopped"
	case agent.CancelLate:
		return "its outcome came after the turn had ended"
	}
	return line(string(c), 32)
}
