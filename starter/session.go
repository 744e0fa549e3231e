package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// A sessionLog reads the history of a session's run: which turns it started and for which messages.
type sessionLog struct {
	decoder
	session string
	input   *agent.SessionInput
	before  string // the run before this one
	next    string
	ended   string // how the session ended, for a person
	turns   []startedTurn
	undos   []address // late compensations that it started
	latest  address   // of both
	asking  int64     // the event that scheduled the fork's activity
	forked  *agent.ForkResult

	letters []agent.Settlement // that came and whose answer was not read yet
	asked   map[int64]string   // keys of effects by the event that scheduled the question
	words   []lateWord
}

// A startedTurn is a turn that the session started, as its history has it.
type startedTurn struct {
	n       int
	message string // its id; empty when the input cannot be read
	event   int64
	stored  bool // the input lies where it cannot be read
}

// add takes the next event and returns what it says.
func (s *sessionLog) add(ev *historypb.HistoryEvent) []event {
	out := s.read(ev)
	for i := range out {
		out[i].ID = ev.GetEventId()
		if ts := ev.GetEventTime(); ts != nil && ts.IsValid() {
			out[i].Time = ts.AsTime()
		}
	}
	return out
}

func (s *sessionLog) read(ev *historypb.HistoryEvent) []event {
	s.settling(ev)
	switch ev.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := ev.GetWorkflowExecutionStartedEventAttributes()
		s.before, s.next = a.GetContinuedExecutionRunId(), ""
		var in agent.SessionInput
		if s.first(a.GetInput(), &in) == nil {
			s.input = &in
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		req := ev.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		if req.GetInput().GetName() != agent.UpdateSend {
			return nil
		}
		var m agent.Message
		if err := s.first(req.GetInput().GetArgs(), &m); err != nil {
			return []event{{Type: evMessage, Text: "message " + shown(err)}}
		}
		return []event{{Type: evMessage, Note: m.ID, Text: fmt.Sprintf("message%s: %q", by(m.From), line(m.Text, lineLimit))}}
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		s.childStarted(ev)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		if ev.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == agent.ActivityFork {
			s.asking = ev.GetEventId()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return s.forkDone(ev.GetActivityTaskCompletedEventAttributes())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		s.next = ev.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	default:
		return s.closed(ev)
	}
	return nil
}

// forkDone reads where the session begins, if it is a fork.
func (s *sessionLog) forkDone(a *historypb.ActivityTaskCompletedEventAttributes) []event {
	var r agent.ForkResult
	if s.asking == 0 || a.GetScheduledEventId() != s.asking {
		return nil
	}
	if err := s.first(a.GetResult(), &r); err != nil {
		return []event{{Type: evForked, Text: "forked " + shown(err)}}
	}
	s.forked = &r
	return []event{{Type: evForked, Text: "forked from " + line(originText(&r.Origin), 2*lineLimit)}}
}

// started returns the turns and the late compensations that this run started, in order.
func (s *sessionLog) started() []address {
	out := make([]address, 0, len(s.turns)+len(s.undos))
	for _, t := range s.turns {
		out = append(out, address{session: s.session, turn: t.n})
	}
	return append(out, s.undos...)
}

func (s *sessionLog) childStarted(ev *historypb.HistoryEvent) {
	a := ev.GetStartChildWorkflowExecutionInitiatedEventAttributes()
	if session, turn, m, ok := agent.ParseUndoID(a.GetWorkflowId()); ok && session == s.session {
		s.latest = address{session, turn, m}
		s.undos = append(s.undos, s.latest)
		return
	}
	session, n, ok := agent.ParseTurnID(a.GetWorkflowId())
	if !ok || session != s.session {
		return
	}
	s.latest = address{session: session, turn: n}
	var in agent.TurnInput
	err := s.first(a.GetInput(), &in) // what cannot be read has no message id
	s.turns = append(s.turns, startedTurn{n: n, message: in.Message.ID, event: ev.GetEventId(), stored: errors.Is(err, errStored)})
}

func (s *sessionLog) closed(ev *historypb.HistoryEvent) []event {
	var how string
	switch ev.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		how = "closed"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		how = "ended: " + line(s.failure(ev.GetWorkflowExecutionFailedEventAttributes().GetFailure()).message, lineLimit)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		how = "cancelled"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		how = "terminated" + because(ev.GetWorkflowExecutionTerminatedEventAttributes().GetReason())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		how = "timed out"
	default:
		return nil
	}
	s.ended = how
	return []event{{Type: evSessionEnded, Text: "session " + how}}
}

// describeSession describes a session's current run; an unknown one is an error that says what to do.
func (c *conn) describeSession(ctx context.Context, session string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := c.describe(ctx, session, "")
	if isNotFound(err) {
		return nil, withHint(fmt.Errorf("no session %q in namespace %q at %s", session, c.namespace, c.address),
			"see what there is: holdfast sessions; or start one: holdfast start AGENT")
	}
	if err != nil {
		return nil, err
	}
	info := d.GetWorkflowExecutionInfo()
	if name := info.GetType().GetName(); name != agent.WorkflowSession {
		return nil, fmt.Errorf("workflow %q is a %q and no session", session, line(name, 64))
	}
	return info, nil
}

