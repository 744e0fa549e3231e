package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// turnsPerRun bounds how many turns one run of a session takes before it continues as new.
const turnsPerRun = 8

// Session is a conversation: it accepts messages, runs one turn at a time, and keeps what outlives a turn:
// the head of the transcript and the effects whose outcome is not known.
func (o Options) Session(ctx workflow.Context, in agent.SessionInput) (agent.SessionResult, error) {
	s := &session{change: versioning.Read(ctx, agent.WorkflowSession), opts: o, in: in}
	if err := s.setup(ctx); err != nil {
		return agent.SessionResult{}, err
	}
	return s.run()
}

// session is one run of a session.
type session struct {
	change int
	opts   Options
	in     agent.SessionInput
	scope  agent.Scope
	st     sessionState
	root   workflow.Context

	settlements inbox[agent.Settlement]
	looks       looks
	late        []letter[agent.Settlement] // about the turn that runs: see keepLate

	turns   int    // in this run
	running int    // the turn that runs now, or 0
	started int    // the last turn that is known to be there
	undoing string // the workflow id of the late compensation that runs, or ""
	refused string // why a close was not carried out
	leaving bool   // the run is about to continue as new or to end
}

func (s *session) setup(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	s.root, s.scope = ctx, agent.NewScope(info.WorkflowExecution.ID, info.FirstRunID)
	if err := s.restore(); err != nil {
		panic(err) // the task fails, the session does not: see turn.setup
	}
	s.listen(ctx)
	err := errors.Join(
		workflow.SetQueryHandlerWithOptions(ctx, agent.QuerySession, func() (agent.SessionView, error) { return s.view(), nil },
			workflow.QueryHandlerOptions{Description: "what the session is doing now"}),
		workflow.SetQueryHandlerWithOptions(ctx, agent.QueryEffects, func() (agent.EffectsView, error) { return s.effectsView(), nil },
			workflow.QueryHandlerOptions{Description: "the effects that ended turns left for a person to look at"}),
	)
	if err != nil {
		return err
	}
	// Last: updates that came with the start run as soon as their handler is there.
	return workflow.SetUpdateHandlerWithOptions(ctx, agent.UpdateSend, s.send, workflow.UpdateHandlerOptions{
		Validator: s.validate, Description: "gives the agent a message",
	})
}

// listen receives signals while the session waits for something else.
func (s *session) listen(ctx workflow.Context) {
	listen(ctx, agent.SignalCancel, s.onCancel)
	listen(ctx, agent.SignalClose, func(_ workflow.Context, c agent.Close) { s.onClose(c) })
	listen(ctx, agent.SignalExtend, s.onExtend)
	if s.change < authority {
		return
	}
	s.settlements = inbox[agent.Settlement]{letters: &s.st.Settlements, leaving: &s.leaving, check: s.checkSettlement, work: s.settle}
	s.settlements.open(ctx, agent.SignalSettle)
	listen(ctx, agent.SignalCompensate, func(_ workflow.Context, raw converter.RawValue) { s.onCompensate(raw) })
}

// drain takes every signal that has arrived; see turn.drain.
func (s *session) drain() {
	arrived(s.root, agent.SignalCancel, func(c agent.Cancel) { s.onCancel(s.root, c) })
	arrived(s.root, agent.SignalClose, s.onClose)
	arrived(s.root, agent.SignalExtend, func(x agent.Extend) { s.onExtend(s.root, x) })
	if s.change >= authority {
		s.settlements.drain(s.root, agent.SignalSettle)
		arrived(s.root, agent.SignalCompensate, s.onCompensate)
	}
}

func (s *session) onCancel(ctx workflow.Context, c agent.Cancel) {
	if s.running != 0 && (c.Turn == 0 || c.Turn == s.running) {
		_ = s.forward(ctx, agent.SignalCancel, agent.Cancel{Turn: s.running, Reason: c.Reason, From: c.From})
	}
}

func (s *session) onExtend(ctx workflow.Context, x agent.Extend) {
	switch {
	case s.running != 0:
		_ = s.forward(ctx, agent.SignalExtend, x)
	case s.change >= authority: // for the turns to come
		s.st.Granted = grown(s.st.Granted, x.Budget())
	}
}

