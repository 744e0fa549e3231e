package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/versioning"
)

// turnSchema is the schema of turnState in a checkpoint; a change of the struct raises it and adds an upgrade. A run
// of before a change writes the schema of before, with which its other fields are empty.
const turnSchema = 3

// turnUpgrades[i] turns schema i+1 into i+2. Each has further fields so far, all of which begin empty.
func turnUpgrades() []versioning.Upgrade {
	return []versioning.Upgrade{versioning.Same, versioning.Same}
}

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
	Extra    agent.Budget     `json:"extra,omitzero"`   // granted beyond the limits
	Deadline time.Time        `json:"deadline,omitzero"`
	Store    string           `json:"store,omitempty"`
	Serial   int64            `json:"serial,omitempty"`
	Reset    bool             `json:"reset,omitempty"` // an earlier run of the turn was discarded
	Reason   *agent.Reason    `json:"reason,omitempty"`
	// CancelledBy says who cancelled and why, once somebody has.
	CancelledBy string `json:"cancelledBy,omitempty"`

	// Of schema 2.
	Senders     []agent.Actor                    `json:"senders,omitempty"`
	Acting      *acting                          `json:"acting,omitempty"`
	Requests    approval.Requests                `json:"requests,omitzero"`
	Decisions   []letter[agent.ApprovalDecision] `json:"decisions,omitempty"`   // to be looked into
	Early       []letter[agent.ApprovalDecision] `json:"early,omitempty"`       // that came before their request
	Settlements []letter[agent.Settlement]       `json:"settlements,omitempty"` // to be looked into
	Ending      *ending                          `json:"ending,omitempty"`
	Spent       agent.Budget                     `json:"spent,omitzero"` // only what nothing else counts
	Started     time.Time                        `json:"started,omitzero"`
	Waited      agent.Duration                   `json:"waited,omitempty"`
	Published   published                        `json:"published,omitzero"`
	// WaitingSince is when the turn began to wait for people, HoldUntil how long it waits for a word on
	// an uncertain effect.
	WaitingSince       time.Time       `json:"waitingSince,omitzero"`
	HoldUntil          time.Time       `json:"holdUntil,omitzero"`
	RefusedSettlements []agent.Refusal `json:"refusedSettlements,omitempty"`
	MoreSettlements    int             `json:"moreSettlements,omitempty"`

	// Of schema 3.
	UpgradeAsk string `json:"upgradeAsk,omitempty"` // the id of the request for the offer that waits
}

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
	if since := t.st.WaitingSince; !since.IsZero() { // the run before waited for more budget to its end
		t.st.Waited += agent.Duration(workflow.Now(t.root).Sub(since))
		t.st.WaitingSince = time.Time{}
	}
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

// renews says whether a turn that waits for people should continue as new instead, to wait on in a short history.
func (t *turn) renews() bool {
	return t.leaving || t.change >= authority && workflow.GetInfo(t.root).GetContinueAsNewSuggested() &&
		!t.decisions.busy && !t.settlements.busy
}

func (t *turn) continueAsNew() error {
	if t.change >= authority {
		// What is being looked into is looked into here; what came after it goes with the state.
		ctx, cancel := workflow.NewDisconnectedContext(t.root)
		defer cancel()
		if err := workflow.Await(ctx, func() bool { return !t.decisions.busy && !t.settlements.busy }); err != nil {
			return err
		}
	}
	t.leaving = true
	if err := t.opts.guard(t.root); err != nil {
		return err
	}
	t.drain()
	if t.root.Err() != nil && t.st.CancelledBy == "" { // Temporal's own, which came with what led here: the next run is not told
		t.st.CancelledBy = "cancelled"
	}
	schema := schemaOf(t.change, t.in.Checkpoint, turnSchema)
	if schema < crossing {
		t.st.Open.Policy = "" // which a build of before would not know
	}
	checkpoint, err := versioning.Seal(schema, t.st)
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
	if t.change >= authority {
		t.decisions.drain(t.root, agent.SignalApproval)
		t.settlements.drain(t.root, agent.SignalSettle)
	}
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

func (t *turn) result() agent.TurnResult {
	res := agent.TurnResult{
		Status: t.status, Head: t.st.Head, Effects: t.st.Ledger.Unresolved(), Reason: t.st.Reason,
		Usage: t.st.Usage, Steps: t.st.Step, Store: t.st.Store, Serial: t.st.Serial,
	}
	if t.change >= authority {
		res.Spent, res.Granted = t.spent(), t.st.Extra
	}
	if t.in.Undo != nil {
		res.Effects = t.undoneEffects()
	}
	if by := t.st.Open.Identity(); t.change >= crossing && by.Definition != "" {
		res.By = &by
	}
	return res
}

// schemaOf is the schema of the checkpoint that a run leaves: each change number so far came with one. A run that took
// up a newer one hands that on, for it may hold what an older one has no room for.
func schemaOf(change int, from *agent.Checkpoint, newest int) int {
	schema := change
	if from != nil {
		schema = max(schema, from.Schema)
	}
	return min(schema, newest)
}

// family is where the intents of a fork are claimed, nil for a session that is none.
func (t *turn) family() *agent.Scope {
	if t.in.Origin == nil {
		return nil
	}
	return &t.in.Origin.Root
}

// undoneEffects are those of an earlier turn that this one compensated, or could not, and its own unresolved ones.
func (t *turn) undoneEffects() []agent.Effect {
	var out []agent.Effect
	for _, e := range t.st.Ledger.All() {
		if e.Undoes == "" || effect.Unresolved(e) {
			out = append(out, e)
		}
	}
	return out
}

func (t *turn) approvals() agent.ApprovalsView {
	r := t.st.Requests
	return agent.ApprovalsView{Scope: t.in.Scope, Turn: t.in.Turn, Approvals: r.All(), Refused: r.Refused, More: r.More}
}

func (t *turn) effectsView() agent.EffectsView {
	return agent.EffectsView{
		Scope: t.in.Scope, Turn: t.in.Turn, Effects: t.st.Ledger.All(), Folded: t.st.Ledger.Folded(),
		Refused: t.st.RefusedSettlements, More: t.st.MoreSettlements,
	}
}

func (t *turn) view() agent.TurnView {
	return agent.TurnView{
		Session: t.in.Session, Turn: t.in.Turn, Agent: t.in.Agent, Status: t.status, Step: t.st.Step,
		Waiting: t.waitsFor(), Deadline: t.st.Deadline, Approvals: t.st.Requests.Pending(), Reason: t.st.Reason,
		Head: t.st.Head, Entries: t.st.Entries, Steering: t.st.Steering, Usage: t.st.Usage, Spent: t.spent(),
		Ledger: t.st.Ledger.All(), Folded: t.st.Ledger.Folded(),
		Definition: t.st.Open.Definition, Store: t.st.Store, Serial: t.st.Serial,
		Policy: t.st.Open.Policy, Build: t.st.Open.Build, Change: t.change,
	}
}
