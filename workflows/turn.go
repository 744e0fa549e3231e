package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// Turn takes one message to its answer: it asks the model, lets the tools act, and asks again until the
// model has nothing more to ask for. It ends with an [agent.TurnResult]; a failed or cancelled turn carries
// the result in its failure's details.
func (o Options) Turn(ctx workflow.Context, in agent.TurnInput) (agent.TurnResult, error) {
	t := &turn{change: versioning.Read(ctx, agent.WorkflowTurn), opts: o, in: in, log: workflow.GetLogger(ctx)}
	if err := t.setup(ctx); err != nil {
		return agent.TurnResult{}, err
	}
	return t.run()
}

// authority is the change number from which on turns and sessions wait for approvals, settle, compensate and have
// budgets.
const authority = 2

// crossing is the change number from which on a session hands its agent's definition from turn to turn, and a turn
// asks people before it takes another one, if policy says so.
const crossing = 3

// turn is one run of a turn.
type turn struct {
	change int
	opts   Options
	in     agent.TurnInput
	st     turnState
	log    log.Logger

	// root is the workflow's own context; ctx is cancelled by the signal "cancel" as well.
	root, ctx workflow.Context
	cancel    workflow.CancelFunc

	decisions   inbox[agent.ApprovalDecision]
	settlements inbox[agent.Settlement]
	looks       looks

	steps   int // in this run
	status  agent.Status
	waiting string   // for more budget: what is used up
	people  int      // how much waits for people now
	sending string   // the key of the effect that is being sent
	told    bool     // a late attempt has a word on that effect
	leaving bool     // the run is about to continue as new or to end
	recent  []string // lines for a person: the latest steps
}

// An end is why the loop was left.
type end struct {
	status agent.Status
	reason *agent.Reason
	renew  bool // continue as new instead
}

func done() *end { return &end{status: agent.StatusDone} }

func failed(r agent.Reason) *end {
	if r.Type == agent.ErrCancelled {
		return &end{status: agent.StatusCancelled, reason: &r}
	}
	return &end{status: agent.StatusFailed, reason: &r}
}

func (t *turn) setup(ctx workflow.Context) error {
	t.root, t.status = ctx, agent.StatusRunning
	t.ctx, t.cancel = workflow.WithCancel(ctx)
	if err := t.restore(); err != nil {
		// A panic fails the workflow task, not the turn: a worker that can take the checkpoint
		// will go on with it.
		panic(err)
	}
	listen(ctx, agent.SignalCancel, func(_ workflow.Context, c agent.Cancel) { t.onCancel(c) })
	// Not only between steps: what a terminated turn had been told is read back from its view.
	listen(ctx, agent.SignalSteer, func(_ workflow.Context, s agent.Steering) { t.onSteer(s) })
	if t.change >= authority {
		t.openInboxes()
	}
	return t.answerQueries()
}

// openInboxes takes decisions and settlements, and goes on with what the run before had taken.
func (t *turn) openInboxes() {
	t.decisions = inbox[agent.ApprovalDecision]{letters: &t.st.Decisions, leaving: &t.leaving, check: t.checkDecision, work: t.judge}
	t.settlements = inbox[agent.Settlement]{letters: &t.st.Settlements, leaving: &t.leaving, check: t.checkSettlement, work: t.settle}
	t.decisions.open(t.root, agent.SignalApproval)
	t.settlements.open(t.root, agent.SignalSettle)
	for _, a := range t.st.Requests.Pending() {
		t.expire(a.ApprovalRequest)
	}
}

func (t *turn) answerQueries() error {
	answer := func(name, description string, view any) error {
		return workflow.SetQueryHandlerWithOptions(t.root, name, view, workflow.QueryHandlerOptions{Description: description})
	}
	return errors.Join(
		answer(agent.QueryTurn, "what the turn is doing now", func() (agent.TurnView, error) { return t.view(), nil }),
		answer(agent.QueryApprovals, "the turn's requests for approval and what became of them",
			func() (agent.ApprovalsView, error) { return t.approvals(), nil }),
		answer(agent.QueryEffects, "what the turn did, or may have done, to the world",
			func() (agent.EffectsView, error) { return t.effectsView(), nil }),
	)
}

func (t *turn) onCancel(c agent.Cancel) {
	if c.Turn != 0 && c.Turn != t.in.Turn {
		return
	}
	if t.st.CancelledBy == "" {
		t.st.CancelledBy = "cancelled"
		if c.From != "" {
			t.st.CancelledBy += " by " + cut(c.From, agent.MaxName)
		}
		if c.Reason != "" {
			t.st.CancelledBy += ": " + cut(c.Reason, agent.MaxReason)
		}
	}
	if t.sending != "" && t.change >= authority {
		t.must(t.st.Ledger.Amend(t.sending, func(e *agent.Effect) { e.Cancel = agent.CancelAsked }))
	}
	t.cancel()
}

