package starter

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
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
