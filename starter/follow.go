package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
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
	var seen []string
	for {
		if err := f.run(ctx, log, watch, position{id, run, after}); err != nil {
			return log, err
		}
		seen = append(seen, run)
		switch {
		case log.waiting && !log.ended:
			return log, nil
		case log.next != "":
			run, after, log.ended = log.next, 0, false
		case log.reason == nil || log.reason.Type != agent.ErrTerminated:
			return log, nil
		default:
			again, p, err := f.conn.afterReset(ctx, at, seen)
			if err != nil || again == nil {
				return log, err
			}
			log, run, after = again, p.Run, p.Event
		}
	}
}

// first returns the run to begin with and the last event in it that need not be shown again.
func (f *follower) first(ctx context.Context, id string, from cursor) (run string, after int64, err error) {
	if p, ok := from.of(id); ok {
		return p.Run, p.Event, nil
	}
	runs, err := f.conn.lineage(ctx, id)
	if err != nil {
		return "", 0, err
	}
	return runs[0], 0, nil
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
			if ev.GetWorkflowExecutionTerminatedEventAttributes() != nil {
				out = f.conn.unlessReset(ctx, p, out)
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

// afterReset says where to go on after a run that an operator reset, and what led there: nothing in the old history names
// the new run, and its own begins with a copy. It is nil for a run that was just terminated.
func (c *conn) afterReset(ctx context.Context, at address, seen []string) (*turnLog, position, error) {
	runs, err := c.lineage(ctx, at.workflow())
	if err != nil {
		return nil, position{}, err
	}
	log := newTurnLog(decoder{c.payloads}, at.turn)
	for _, run := range runs {
		if !slices.Contains(seen, run) {
			copied, err := c.copied(ctx, at.workflow(), run)
			return log, position{at.workflow(), run, copied}, err
		}
		err := c.read(ctx, reading{workflow: at.workflow(), run: run, each: func(ev *historypb.HistoryEvent) error {
			log.add(ev)
			return nil
		}})
		if err != nil {
			return nil, position{}, err
		}
	}
	return nil, position{}, nil
}

// copied returns the last event of a run that is there because of a reset, 0 if none is.
func (c *conn) copied(ctx context.Context, workflow, run string) (last int64, err error) {
	err = c.read(ctx, reading{workflow: workflow, run: run, each: func(ev *historypb.HistoryEvent) error {
		if ev.GetWorkflowTaskFailedEventAttributes().GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			last = ev.GetEventId()
		}
		return nil
	}})
	return last, err
}

// unlessReset replaces the end of a run that was terminated because it goes on in another one.
func (c *conn) unlessReset(ctx context.Context, p position, end []event) []event {
	d, err := c.describe(ctx, p.Workflow, "")
	if err != nil || d.GetWorkflowExecutionInfo().GetExecution().GetRunId() == p.Run || len(end) == 0 {
		return end
	}
	e := end[len(end)-1]
	return []event{{Type: evTurnContinued, ID: e.ID, Turn: e.Turn, Time: e.Time, Text: "started again by an operator: goes on in another run"}}
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
	return waitingText(&v)
}