// maxRunsBack bounds how far back in a session's chain a turn is looked for.
const maxRunsBack = 1000

// latestTurn returns the number of the latest turn of a session, or 0. It needs no worker.
func (c *conn) latestTurn(ctx context.Context, session string) (int, error) {
	found := 0
	err := c.backwards(ctx, session, func(s *sessionLog) bool {
		if n := len(s.turns); n > 0 {
			found = s.turns[n-1].n
		}
		return found != 0
	})
	return found, err
}

// turnOrLatest returns n or, for 0, the number of the latest turn; that there has been none is an error.
func (c *conn) turnOrLatest(ctx context.Context, session string, n int) (int, error) {
	if n != 0 {
		return n, nil
	}
	n, err := c.latestTurn(ctx, session)
	if err == nil && n == 0 {
		err = withHint(fmt.Errorf("session %q has had no turn yet", session), "give it a message: holdfast send %s MESSAGE", session)
	}
	return n, err
}

func noTurn(session string, n int) error {
	return withHint(fmt.Errorf("session %q has no turn %d, or its history is gone", session, n), "what was said is in: holdfast transcript %s", session)
}

// turnOf returns the turn that a message was given to, or 0 when none that can be read was.
func (c *conn) turnOf(ctx context.Context, session, message string) (int, error) {
	found := 0
	err := c.backwards(ctx, session, func(s *sessionLog) bool {
		for _, t := range s.turns {
			if t.message == message {
				found = t.n
			}
		}
		return found != 0
	})
	return found, err
}

// backwards reads a session's runs, the current one first, until enough says so.
func (c *conn) backwards(ctx context.Context, session string, enough func(*sessionLog) bool) error {
	run := ""
	for range maxRunsBack {
		log := &sessionLog{decoder: decoder{c.payloads}, session: session}
		err := c.read(ctx, reading{workflow: session, run: run, each: func(ev *historypb.HistoryEvent) error {
			log.add(ev)
			return nil
		}})
		switch {
		case isNotFound(err) && run != "": // beyond the server's retention
			return nil
		case err != nil:
			return err
		case enough(log) || log.before == "":
			return nil
		}
		run = log.before
	}
	return nil
}

// awaitTurn waits until a message that was queued gets its turn. Run is that of the session that accepted it.
func (f *follower) awaitTurn(ctx context.Context, run string, s submission) (int, error) {
	watch := f.watchdog(ctx, f.session)
	defer watch.stop()
	found, accepted := 0, false
	for {
		log := &sessionLog{decoder: decoder{f.conn.payloads}, session: f.session}
		err := f.conn.read(ctx, reading{
			workflow: f.session, run: run, follow: true, trouble: f.trouble,
			each: func(ev *historypb.HistoryEvent) (err error) {
				watch.fed()
				for _, e := range log.add(ev) {
					accepted = accepted || e.Type == evMessage && e.Note == s.message.ID
				}
				if found, err = f.taken(ctx, log, ev, s, accepted); found != 0 && err == nil {
					err = errStop
				}
				return err
			},
		})
		switch {
		case err != nil || found != 0:
			return found, err
		case log.next == "":
			return 0, fmt.Errorf("session %q ended (%s) before the message had its turn", f.session, log.ended)
		}
		run = log.next
	}
}

// taken returns the turn that took a message, if the latest event says so; 0 is none. Where a turn's input cannot be read,
// and the message has been accepted, the session is asked.
func (f *follower) taken(ctx context.Context, log *sessionLog, ev *historypb.HistoryEvent, s submission, accepted bool) (int, error) {
	if len(log.turns) == 0 || log.turns[len(log.turns)-1].event != ev.GetEventId() {
		return 0, nil
	}
	switch t := log.turns[len(log.turns)-1]; {
	case t.message == s.message.ID:
		return t.n, nil
	case t.stored && accepted:
		return f.conn.took(ctx, s, t.n, f.notice)
	}
	return 0, nil
}

// view asks the session what it is doing now; that needs a worker.
func (c *conn) view(ctx context.Context, session string) (agent.SessionView, error) {
	var v agent.SessionView
	err := c.ask(ctx, session, agent.QuerySession, &v)
	return v, err
}

func (c *conn) ask(ctx context.Context, workflow, query string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, workflow, "", query)
	if err != nil {
		return cmp.Or(unread(err), err)
	}
	return v.Get(to)
}

// poll calls check until it is content or ctx ends; it waits longer each time.
func poll(ctx context.Context, check func() (bool, error)) error {
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		if ok, err := check(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(delay):
		}
	}
}
