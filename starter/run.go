package starter

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
)

// messageFlags are what run, start and send have in common.
type messageFlags struct {
	file      string
	messageID string
	from      string
	queue     string
}

func (m *messageFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.file, "file", "", "read the message from a `file`, - is stdin")
	f.StringVar(&m.messageID, "message-id", "", "makes sending idempotent: the same `id` again sends nothing twice")
	f.StringVar(&m.from, "from", claimed(), "who sends it; recorded, not verified")
	f.StringVar(&m.queue, "task-queue", "", "task queue of the workers (default: the configuration's, or \"holdfast\")")
}

func (m *messageFlags) message(a *App, args []string) (agent.Message, error) {
	text, err := a.readMessage(args, m.file)
	if err != nil {
		return agent.Message{}, err
	}
	id := m.messageID
	if id == "" {
		id = newMessageID()
	}
	return agent.Message{ID: id, Text: text, From: m.from}, checkMessageID(id)
}

type runOptions struct {
	app *App
	messageFlags
	agent, session, tenant string
	wait, close            bool
}

func newRun(a *App) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run AGENT [MESSAGE]",
		Short: "Send a message to an agent and follow it to the answer",
		Long: `Starts a session, sends the message and follows its turn to the end. The answer goes to stdout, progress to
stderr. The session stays open for further messages. Interrupting this command changes nothing for the turn.`,
		Example: `  holdfast run support "refund order 42"
  holdfast run support --file letter.txt -o json
  git diff | holdfast run reviewer --message-id review-$(git rev-parse HEAD)`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.agent = args[0]
			return o.run(cmd.Context(), args[1:])
		},
		ValidArgsFunction: a.completeAgents,
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.session, "session", "", "the session's id (default: a new one)")
	f.StringVar(&o.tenant, "tenant", "", "for whom the agent works; a search attribute of a new session")
	f.BoolVar(&o.wait, "wait", false, "keep following a turn that waits for a person instead of exiting with 8")
	f.BoolVar(&o.close, "close", false, "close the session after the turn")
	return cmd
}

func (o *runOptions) run(ctx context.Context, args []string) error {
	s, err := o.submission(args)
	if err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = o.app.deliver(ctx, c, s, o.wait)
	var exit *exitError
	if o.close && (err == nil || errors.As(err, &exit) && exit.code != ExitWaiting) {
		if signalErr := c.SignalWorkflow(ctx, s.session, "", agent.SignalClose, agent.Close{From: o.from}); signalErr != nil && !isNotFound(signalErr) {
			return fmt.Errorf("closing session %q: %w", s.session, signalErr)
		}
	}
	return err
}

func (o *runOptions) submission(args []string) (submission, error) {
	m, err := o.message(o.app, args)
	if err != nil {
		return submission{}, err
	}
	s := submission{session: o.session, agent: o.agent, tenant: o.tenant, queue: o.app.queue(o.queue), message: m, start: true}
	switch {
	case s.session == "" && o.messageID != "":
		s.session = sessionFor(o.agent, o.messageID)
	case s.session == "":
		s.session = newSessionID(o.agent)
	}
	return s, checkSessionID(s.session)
}
