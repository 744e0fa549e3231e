package starter

import (
	"context"
	"errors"
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
		Long: `Asks the running turn to stop, waits a little for its end and says what could not be stopped. The session
stays open. What an action has done to the world is not undone.`,
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
	Effects []agent.Effect `json:"effects,omitempty"` // that could not be stopped
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
		return withHint(fmt.Errorf("session %q: %s is running", o.session, turnWords(o.turn)), "see what happened: holdfast show %s", o.session)
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
	}, stay: true}
	log, err := f.turn(limit, n, nil)
	if err != nil && (ctx.Err() != nil || limit.Err() == nil) {
		return err
	}
	return o.print(log)
}

func turnWords(turn int) string {
	if turn == 0 {
		return "no turn"
	}
	return fmt.Sprintf("not turn %d", turn)
}

func (o *cancelOptions) print(log *turnLog) error {
	e := ending{Session: o.session, Turn: log.turn, Status: log.status, Reason: log.reason, Ended: log.ended}
	if log.result != nil {
		e.Effects = log.result.Effects
	}
	a := o.app
	if a.json() {
		return a.printJSON(e)
	}
	if !e.Ended {
		fmt.Fprintf(a.Out, "turn %d was asked to stop and has not ended yet; it waits for what it is doing\n", e.Turn)
		return nil
	}
	fmt.Fprintf(a.Out, "turn %d: %s\n", e.Turn, line(string(e.Status), 32))
	for _, ef := range e.Effects {
		fmt.Fprintf(a.Out, "could not be stopped: %s: %s, key %s\n", line(ef.Tool, 64), line(string(ef.State), 32), line(ef.Key, 240))
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
		err = fmt.Errorf("session %q is closed", session)
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
	d, err := c.DescribeWorkflowExecution(ctx, agent.TurnID(session, n), "")
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return 0, err
	}
	return n, nil
}

type closeOptions struct {
	app     *App
	session string
	accept  bool
	from    string
	wait    time.Duration
}

func newClose(a *App) *cobra.Command {
	o := &closeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "close SESSION",
		Short: "Close a session for good",
		Long: `Closes the session once its running turn has ended. A session with effects whose outcome nobody knows stays open
unless --accept-uncertain says that this is known.`,
		Example: `  holdfast close support-x7k2mq
  holdfast close support-x7k2mq --accept-uncertain`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.BoolVar(&o.accept, "accept-uncertain", false, "close over effects whose outcome nobody knows")
	f.StringVar(&o.from, "from", claimed(), "who closes; recorded, not verified")
	f.DurationVar(&o.wait, "wait", 10*time.Second, "how long to wait for the session's end")
	return cmd
}

// A closing is what close prints with -o json.
type closing struct {
	Session    string         `json:"session"`
	Closed     bool           `json:"closed"`
	Running    int            `json:"running,omitempty"` // the turn that it waits for
	Refused    string         `json:"refused,omitempty"`
	Unresolved []agent.Effect `json:"unresolved,omitempty"`
}

func (o *closeOptions) run(ctx context.Context) error {
	c, err := o.app.openSession(ctx, o.session)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.SignalWorkflow(ctx, o.session, "", agent.SignalClose, agent.Close{AcceptUncertain: o.accept, From: o.from})
	if err != nil {
		return err
	}
	res := closing{Session: o.session}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	err = poll(limit, func() (bool, error) { return o.check(limit, c, &res) })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return o.print(res)
}

// check looks once how far the closing is.
func (o *closeOptions) check(ctx context.Context, c *conn, res *closing) (bool, error) {
	info, err := c.describeSession(ctx, o.session)
	if err != nil {
		return false, err
	}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		*res = closing{Session: o.session, Closed: true}
		return true, nil
	}
	v, err := c.view(ctx, o.session)
	if err != nil {
		return false, nil // no worker answers; the session may still close
	}
	res.Running, res.Refused, res.Unresolved = v.Running, v.Refused, v.Unresolved
	return v.Refused != "", nil
}

func (o *closeOptions) print(res closing) error {
	a := o.app
	if a.json() {
		if err := a.printJSON(res); err != nil {
			return err
		}
		if res.Refused != "" {
			return &exitError{code: ExitError}
		}
		return nil
	}
	switch {
	case res.Closed:
		fmt.Fprintf(a.Out, "session %s is closed\n", o.session)
	case res.Refused != "":
		for _, e := range res.Unresolved {
			a.note("%s: %s, key %s", line(e.Tool, 64), line(string(e.State), 32), line(e.Key, 240))
		}
		return withHint(fmt.Errorf("session %q stays open: %s", o.session, line(res.Refused, 300)),
			"find out at the destination what became of them; then: holdfast close %s --accept-uncertain", o.session)
	case res.Running > 0:
		fmt.Fprintf(a.Out, "session %s closes when turn %d has ended; to end it now: holdfast cancel %s\n", o.session, res.Running, o.session)
	default:
		fmt.Fprintf(a.Out, "session %s was asked to close and has not answered yet; is a worker running?\n", o.session)
	}
	return nil
}

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