// forward hands a signal to the running turn, once that is there to take it. One that ends meanwhile needs it
// no more.
func (s *session) forward(ctx workflow.Context, signal string, arg any) error {
	turn := s.running
	if err := workflow.Await(ctx, func() bool { return s.started == turn || s.running != turn }); err != nil {
		return err
	}
	return workflow.SignalExternalWorkflow(ctx, agent.TurnID(s.scope.Session, turn), "", signal, arg).Get(ctx, nil)
}

func (s *session) onClose(c agent.Close) { s.st.Closing, s.refused = &c, "" }

func (s *session) run() (agent.SessionResult, error) {
	if err := s.fork(); err != nil {
		return s.finish(err)
	}
	for {
		s.publish()
		// An error means that the session was cancelled, which the switch below sees for itself.
		_ = workflow.Await(s.root, func() bool {
			return len(s.st.Queue) > 0 || len(s.st.Commands) > 0 || s.st.Closing != nil || s.renewable()
		})
		s.drain()
		switch {
		case s.root.Err() != nil: // Temporal's Cancel button: the turn was cancelled, now close
			return s.finish(temporal.NewCanceledError())
		case s.closes():
			return s.finish(nil)
		case s.renewable():
			return agent.SessionResult{}, s.continueAsNew()
		case len(s.st.Commands) > 0:
			s.undo()
		case len(s.st.Queue) > 0:
			if err := s.turn(); err != nil {
				return s.finish(err)
			}
		}
	}
}

// closes decides on a close that was asked for. A session does not close over effects whose outcome nobody
// knows unless it is told to.
func (s *session) closes() bool {
	if s.st.Closing == nil {
		return false
	}
	if len(s.st.Commands) > 0 {
		return false // what was ordered before is done before
	}
	if len(s.st.Unresolved) == 0 || s.st.Closing.AcceptUncertain {
		return true
	}
	s.st.Closing = nil
	s.refused = fmt.Sprintf("%d effects are uncertain or could not be undone: look at them, then close with --accept-uncertain (acceptUncertain in the signal)", len(s.st.Unresolved))
	return false
}

// turn runs the next message's turn to its end, whatever that is. An error ends the session.
func (s *session) turn() error {
	m := s.st.Queue[0]
	s.st.Queue = s.st.Queue[1:]
	s.st.Turns++
	s.turns++
	s.running = s.st.Turns
	s.st.assign(m.ID, s.running)
	s.publish()
	res, ended := resultOf(s.follow(m))
	if !ended {
		res = s.recover()
	}
	s.running = 0
	s.absorb(res)
	if res.Reason != nil && res.Reason.Type == agent.ErrUnknownAgent && s.st.Turns == 1 {
		return temporal.NewApplicationErrorWithOptions(res.Reason.Message, agent.ErrUnknownAgent,
			temporal.ApplicationErrorOptions{NonRetryable: true})
	}
	return nil
}

// follow starts the turn and waits for its end. Cancelling the session cancels the turn, and still waits.
func (s *session) follow(m agent.Message) (res agent.TurnResult, err error) {
	ctx, cancel := workflow.NewDisconnectedContext(s.root)
	defer cancel()
	turn := s.running
	workflow.Go(ctx, func(ctx workflow.Context) {
		over := func() bool { return s.running != turn }
		if workflow.Await(ctx, func() bool { return s.root.Err() != nil || over() }) == nil && !over() {
			cancel()
		}
	})
	child := workflow.ExecuteChildWorkflow(s.child(ctx), agent.WorkflowTurn, s.turnInput(m))
	// An error means that a turn of this number is there already; then it is followed by recover.
	_ = child.GetChildWorkflowExecution().Get(ctx, nil)
	s.started = turn
	err = child.Get(ctx, &res)
	return res, err
}

