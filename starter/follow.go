package starter

import (
	"cmp"
	"context"
	"fmt"
	"time"

	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// A follower shows a turn as it goes on. Every event that it shows is committed; what it says about the
// connection and the workers comes as notices.
type follower struct {
	conn    *conn
	session string
	queue   string // of the session, for notices about workers
	show    func(event)
	// stay goes on following a turn that waits for a person.
	stay bool
	// mute leaves unsaid what such a turn waits for.
	mute bool
	// at is the cursor after the last event shown, for whoever is interrupted.
	at   cursor
	base cursor // positions of workflows around the turn: the session's
}

// turn follows a turn to its end, or until it waits for a person, across all its runs. From is where an
// earlier following ended; nil begins with the turn.
func (f *follower) turn(ctx context.Context, n int, from cursor) (*turnLog, error) {
	return f.workflow(ctx, address{session: f.session, turn: n}, from)
}

// workflow does the same for a turn or a late compensation.
func (f *follower) workflow(ctx context.Context, at address, from cursor) (*turnLog, error) {
	id := at.workflow()
	run, after, err := f.first(ctx, id, from)
	if err != nil {
		return nil, err
	}
	log := newTurnLog(decoder{f.conn.payloads}, at.turn)
	watch := f.watchdog(ctx, id)
	defer watch.stop()
	for {
		if err := f.run(ctx, log, watch, position{id, run, after}); err != nil {
			return log, err
		}
		if log.waiting && !log.ended {
			return log, nil
		}
		next, err := f.conn.successor(ctx, log, id, run)
		if err != nil || next == "" {
			return log, err
		}
		run, after = next, 0
		log.ended = false
	}
}

// first returns the run to begin with and the last event in it that need not be shown again.
func (f *follower) first(ctx context.Context, id string, from cursor) (run string, after int64, err error) {
	if p, ok := from.of(id); ok {
		return p.Run, p.Event, nil
	}
	run, err = f.conn.firstRun(ctx, id)
	return run, 0, err
}

// run follows one run and shows what comes after the position.
func (f *follower) run(ctx context.Context, log *turnLog, watch *watchdog, p position) error {
	told := false // what it waits for
	return f.conn.read(ctx, reading{
		workflow: p.Workflow, run: p.Run, follow: true,
		each: func(ev *historypb.HistoryEvent) error {
			watch.fed()
			out := log.add(ev)
			if ev.GetEventId() <= p.Event {
				return nil
			}
			f.at = append(cursor{{p.Workflow, p.Run, ev.GetEventId()}}, f.base...)
			for _, e := range out {
				e.Workflow, e.Run, e.Cursor = p.Workflow, p.Run, f.at
				f.show(e)
			}
			return nil
		},
		idle: func() error {
			switch {
			case log.waiting && !f.stay:
				return errStop
			case log.waiting && !told && !f.mute:
				if what := f.conn.waitsFor(ctx, p.Workflow); what != "" {
					f.notice("it waits for " + line(what, 2*lineLimit))
				}
			}
			told = log.waiting
			return nil
		},
		trouble: f.trouble,
	})
}

func (f *follower) trouble(err error) {
	if err == nil {
		f.notice("connected again")
		return
	}
	f.notice(fmt.Sprintf("no answer from Temporal at %s (%s); trying again until you interrupt", f.conn.address, line(err.Error(), lineLimit)))
}

func (f *follower) notice(text string) { f.show(event{Type: evNotice, Time: time.Now(), Text: text}) }

// successor returns the run that goes on after one that closed; "" when none does. A turn that an operator
// reset was terminated and goes on in a run that nothing in the old history names.
func (c *conn) successor(ctx context.Context, log *turnLog, id, run string) (string, error) {
	if log.next != "" || log.reason == nil || log.reason.Type != agent.ErrTerminated {
		return log.next, nil
	}
	d, err := c.describe(ctx, id, "")
	if err != nil {
		return "", err
	}
	if now := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); now != run {
		return now, nil
	}
	return "", nil
}

// firstRun returns the first run of a workflow's current chain.
func (c *conn) firstRun(ctx context.Context, id string) (string, error) {
	d, err := c.describe(ctx, id, "")
	if err != nil {
		return "", err
	}
	return firstRunOf(d.GetWorkflowExecutionInfo()), nil
}

// firstRunOf returns the first run of a chain or, of a server that does not tell it, the run described.
func firstRunOf(info *workflowpb.WorkflowExecutionInfo) string {
	return cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId())
}

// waitsFor asks a turn what it waits for; "" when it does not say.
func (c *conn) waitsFor(ctx context.Context, id string) string {
	var v agent.TurnView
	if c.ask(ctx, id, agent.QueryTurn, &v) != nil {
		return ""
	}
	return v.Waiting
}
