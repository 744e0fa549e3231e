package starter

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
)

type watchOptions struct {
	app          *App
	session      string
	turn         int
	from         string
	follow, wait bool
}

func newWatch(a *App) *cobra.Command {
	o := &watchOptions{app: a}
	cmd := &cobra.Command{
		Use:   "watch SESSION",
		Short: "Follow a turn from its beginning or from where you left",
		Long: `Prints what a turn does, line by line, as its history has it, and exits with the turn's end. Without --turn
it is the running turn, or else the latest. With --follow it goes on with the turns that come after, until the
session ends. It may be started and interrupted at any time on any machine.`,
		Example: `  holdfast watch support-x7k2mq
  holdfast watch support-x7k2mq --turn 3 -o json
  holdfast watch support-x7k2mq --from CURSOR`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.IntVar(&o.turn, "turn", 0, "the turn's `number` (default: the latest)")
	f.StringVar(&o.from, "from", "", "go on after this `cursor`")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with later turns")
	f.BoolVar(&o.wait, "wait", false, "keep following a turn that waits for a person instead of exiting with 8")
	return cmd
}

func (o *watchOptions) run(ctx context.Context) error {
	from, err := o.cursor()
	if err != nil {
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
	p := &printer{app: o.app, session: o.session, lines: true}
	f := &follower{conn: c, session: o.session, queue: info.GetTaskQueue(), show: p.event, stay: o.wait || o.follow, at: from}
	if o.follow {
		return p.interrupted(ctx, f, f.wholeSession(ctx, firstRunOf(info), from, o.turn))
	}
	n, err := c.turnOrLatest(ctx, o.session, cmp.Or(o.turn, from.turn()))
	if err != nil {
		return err
	}
	log, err := f.turn(ctx, n, from)
	if isNotFound(err) {
		return noTurn(o.session, n)
	}
	if err != nil {
		return p.interrupted(ctx, f, err)
	}
	return p.finish(ctx, f, log)
}

func (o *watchOptions) cursor() (cursor, error) {
	if err := checkSessionID(o.session); err != nil {
		return nil, err
	}
	if o.turn < 0 {
		return nil, usageError("--turn %d: turns count from 1", o.turn)
	}
	if o.from == "" {
		return nil, nil
	}
	from, err := parseCursor(o.from, o.session)
	if err != nil {
		return nil, &exitError{ExitUsage, err}
	}
	if n := from.turn(); o.turn != 0 && n != 0 && n != o.turn {
		return nil, usageError("the cursor is in turn %d, not in %d", n, o.turn)
	}
	return from, nil
}

// wholeSession follows a session and its turns, one after the other, until it ends. Turns before least are
// passed over.
func (f *follower) wholeSession(ctx context.Context, firstRun string, from cursor, least int) error {
	run, after := firstRun, int64(0)
	if p, ok := from.of(f.session); ok {
		run, after = p.Run, p.Event
	}
	if at := from.place(); at.turn != 0 {
		f.base = sessionCursor(from, f.session)
		if _, err := f.workflow(ctx, at, from); err != nil {
			return err
		}
		if at.undo == 0 {
			least = at.turn + 1
		}
	}
	for run != "" {
		log := &sessionLog{decoder: decoder{f.conn.payloads}, session: f.session}
		err := f.conn.read(ctx, reading{
			workflow: f.session, run: run, follow: true, trouble: f.trouble,
			each: func(ev *historypb.HistoryEvent) error {
				return f.sessionEvent(ctx, log, ev, position{f.session, run, after}, least)
			},
		})
		if err != nil {
			return err
		}
		run, after = log.next, 0
	}
	return nil
}

func sessionCursor(c cursor, session string) cursor {
	if p, ok := c.of(session); ok {
		return cursor{p}
	}
	return nil
}

// sessionEvent shows one event of a session, and follows a turn or a late compensation that it starts to its end.
func (f *follower) sessionEvent(ctx context.Context, log *sessionLog, ev *historypb.HistoryEvent, p position, least int) error {
	before := len(log.started())
	out := log.add(ev)
	if ev.GetEventId() <= p.Event {
		return nil
	}
	f.base = cursor{{p.Workflow, p.Run, ev.GetEventId()}}
	f.at = f.base
	for _, e := range out {
		e.Workflow, e.Run, e.Cursor = p.Workflow, p.Run, f.at
		f.show(e)
	}
	if len(log.started()) == before || log.latest.undo == 0 && log.latest.turn < least {
		return nil
	}
	at := log.latest
	err := f.conn.exists(ctx, at.workflow())
	if err == nil {
		_, err = f.workflow(ctx, at, nil)
	}
	if isNotFound(err) {
		f.notice(fmt.Sprintf("the history of %s is gone", at))
		return nil
	}
	return err
}

// exists waits a little for a workflow that is about to be started.
func (c *conn) exists(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var last error
	err := poll(ctx, func() (bool, error) {
		_, last = c.describe(ctx, id, "")
		if isNotFound(last) {
			return false, nil
		}
		return true, last
	})
	if isNotFound(last) {
		return last
	}
	return err
}
