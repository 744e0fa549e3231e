package starter

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

type sendOptions struct {
	app *App
	messageFlags
	session           string
	now, follow, wait bool
}

func newSend(a *App) *cobra.Command {
	o := &sendOptions{app: a}
	cmd := &cobra.Command{
		Use:   "send SESSION [MESSAGE]",
		Short: "Send a message to a session",
		Example: `  holdfast send support-x7k2mq "and order 43 too" --follow
  holdfast send support-x7k2mq --now "stop after the first one"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context(), args[1:])
		},
		ValidArgsFunction: a.completeSessions,
	}
	o.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.now, "now", false, "tell the running turn instead of waiting for its end")
	f.BoolVarP(&o.follow, "follow", "f", false, "follow the turn to its end, as run does")
	f.BoolVar(&o.wait, "wait", false, "with --follow: keep following a turn that waits for a person")
	return cmd
}

func (o *sendOptions) run(ctx context.Context, args []string) error {
	if err := checkSessionID(o.session); err != nil {
		return err
	}
	m, err := o.message(o.app, args)
	if err != nil {
		return err
	}
	m.Now = o.now
	if err := o.prove(ctx, o.session, &m); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	info, err := c.describeSession(ctx, o.session)
	if err != nil {
		return err
	}
	s := submission{session: o.session, queue: info.GetTaskQueue(), message: m}
	if s.queue == "" {
		s.queue = o.app.queue(o.queue)
	}
	if o.follow {
		return o.app.deliver(ctx, c, s, o.wait)
	}
	got, err := c.submit(ctx, s, (&printer{app: o.app}).stderrNotice)
	var closed errSessionClosed
	if errors.As(err, &closed) {
		return withHint(err, "start another: holdfast start AGENT")
	}
	if err != nil {
		if ctx.Err() != nil {
			o.app.notAccepted(s)
		}
		return err
	}
	return o.print(accepted{o.session, m.ID, got.SendResult})
}

func (o *sendOptions) print(v accepted) error {
	if o.app.json() {
		return o.app.printJSON(v)
	}
	text := "waits for its turn"
	switch {
	case v.Duplicate:
		text = "had been accepted before; nothing was sent twice"
	case v.Steered:
		text = fmt.Sprintf("told to turn %d", v.Turn)
	case v.Turn > 0:
		text = fmt.Sprintf("has turn %d", v.Turn)
	case v.Ahead > 0:
		text = "waits behind " + count(v.Ahead, "message")
	}
	_, err := fmt.Fprintf(o.app.Out, "message %s %s\n", v.Message, text)
	return err
}