func (t *turn) run() (agent.TurnResult, error) {
	e := t.open()
	switch {
	case e != nil:
	case t.st.Ending != nil: // the run before was undoing what the turn had done
		e = &end{status: t.st.Ending.Status, reason: t.st.Ending.Reason}
	case t.in.Undo != nil:
		e = done()
	default:
		e = t.upgrade()
	}
	for e == nil {
		e = t.step()
	}
	if e.renew || t.unwind(*e) {
		return agent.TurnResult{}, t.continueAsNew()
	}
	if u := t.st.Ending; u != nil {
		e.status, e.reason = u.Status, u.Reason
	}
	return t.finish(*e)
}

// open resolves the agent, once in a turn.
func (t *turn) open() *end {
	t.show()
	if t.st.Open.Definition != "" {
		return nil
	}
	t.st.Started = t.now()
	in := agent.OpenInput{
		Scope: t.in.Scope, Turn: t.in.Turn, Agent: t.in.Agent, Message: t.in.Message, Serial: t.in.Serial, Store: t.in.Store,
	}
	if t.change >= crossing {
		in.Definition = t.in.Definition
	}
	err := local(t.ctx, agent.ActivityOpen, "open: agent "+t.in.Agent, in, &t.st.Open)
	if err != nil {
		t.st.Entries = append(t.st.Entries, agent.Entry{Role: agent.RoleUser, Text: t.in.Message.Text})
		return failed(t.reason(err))
	}
	if t.in.Undo == nil {
		t.st.Entries = append(t.st.Entries, t.st.Open.Entry)
	}
	if t.change >= authority && t.in.Undo == nil { // without a name too: that nobody knows who it was is not that it was nobody
		t.st.Senders = []agent.Actor{t.st.Open.Sender}
	}
	t.st.Store, t.st.Serial = t.st.Open.Store, max(t.st.Serial, t.st.Open.Serial)
	return nil
}

// step asks the model once and lets it act; nil means that there is more to do.
func (t *turn) step() *end {
	t.drain()
	if t.st.Acting != nil { // the run before waited for people in the middle of a step
		if e := t.act(nil); e != nil || t.ctx.Err() == nil {
			return e
		}
	}
	switch {
	case t.ctx.Err() != nil:
		return failed(t.reason(nil))
	case t.renewable():
		return &end{renew: true}
	}
	if left := func() string { return t.usedUp(0) }; left() != "" {
		return t.awaitMore(left)
	}
	t.st.Step++
	t.steps++
	t.show()
	answer, err := t.askModel()
	if err != nil {
		return failed(t.reason(err))
	}
	if e := t.conclude(answer); e != nil {
		return e
	}
	if len(answer.Calls) > 0 {
		if e := t.act(answer.Calls); e != nil {
			return e
		}
	}
	if limit := t.st.Open.Limits.Faults; limit > 0 && t.st.Faults >= limit {
		return failed(agent.Reason{Type: agent.ErrFaults, Message: fmt.Sprintf(
			"in %d steps in a row the model asked for nothing that could be run; see the calls' results in the transcript", t.st.Faults)})
	}
	return nil
}

// reason is reasonOf, knowing of a cancellation: whatever an activity says after one, that is why.
func (t *turn) reason(err error) agent.Reason {
	if t.ctx.Err() == nil {
		return reasonOf(err)
	}
	r := agent.Reason{Type: agent.ErrCancelled, Message: "cancelled"}
	if t.st.CancelledBy != "" {
		r.Message = t.st.CancelledBy
	}
	return r
}

// askModel lets the model activity take up everything that was said since the last step.
func (t *turn) askModel() (agent.ModelResult, error) {
	entries := t.st.Entries
	for _, m := range t.st.Steering {
		entries = append(entries, agent.Entry{Role: agent.RoleUser, Text: m.Text})
		t.heard(m)
	}
	t.st.Entries, t.st.Steering = entries, nil
	var answer agent.ModelResult
	err := workflow.ExecuteActivity(t.modelContext(t.ctx), agent.ActivityModel, agent.ModelInput{
		Scope: t.in.Scope, Place: agent.Place{Turn: t.in.Turn, Step: t.st.Step},
		Definition: t.st.Open.Definition.Short(), Head: t.st.Head, Entries: entries, Senders: t.st.Senders,
		Root: t.family(), Store: t.st.Store, Serial: t.st.Serial,
	}).Get(t.ctx, &answer)
	if err != nil {
		if t.ctx.Err() != nil && t.change >= authority {
			t.st.Usage.Dropped++ // it may have been charged for; nobody waited to hear
		}
		return answer, err
	}
	t.st.Head, t.st.Entries = answer.Head, nil
	t.st.Usage = t.st.Usage.Add(answer.Usage)
	t.st.Serial = max(t.st.Serial, answer.Serial)
	return answer, nil
}

