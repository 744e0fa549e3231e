package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/versioning"
)

// turnSchema is the schema of turnState in a checkpoint; a change of the struct raises it and adds an upgrade.
const turnSchema = 1

// turnUpgrades[i] turns schema i+1 into i+2.
func turnUpgrades() []versioning.Upgrade { return nil }

// turnState is all that a turn carries from run to run. It is bounded: entries by the calls of one step,
// steering by the session's queue, the ledger by itself.
type turnState struct {
	Open     agent.OpenResult `json:"open,omitzero"`
	Step     int              `json:"step"`
	Head     agent.Head       `json:"head"`
	Entries  []agent.Entry    `json:"entries,omitempty"`  // said, not in the transcript yet
	Steering []agent.Message  `json:"steering,omitempty"` // accepted, not given to the model yet
	Ledger   effect.Ledger    `json:"ledger"`
	Usage    agent.Usage      `json:"usage"`
	Faults   int              `json:"faults,omitempty"` // steps in a row in which nothing could be run
	Extra    agent.Extend     `json:"extra,omitzero"`   // granted beyond the limits
	Deadline time.Time        `json:"deadline,omitzero"`
	Store    string           `json:"store,omitempty"`
	Serial   int64            `json:"serial,omitempty"`
	Reset    bool             `json:"reset,omitempty"` // an earlier run of the turn was discarded
	Reason   *agent.Reason    `json:"reason,omitempty"`
	// CancelledBy says who cancelled and why, once somebody has.
	CancelledBy string `json:"cancelledBy,omitempty"`
}

var statusKey = temporal.NewSearchAttributeKeyKeyword(agent.AttributeStatus)

// restore takes up the state of the previous run, or begins.
func (t *turn) restore() error {
	info := workflow.GetInfo(t.root)
	reset := info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID
	if t.in.Checkpoint == nil {
		t.st = turnState{Head: t.in.Head, Store: t.in.Store, Serial: t.in.Serial, Reset: reset}
		return nil
	}
	if err := versioning.Open(t.in.Checkpoint, turnUpgrades(), &t.st); err != nil {
		return err
	}
	t.st.Reset = t.st.Reset || reset
	if t.st.CancelledBy != "" {
		t.cancel()
	}
	return nil
}

// renewable says whether the run should continue as new before its next step. Only history decides: the
// limits of the agent as they were when the turn began, and Temporal's suggestion.
func (t *turn) renewable() bool {
	if t.steps == 0 {
		return false // a run that does nothing would continue for ever
	}
	after := t.st.Open.Limits.ContinueAfter
	return after > 0 && t.steps >= after || workflow.GetInfo(t.root).GetContinueAsNewSuggested()
}

func (t *turn) continueAsNew() error {
	if err := t.opts.guard(t.root); err != nil {
		return err
	}
	t.drain()
	checkpoint, err := versioning.Seal(turnSchema, t.st)
	if err != nil {
		panic(err) // as in setup: the task fails, the turn does not
	}
	next := t.in
	next.Checkpoint = checkpoint
	next.Message.Text = "" // the store has it since the turn was opened
	return workflow.NewContinueAsNewError(t.root, agent.WorkflowTurn, next)
}

// drain takes every signal that has arrived. A signal that is in history and was not received is lost when
// the run ends.
func (t *turn) drain() {
	arrived(t.root, agent.SignalSteer, t.onSteer)
	arrived(t.root, agent.SignalExtend, t.onExtend)
	arrived(t.root, agent.SignalCancel, t.onCancel)
}

// onSteer keeps a message for the next step. The session has looked at what it sends; a signal sent by hand is
// held to the same.
func (t *turn) onSteer(s agent.Steering) {
	if err := wellFormed(s.Message); err != nil {
		t.log.Warn("A steering message was dropped.", "error", err)
		return
	}
	t.st.Steering = append(t.st.Steering, s.Message)
}

// onExtend adds what was granted; a signal cannot take anything away.
func (t *turn) onExtend(x agent.Extend) {
	t.st.Extra.Steps = more(t.st.Extra.Steps, x.Steps)
	t.st.Extra.Tokens = more(t.st.Extra.Tokens, x.Tokens)
	t.st.Extra.Micros = more(t.st.Extra.Micros, x.Micros)
}

