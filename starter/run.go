package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// messageFlags are what run, start and send have in common.
type messageFlags struct {
	file      string
	messageID string
	from      string
	queue     string
	sign, as  string
}

func (m *messageFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.file, "file", "", "read the message from a `file`, - is stdin")
	f.StringVar(&m.messageID, "message-id", "", "makes sending idempotent: the same `id` again sends nothing twice")
	f.StringVar(&m.from, "from", claimed(), "who sends it; recorded, not verified")
	f.StringVar(&m.sign, "sign", "", "prove who sends it: sign with the SSH `key` in this file; a .pub file, or the word agent, uses the ssh-agent")
	f.StringVar(&m.as, "as", "", "with --sign: in whose `name`, as policy knows it (default: --from, HOLDFAST_APPROVER, the user)")
	f.StringVar(&m.queue, "task-queue", "", "task queue of the workers (default: the configuration's, or \"holdfast\")")
	completeFiles(cmd, "file", "sign")
}

func (m *messageFlags) message(a *App, args []string) (agent.Message, error) {
	if m.as != "" && m.sign == "" {
		return agent.Message{}, usageError("--as without --sign: a name that nothing proves is --from")
	}
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

// prove signs the message, if that was asked for. The session is part of what is signed, so that a message is
// good for one session only.
func (m *messageFlags) prove(ctx context.Context, session string, msg *agent.Message) error {
	if m.sign == "" {
		return nil
	}
	given := ""
	if m.from != claimed() {
		given = m.from
	}
	msg.From = cmp.Or(m.as, given, os.Getenv("HOLDFAST_APPROVER"), m.from)
	msg.Time = time.Now().UTC().Truncate(time.Second)
	var err error
	msg.Signature, err = signWith(ctx, m.sign, approval.MessageBytes(session, *msg))
	return err
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
  holdfast run support "refund order 42" --sign ~/.ssh/id_ed25519 --as alice
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
	s, err := o.submission(ctx, args)
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

func (o *runOptions) submission(ctx context.Context, args []string) (submission, error) {
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
	if err := checkSessionID(s.session); err != nil {
		return s, err
	}
	return s, o.prove(ctx, s.session, &s.message)
}