// conclude says whether an answer ends the turn.
func (t *turn) conclude(a agent.ModelResult) *end {
	switch {
	case a.Finish == agent.FinishRefusal:
		return failed(agent.Reason{Type: agent.ErrRefusal, Message: "the model refused: " + clip(a.Text)})
	case a.Finish == agent.FinishFilter:
		return failed(agent.Reason{Type: agent.ErrContentFilter, Message: "the provider's content filter stopped the answer"})
	case len(a.Calls) > 0:
		return nil
	case a.Finish == agent.FinishLength:
		t.nudge("Your last message was cut off by the output limit. Say the rest.")
		return nil
	case a.Text == "":
		t.nudge("Your last message was empty. Answer, or call a tool.")
		return nil
	}
	return done()
}

// nudge tells the model what was wrong with an answer that leads nowhere.
func (t *turn) nudge(text string) {
	t.st.Faults++
	t.st.Entries = append(t.st.Entries, agent.Entry{Role: agent.RoleNotice, Text: text})
}

// heard notes who steered the turn: whoever sent a message of it is not to approve what it does, if policy says so.
func (t *turn) heard(m agent.Message) {
	if t.change < authority {
		return
	}
	sender := agent.Actor{Name: m.From}
	if m.Signature != "" {
		var proved agent.Actor
		err := local(t.ctx, agent.ActivityIdentify, "identify: a steering message", agent.IdentifyInput{
			Scope: t.in.Scope, Message: m, Store: t.st.Store, Serial: t.st.Serial,
		}, &proved)
		if err == nil {
			sender = proved
		}
	}
	for i, s := range t.st.Senders {
		if s.Name == sender.Name {
			t.st.Senders[i].Signed = s.Signed && sender.Signed // whoever could have sent the unsigned one
			return
		}
	}
	if len(t.st.Senders) < maxSenders {
		t.st.Senders = append(t.st.Senders, sender)
		return
	}
	t.st.Senders[maxSenders-1].Signed = false // nothing proves any more that somebody else is not the sender
}

// maxSenders bounds the senders that are told apart; each travels with every step.
const maxSenders = 16

// finish writes the closing record and ends the run.
func (t *turn) finish(e end) (agent.TurnResult, error) {
	ctx, cancel := workflow.NewDisconnectedContext(t.root)
	defer cancel()
	if t.change >= authority {
		t.withdrawAll("the turn has ended")
		// What has arrived is looked into before the result says how things stand.
		if err := workflow.Await(ctx, func() bool { return t.decisions.idle() && t.settlements.idle() }); err != nil {
			return agent.TurnResult{}, err
		}
	}
	t.status, t.st.Reason = e.status, e.reason
	res := t.result()
	var closed agent.CloseResult
	err := local(ctx, agent.ActivityClose, "close: "+string(e.status), agent.CloseInput{
		Scope: t.in.Scope, Turn: t.in.Turn, Agent: t.in.Agent, Definition: t.st.Open.Definition,
		Result: res, Ledger: t.st.Ledger.All(), Folded: t.st.Ledger.Folded(), Entries: t.st.Entries, Store: t.st.Store,
		Approvals: t.st.Requests.All(), Refused: append(t.st.Requests.Refused, t.st.RefusedSettlements...), Undo: t.undoNumber(),
		Origin: t.in.Origin,
	}, &closed)
	if err != nil {
		t.log.Error("The closing record could not be written.", "error", err)
	} else {
		res.Closing, res.Head, res.Store = closed.Closing, closed.Head, closed.Store
		t.st.Head, t.st.Entries = closed.Head, nil
	}
	if t.change < authority {
		if err := workflow.UpsertTypedSearchAttributes(ctx, statusKey.ValueSet(string(e.status))); err != nil {
			return res, err
		}
	}
	t.publish()
	t.leaving = true
	if err := t.opts.guard(ctx); err != nil {
		return res, err
	}
	t.drain()
	res.Undelivered = t.st.Steering
	return res, failure(res)
}

func (t *turn) undoNumber() int {
	if t.in.Undo == nil {
		return 0
	}
	return t.in.Undo.M
}

// failure is the error that a turn with this result returns: Temporal's own status then says the same.
func failure(res agent.TurnResult) error {
	switch res.Status {
	case agent.StatusFailed, agent.StatusBudget:
		return temporal.NewApplicationErrorWithOptions(res.Reason.Message, res.Reason.Type,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{res}})
	case agent.StatusCancelled:
		return temporal.NewCanceledError(res)
	}
	return nil
}

// resultOf reads the result back out of what a turn's future returned.
func resultOf(res agent.TurnResult, err error) (agent.TurnResult, bool) {
	if err == nil {
		return res, true
	}
	return agent.ResultIn(err)
}