func (s *session) child(ctx workflow.Context) workflow.Context {
	return s.turnContext(ctx, agent.TurnID(s.scope.Session, s.running), fmt.Sprintf("turn %d: agent %s", s.running, s.in.Agent),
		fmt.Sprintf("Turn %d of session `%s`. Its steps are the activities *model* and *tool*; "+
			"the answer is in the result of the last *model*.", s.running, s.scope.Session))
}

// turnContext is for a child of type Turn: one that takes a message, or one that compensates.
func (s *session) turnContext(ctx workflow.Context, id, summary, details string) workflow.Context {
	attributes := []temporal.SearchAttributeUpdate{
		agentKey.ValueSet(s.in.Agent), statusKey.ValueSet(string(agent.StatusRunning)),
	}
	if s.in.Tenant != "" {
		attributes = append(attributes, tenantKey.ValueSet(s.in.Tenant))
	}
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
		StaticSummary:         summary,
		StaticDetails:         details,
		TypedSearchAttributes: temporal.NewSearchAttributes(attributes...),
	})
}

func (s *session) turnInput(m agent.Message) agent.TurnInput {
	in := agent.TurnInput{
		Scope: s.scope, Turn: s.running, Agent: s.in.Agent, Tenant: s.in.Tenant, Message: m, Head: s.st.Head,
		Unresolved: s.st.Unresolved, Spent: s.st.Spent, Granted: s.st.Granted, Origin: s.st.Origin, Store: s.st.Store, Serial: s.st.Serial,
	}
	if s.change >= crossing {
		in.Definition = s.st.By.Definition
	}
	in.Checkpoint = s.guarded(in)
	return in
}

// recover learns the end of a turn that did not say it: one that was terminated or timed out, or that had
// been started before this run's history says so.
func (s *session) recover() agent.TurnResult {
	ctx, cancel := workflow.NewDisconnectedContext(s.root)
	defer cancel()
	var res agent.TurnResult
	err := ordinary(ctx, agent.ActivityRecover, fmt.Sprintf("recover: turn %d", s.running), recoverTimeout,
		agent.RecoverInput{Scope: s.scope, Turn: s.running, Head: s.st.Head, Store: s.st.Store}, &res)
	if err != nil {
		r := reasonOf(err)
		return agent.TurnResult{Status: agent.StatusFailed, Head: s.st.Head, Reason: &r, Store: s.st.Store}
	}
	return res
}

// absorb takes over what a turn leaves behind.
func (s *session) absorb(res agent.TurnResult) {
	s.st.Head, s.st.Usage = res.Head, s.st.Usage.Add(res.Usage)
	s.take(res.Effects)
	s.st.Settlements, s.late = append(s.st.Settlements, s.late...), nil
	s.st.Spent, s.st.Granted = grown(s.st.Spent, res.Spent), grown(s.st.Granted, res.Granted)
	s.st.Serial = max(s.st.Serial, res.Serial)
	if res.Store != "" {
		s.st.Store = res.Store
	}
	if res.By != nil && s.change >= crossing {
		s.st.By = *res.By
	}
	res.By = nil // schema 2 has no room for it, and a turn may be of a higher number than its session
	s.st.Queue = append(res.Undelivered, s.st.Queue...)
	res.Undelivered, res.Effects = nil, nil
	s.st.Last = &res
}

// finish ends the session. A message that was accepted and never given to a turn is named in the result.
func (s *session) finish(end error) (agent.SessionResult, error) {
	ctx, cancel := workflow.NewDisconnectedContext(s.root)
	defer cancel()
	s.st.Closing = &agent.Close{} // nothing is accepted from here on
	settled := func() bool { return s.change < authority || s.settlements.idle() }
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && settled() }); err != nil {
		return agent.SessionResult{}, err
	}
	s.leaving = true
	s.publish()
	if err := s.opts.guard(ctx); err != nil {
		return agent.SessionResult{}, err
	}
	s.drain()
	res := s.result()
	var app *temporal.ApplicationError
	switch {
	case temporal.IsCanceledError(end):
		return res, temporal.NewCanceledError(res)
	case errors.As(end, &app):
		return res, temporal.NewApplicationErrorWithOptions(app.Message(), app.Type(),
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{res}})
	}
	return res, end
}
