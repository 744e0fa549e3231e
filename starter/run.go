package starter

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
	err = o.app.deliver(ctx, c, s, o.session == "" && o.messageID != "", o.wait)
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

// deliver submits a message and follows its turn. Repeated says that the session's id was derived from the
// message's, so that a closed session is one in which the turn can be found.
func (a *App) deliver(ctx context.Context, c *conn, s submission, repeated, wait bool) error {
	fresh, err := a.checkSession(ctx, c, s)
	if err != nil {
		return err
	}
	p := &printer{app: a, session: s.session}
	if !a.json() {
		a.note("session %s", s.session)
	}
	r, err := c.submit(ctx, s, p.notice)
	var closed errSessionClosed
	switch {
	case errors.As(err, &closed):
		n, findErr := c.turnOf(ctx, s.session, s.message.ID)
		if findErr != nil || n == 0 || !repeated && s.start && fresh {
			return withHint(err, "a session's id is used once; start another: holdfast run %s MESSAGE", orPlaceholder(s.agent))
		}
		r.Turn, r.Duplicate = n, true
	case err != nil && ctx.Err() != nil:
		a.note("the message %s was not accepted yet; the same command with --message-id sends it once", s.message.ID)
		return err
	case err != nil:
		return a.undo(ctx, c, s, fresh, err)
	}
	return a.followMessage(ctx, c, s, r, p, wait)
}

// checkSession says whether the session is still to be started, and refuses one that belongs to another
// agent.
func (a *App) checkSession(ctx context.Context, c *conn, s submission) (fresh bool, err error) {
	d, err := c.DescribeWorkflow(ctx, s.session, "")
	if isNotFound(err) {
		if !s.start {
			_, err = c.describeSession(ctx, s.session)
			return false, err
		}
		return true, nil
	}
	if err != nil || !s.start {
		return false, err
	}
	if name, ok := d.TypedSearchAttributes.GetKeyword(keywordKey(agent.AttributeAgent)); ok && name != s.agent {
		return false, withHint(fmt.Errorf("session %q is with agent %q, not with %q", s.session, line(name, 64), s.agent),
			"send to it as it is: holdfast send %s MESSAGE; or choose another --session", s.session)
	}
	return false, nil
}

// undo closes a session that was started for a message that it then refused.
func (a *App) undo(ctx context.Context, c *conn, s submission, fresh bool, err error) error {
	if !fresh {
		return err
	}
	v, viewErr := c.view(ctx, s.session)
	if viewErr != nil || v.Turns > 0 || v.Queued > 0 {
		return withHint(err, "the session %s was started and is open: holdfast close %s", s.session, s.session)
	}
	if closeErr := c.SignalWorkflow(ctx, s.session, "", agent.SignalClose, agent.Close{From: claimed()}); closeErr != nil {
		return withHint(err, "the session %s was started and is open: holdfast close %s", s.session, s.session)
	}
	return withHint(err, "the session %s that had been started for it was closed again", s.session)
}

// followMessage follows the turn that takes a message, and the next one if a running turn ended before the
// model saw it.
func (a *App) followMessage(ctx context.Context, c *conn, s submission, r receipt, p *printer, wait bool) error {
	f := &follower{conn: c, session: s.session, queue: s.queue, show: p.event, stay: wait}
	if r.Duplicate {
		p.notice("this message had been accepted before; nothing was sent twice")
	}
	n := r.Turn
	for {
		var err error
		if n == 0 {
			if r.Ahead > 0 {
				p.notice(count(r.Ahead, "message") + " before it")
			}
			if n, err = f.awaitTurn(ctx, r.run, s.message.ID); err != nil {
				return p.interrupted(ctx, f, err)
			}
		}
		log, err := f.turn(ctx, n, nil)
		if err != nil {
			return p.interrupted(ctx, f, err)
		}
		if !undelivered(log, s.message.ID) {
			return p.finish(f, log)
		}
		p.notice("the turn ended before the model saw the message; it has the next turn")
		n, r.Ahead = 0, 0
	}
}

func undelivered(log *turnLog, message string) bool {
	if log.result == nil {
		return false
	}
	for _, m := range log.result.Undelivered {
		if m.ID == message {
			return true
		}
	}
	return false
}

func orPlaceholder(name string) string {
	if name == "" {
		return "AGENT"
	}
	return name
}

// A printer shows the events of a turn: lines on stderr, or JSON on stdout.
type printer struct {
	app     *App
	session string
	lines   bool // lines are the result and belong on stdout
	mu      sync.Mutex
}

func (p *printer) notice(text string) { p.event(event{Type: evNotice, Text: text}) }

// event prints one event. It is safe for concurrent use.
func (p *printer) event(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.app
	switch {
	case a.json():
		_ = a.printJSON(e) // a reader that went away ends the program by itself
	case e.Type == evNotice:
		a.note("%s %s", a.paint(a.Err, yellow, "note:"), e.Text)
	case p.lines:
		fmt.Fprintln(a.Out, p.line(e))
	case !a.quiet:
		fmt.Fprintln(a.Err, p.line(e))
	}
}

func (p *printer) line(e event) string {
	w := p.app.Err
	if p.lines {
		w = p.app.Out
	}
	text := e.Text // made visible where it was composed
	switch e.Type {
	case evTurnEnded, evTurnWaiting, evSessionEnded:
		text = p.app.paint(w, bold, text)
	case evModelFailed, evToolFailed, evToolRefused, evWorkerLost, evWorkerStuck:
		text = p.app.paint(w, red, text)
	}
	return p.app.paint(w, dim, e.Time.Local().Format("15:04:05")) + "  " + text
}
