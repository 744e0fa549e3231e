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
	var closed errSessionClosed
	if errors.As(err, &closed) {
		return o.print(closing{Session: o.session, Closed: true})
	}
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
	switch {
	case err != nil && ctx.Err() != nil:
		o.app.leave("session %s was asked to close and does so once its running turn has ended", o.session)
		return err
	case err != nil && limit.Err() == nil:
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
	// Without a worker nobody answers; the session may still close.
	if v, err := c.view(ctx, o.session); err == nil {
		res.Running, res.Refused, res.Unresolved = v.Running, v.Refused, v.Unresolved
	}
	return res.Refused != "", nil
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
			"find out at the destination what became of them and settle them: holdfast effects %s --uncertain; or close over them: holdfast close %s --accept-uncertain",
			o.session, o.session)
	case res.Running > 0:
		fmt.Fprintf(a.Out, "session %s closes when turn %d has ended; to end it now: holdfast cancel %s\n", o.session, res.Running, o.session)
	default:
		fmt.Fprintf(a.Out, "session %s was asked to close and has not answered yet; is a worker running?\n", o.session)
	}
	return nil
}
