package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
)

type startOptions struct {
	app *App
	messageFlags
	agent, session, tenant string
	wait                   time.Duration
}

func newStart(a *App) *cobra.Command {
	o := &startOptions{app: a}
	cmd := &cobra.Command{
		Use:   "start AGENT [MESSAGE]",
		Short: "Start a session and print its id",
		Long: `Starts a session, sends it the message if there is one, and prints the session's id without following. A worker has to
accept the message; if none does within --wait, the command gives up with exit code 1 and says how to go on.`,
		Example: `  S=$(holdfast start support "refund order 42")
  holdfast watch $S`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.agent = args[0]
			return o.run(cmd.Context(), args[1:])
		},
		ValidArgsFunction: a.completeAgents,
	}
	o.add(cmd)
	cmd.Flags().StringVar(&o.session, "session", "", "the session's id (default: a new one)")
	cmd.Flags().DurationVar(&o.wait, "wait", 30*time.Second, "how long to wait for a worker to accept the message")
	cmd.Flags().StringVar(&o.tenant, "tenant", "", "for whom the agent works; a search attribute of the session")
	return cmd
}

// A started session or an accepted message, as -o json prints it.
type accepted struct {
	Session string `json:"session"`
	Message string `json:"message,omitempty"` // its id
	agent.SendResult
}

func (o *startOptions) run(ctx context.Context, args []string) error {
	r := &runOptions{app: o.app, messageFlags: o.messageFlags, agent: o.agent, session: o.session, tenant: o.tenant}
	if len(args) == 0 && o.file == "" {
		return o.startOnly(ctx, r)
	}
	s, err := r.submission(ctx, args)
	if err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	fresh, err := o.app.checkSession(ctx, c, s)
	if err != nil {
		return err
	}
	p := &printer{app: o.app, session: s.session}
	sending, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	got, err := c.submit(sending, s, p.stderrNotice)
	var closed errSessionClosed
	switch {
	case errors.As(err, &closed) && o.messageID != "":
		if got.Turn, err = c.turnOf(ctx, s.session, s.message.ID); err != nil || got.Turn == 0 {
			return closed
		}
		got.Duplicate = true
	case err != nil && ctx.Err() == nil && sending.Err() != nil:
		o.app.notAccepted(s)
		return fmt.Errorf("no worker accepted the message to session %q within %s", s.session, o.wait)
	case err != nil && ctx.Err() == nil:
		return o.app.undo(ctx, c, s, fresh, err)
	case err != nil:
		o.app.notAccepted(s)
		return err
	}
	return o.print(accepted{s.session, s.message.ID, got.SendResult})
}

func (o *startOptions) startOnly(ctx context.Context, r *runOptions) error {
	switch {
	case o.messageID != "":
		return usageError("--message-id without a message")
	case o.sign != "" || o.as != "":
		return usageError("--sign without a message: only a message is signed")
	}
	s := submission{session: o.session, agent: o.agent, tenant: o.tenant, queue: o.app.queue(o.queue)}
	if s.session == "" {
		s.session = newSessionID(o.agent)
	}
	if err := checkSessionID(s.session); err != nil {
		return err
	}
	c, err := r.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.begin(ctx, s); err != nil {
		return err
	}
	return o.print(accepted{Session: s.session})
}

func (o *startOptions) print(v accepted) error {
	if o.app.json() {
		return o.app.printJSON(v)
	}
	_, err := fmt.Fprintln(o.app.Out, v.Session)
	return err
}

// stderrNotice is for commands whose JSON is a single object.
func (p *printer) stderrNotice(text string) {
	p.app.note("%s %s", p.app.paint(p.app.Err, yellow, "note:"), text)
}
