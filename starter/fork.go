package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

type forkOptions struct {
	app *App
	signFlags
	from                           agent.Scope // its life is empty unless it was given
	at, agent, session, tenant     string
	turn                           int
	reason, file, messageID, queue string
	wait                           time.Duration
}

func newFork(a *App) *cobra.Command {
	o := &forkOptions{app: a}
	cmd := &cobra.Command{
		Use:   "fork SESSION --at turn-N [MESSAGE]",
		Short: "Start a new session from where a turn of another one ended",
		Long: `Starts a new session that knows what was said up to the end of a turn of another one, and goes on by itself: other
instructions can be tried, or a conversation taken up that went wrong later. What the session that it came from has done,
or may have done, counts for it: the same action is not sent a second time unless the policy's "duplicates" lets it. A
session can be forked at any turn that has ended, also when it is closed. Who may fork is in the policy (rights.fork); a
refused fork exits with 7, and its session is closed.

With a message it sends it and follows the turn, as run does. A session that Temporal has forgotten is named with its
life, SESSION~LIFE, as its part of the store is.`,
		Example: `  holdfast fork support-x7k2mq --at turn-3
  holdfast fork support-x7k2mq --at turn-3 --agent support-next "try it again, without the voucher"
  holdfast fork support-x7k2mq/turn-3 --session second-try --as alice --key ~/.ssh/id_ed25519 --reason "went astray"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args[0]); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[1:])
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.StringVar(&o.at, "at", "", "the last `turn` that the new session knows of: turn-3, or 3")
	f.StringVar(&o.agent, "agent", "", "the new session's agent (default: the same)")
	f.StringVar(&o.session, "session", "", "the new session's id (default: a new one)")
	f.StringVar(&o.tenant, "tenant", "", "for whom the agent works (default: the same)")
	f.StringVar(&o.reason, "reason", "", "why; recorded")
	f.StringVar(&o.file, "file", "", "read the message from a `file`, - is stdin")
	f.StringVar(&o.messageID, "message-id", "", "makes it idempotent: the same `id` again forks and sends nothing twice")
	f.StringVar(&o.queue, "task-queue", "", "task queue of the workers (default: that of the session)")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "without a message: how long to wait for the word on the fork")
	o.add(cmd)
	completeFiles(cmd, "file")
	_ = cmd.RegisterFlagCompletionFunc("as", a.completeApprovers)
	_ = cmd.RegisterFlagCompletionFunc("at", a.completeTurns)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeAgents(cmd, nil, prefix)
	})
	return cmd
}

// parse reads SESSION, SESSION/turn-N or SESSION~LIFE, and the flags that go with it.
func (o *forkOptions) parse(arg string) (err error) {
	session, life, _ := strings.Cut(arg, "~")
	at, err := parseAddress(session)
	if err != nil {
		return err
	}
	o.from, o.turn = agent.Scope{Session: at.session, Life: life}, at.turn
	if life != "" && (at.turn != 0 || !o.from.Valid()) {
		return usageError("%q: want SESSION~LIFE, where the life is 8 hex digits, and the turn with --at", line(arg, 120))
	}
	switch n, err := parseTurnNumber(o.at); {
	case at.undo != 0:
		return usageError("%s is a compensation; a session is forked at one of its turns", at)
	case o.at == "" && o.turn == 0:
		return withHint(usageError("at which turn? Name the last one that the new session is to know of: --at turn-N"), "see them: holdfast transcript %s, holdfast show %s", at.session, at.session)
	case o.at != "" && err != nil:
		return err
	case o.at != "" && o.turn != 0 && o.turn != n:
		return usageError("the turn is given twice: as %s and by --at %s", at, line(o.at, 40))
	case o.at != "":
		o.turn = n
	}
	if o.session != "" {
		if err := checkSessionID(o.session); err != nil {
			return err
		}
	}
	if (o.print || o.signatureFile != "") && o.session == "" {
		return usageError("--print and --signature need --session: the new session's id is part of what is signed")
	}
	return o.check()
}

func parseTurnNumber(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "turn-"))
	if err != nil || n < 1 {
		return 0, usageError("--at %q: want turn-N; turns count from 1", line(s, 40))
	}
	return n, nil
}

// message reads the message, if there is one; nobody is waited for at a terminal.
func (o *forkOptions) message(args []string) (*agent.Message, error) {
	if len(args) == 0 && o.file == "" {
		return nil, nil
	}
	text, err := o.app.readMessage(args, o.file)
	if err != nil {
		return nil, err
	}
	return &agent.Message{ID: cmp.Or(o.messageID, newMessageID()), Text: text, From: o.approver()}, nil
}

func (o *forkOptions) run(ctx context.Context, args []string) error {
	m, err := o.message(args)
	if err != nil {
		return err
	}
	if o.messageID != "" {
		if err := checkMessageID(o.messageID); err != nil {
			return err
		}
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := o.submission(ctx, c)
	if err != nil {
		return err
	}
	if s.fork, err = o.statement(ctx, s); err != nil || o.print {
		return err
	}
	if m == nil {
		return o.start(ctx, c, s)
	}
	if err := o.sign(ctx, s.session, m); err != nil {
		return err
	}
	s.message = *m
	return o.send(ctx, c, s)
}

// submission finds out what the new session takes over from the one that is forked.
func (o *forkOptions) submission(ctx context.Context, c *conn) (submission, error) {
	s := submission{agent: o.agent, tenant: o.tenant, session: o.session, start: true}
	d, err := c.describe(ctx, o.from.Session, "")
	switch {
	case isNotFound(err) && o.from.Life == "":
		return s, withHint(fmt.Errorf("no session %q in namespace %q at %s", o.from.Session, c.namespace, c.address),
			"if Temporal has forgotten it, name it with its life, as its part of the store is named: holdfast fork %s~LIFE --at turn-%d", o.from.Session, o.turn)
	case err != nil && !isNotFound(err):
		return s, err
	}
	info := d.GetWorkflowExecutionInfo()
	if name := info.GetType().GetName(); err == nil && name != agent.WorkflowSession {
		return s, fmt.Errorf("workflow %q is a %q and no session", o.from.Session, line(name, 64))
	}
	now := agent.NewScope(o.from.Session, firstRunOf(info))
	if o.from.Life == "" {
		o.from = now
	}
	if o.from == now { // of a session that had the id before, nothing is known here
		s.agent, s.tenant = cmp.Or(s.agent, c.attribute(info, agent.AttributeAgent)), cmp.Or(s.tenant, c.attribute(info, agent.AttributeTenant))
		s.queue = info.GetTaskQueue()
	}
	if s.agent == "" {
		s.agent = o.recordedAgent(ctx)
	}
	if s.agent == "" {
		return s, usageError("which agent is the new session with? It is not known here: --agent NAME")
	}
	s.queue = o.app.queue(cmp.Or(o.queue, s.queue))
	switch {
	case s.session == "" && o.messageID != "":
		s.session = sessionFor(s.agent, fmt.Sprintf("%s:turn-%d\x00%s", o.from, o.turn, o.messageID))
	case s.session == "":
		s.session = newSessionID(s.agent)
	}
	return s, nil
}

// recordedAgent is what the turn's closing record says, when the store is at hand.
func (o *forkOptions) recordedAgent(ctx context.Context) string {
	st := o.app.storeAtHand(ctx)
	if st == nil {
		return ""
	}
	defer func() { _ = st.Close() }()
	r, err := closingRecord(ctx, st, o.from, address{session: o.from.Session, turn: o.turn})
	if err != nil {
		return ""
	}
	return r.Agent
}

// statement says who forks, and signs it or prints the bytes to sign.
func (o *forkOptions) statement(ctx context.Context, s submission) (*agent.Fork, error) {
	at, err := o.moment()
	if err != nil {
		return nil, err
	}
	f := &agent.Fork{From: o.from, Turn: o.turn, Approver: o.approver(), Reason: o.reason, Time: at}
	b := approval.ForkBytes(s.session, s.agent, *f)
	if o.print {
		return nil, o.printSigned(o.app, b, at)
	}
	f.Signature, err = o.prove(ctx, b)
	return f, err
}

// sign proves who sends the message, where there is a key to do it with.
func (o *forkOptions) sign(ctx context.Context, session string, m *agent.Message) error {
	key := cmp.Or(o.key, os.Getenv("HOLDFAST_KEY"))
	if key == "" || o.signatureFile != "" {
		return nil
	}
	m.Time = time.Now().UTC().Truncate(time.Second)
	var err error
	m.Signature, err = signWith(ctx, key, approval.MessageBytes(session, *m))
	return err
}

// start starts the session without a message and waits for the word on the fork.
func (o *forkOptions) start(ctx context.Context, c *conn, s submission) error {
	fresh, err := o.app.checkSession(ctx, c, s)
	if err != nil {
		return err
	}
	if fresh {
		err = c.begin(ctx, s)
	} else {
		err = c.sameFork(ctx, s)
	}
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	p := &printer{app: o.app, session: s.session}
	r := forked{Session: s.session, Agent: s.agent, From: o.from, Turn: o.turn}
	err = c.awaitFork(limit, s, p.stderrNotice, &r)
	switch {
	case ctx.Err() != nil:
		o.app.leave("the session %s was started; see what becomes of it: holdfast attention, holdfast sessions", s.session)
		return ctx.Err()
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return o.report(r)
}

// send starts the session with its message and follows the turn.
func (o *forkOptions) send(ctx context.Context, c *conn, s submission) error {
	fresh, err := o.app.checkSession(ctx, c, s)
	if err == nil && !fresh {
		err = c.sameFork(ctx, s)
	}
	if err != nil {
		return err
	}
	p := &printer{app: o.app, session: s.session}
	if !o.app.json() {
		o.app.note("session %s", s.session)
	}
	got, err := c.submit(ctx, s, p.notice)
	var closed errSessionClosed
	if err != nil && !errors.As(err, &closed) {
		if ctx.Err() != nil {
			o.app.notAccepted(s)
		}
		return err
	}
	r := forked{Session: s.session, Agent: s.agent, From: o.from, Turn: o.turn}
	if forkErr := c.awaitFork(ctx, s, p.notice, &r); forkErr != nil {
		return forkErr
	}
	if r.Result == wordRefused {
		return o.report(r)
	}
	if r.Origin != nil {
		p.event(event{Type: evForked, Time: time.Now(), Text: "forked from " + line(originText(r.Origin), 2*lineLimit)})
	}
	if err != nil { // it was closed after all: its turn can still be followed
		return o.app.deliver(ctx, c, s, false)
	}
	return o.app.followMessage(ctx, c, s, got, p, false)
}