// enough is more than any turn can use; sums beyond it would wrap around.
const enough = 1 << 40

func more[N int | int64](have, granted N) N { return min(have+min(max(granted, 0), enough), enough) }

// usedUp says which limit leaves no room for another step, or "".
func (t *turn) usedUp() string {
	l, extra := t.st.Open.Limits, t.st.Extra
	switch {
	case l.Steps > 0 && t.st.Step >= l.Steps+extra.Steps:
		return fmt.Sprintf("%d of %d steps", t.st.Step, l.Steps+extra.Steps)
	case l.Tokens > 0 && t.st.Usage.Tokens() >= l.Tokens+extra.Tokens:
		return fmt.Sprintf("%d of %d tokens", t.st.Usage.Tokens(), l.Tokens+extra.Tokens)
	case l.Micros > 0 && t.st.Usage.Micros >= l.Micros+extra.Micros:
		return fmt.Sprintf("%.6f of %.6f in cost", float64(t.st.Usage.Micros)/1e6, float64(l.Micros+extra.Micros)/1e6)
	}
	return ""
}

// awaitMore waits for a person to extend the limits, until the deadline. It returns nil when the turn may go
// on.
func (t *turn) awaitMore(used string) *end {
	if t.st.Deadline.IsZero() {
		t.st.Deadline = workflow.Now(t.root).Add(t.st.Open.Limits.Wait.Std())
	}
	t.waiting = fmt.Sprintf("more than %s: run holdfast extend %s with --steps, --tokens or --cost, or send the signal extend", used, t.in.Session)
	t.setStatus(agent.StatusWaiting)
	timerCtx, stop := workflow.WithCancel(t.root)
	defer stop()
	left := max(t.st.Deadline.Sub(workflow.Now(t.root)), 0)
	expired := false
	sel := workflow.NewSelector(t.root)
	// What arrives is received here: while the turn waits, nothing calls drain.
	extend := workflow.GetSignalChannel(t.root, agent.SignalExtend)
	sel.AddReceive(extend, func(c workflow.ReceiveChannel, _ bool) {
		var x agent.Extend
		if c.ReceiveAsync(&x) {
			t.onExtend(x)
		}
	})
	sel.AddReceive(t.ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	sel.AddFuture(workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: "wait for extend"}),
		func(workflow.Future) { expired = true })
	for t.ctx.Err() == nil && !expired && t.usedUp() != "" {
		sel.Select(t.root)
		if workflow.GetInfo(t.root).GetContinueAsNewSuggested() && t.usedUp() != "" && !expired && t.ctx.Err() == nil {
			return &end{renew: true}
		}
	}
	if t.ctx.Err() != nil {
		return nil // the next step says so
	}
	if expired && t.usedUp() != "" {
		return failed(agent.Reason{Type: agent.ErrLimit, Message: "used up " + used + " and nobody extended it in time"})
	}
	t.waiting, t.st.Deadline = "", time.Time{}
	t.setStatus(agent.StatusRunning)
	return nil
}

func (t *turn) setStatus(s agent.Status) {
	t.status = s
	t.must(workflow.UpsertTypedSearchAttributes(t.root, statusKey.ValueSet(string(s))))
	t.show()
}

func (t *turn) result() agent.TurnResult {
	return agent.TurnResult{
		Status: t.status, Head: t.st.Head, Effects: t.st.Ledger.Unresolved(), Reason: t.st.Reason,
		Usage: t.st.Usage, Steps: t.st.Step, Store: t.st.Store, Serial: t.st.Serial,
	}
}

func (t *turn) view() agent.TurnView {
	return agent.TurnView{
		Session: t.in.Session, Turn: t.in.Turn, Agent: t.in.Agent, Status: t.status, Step: t.st.Step,
		Waiting: t.waiting, Head: t.st.Head, Usage: t.st.Usage, Reason: t.st.Reason, Ledger: t.st.Ledger.All(),
		Folded:  t.st.Ledger.Folded(),
		Entries: t.st.Entries, Steering: t.st.Steering, Definition: t.st.Open.Definition,
		Store: t.st.Store, Serial: t.st.Serial, Deadline: t.st.Deadline,
	}
}
