package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// An ending is a turn that has ended but for what it has to undo.
type ending struct {
	Status agent.Status  `json:"status"`
	Reason *agent.Reason `json:"reason,omitempty"`
	Undos  []agent.Undo  `json:"undos,omitempty"`
	Next   int           `json:"next,omitempty"`
	// Ask and Voids are those of the compensation that is on its way.
	Ask   string `json:"ask,omitempty"`
	Voids int    `json:"voids,omitempty"`
}

// unwind undoes what a turn has done, if it failed or was cancelled and policy says so: the last effect first, each
// compensation an effect of its own. It goes on when the turn is cancelled. It returns true when the run is to be
// continued as new instead.
func (t *turn) unwind(e end) (renew bool) {
	if t.change < authority {
		return false
	}
	ctx, cancel := workflow.NewDisconnectedContext(t.root)
	defer cancel()
	if t.st.Ending == nil {
		t.st.Ending = &ending{Status: e.status, Reason: e.reason}
		t.plan(ctx, e)
	}
	for u := t.st.Ending; u.Next < len(u.Undos); u.Next++ {
		if !t.undo(ctx, &u.Undos[u.Next]) {
			return true
		}
		u.Ask, u.Voids = "", 0
	}
	return false
}

// plan finds out what there is to undo.
func (t *turn) plan(ctx workflow.Context, e end) {
	in := agent.PlanInput{
		Scope: t.in.Scope, Definition: t.st.Open.Definition.Short(), Senders: t.st.Senders,
		Run: workflow.GetInfo(ctx).WorkflowExecution.RunID, Store: t.st.Store, Serial: t.st.Serial,
	}
	if t.in.Undo != nil {
		in.Command, in.Of = &t.in.Undo.Command, t.in.Undo.Turn
	} else {
		in.Effects, in.Folded = t.st.Ledger.Compensable()
		if e.status == agent.StatusDone || e.status == agent.StatusBudget || len(in.Effects) == 0 && !in.Folded {
			return
		}
	}
	var res agent.PlanResult
	err := local(ctx, agent.ActivityPlan, "plan: what to undo", in, &res)
	switch {
	case err != nil && t.in.Undo != nil:
		r := reasonOf(err)
		t.st.Ending.Status, t.st.Ending.Reason = agent.StatusFailed, &r
	case err != nil:
		t.log.Error("What the turn has done could not be looked through for what to undo.", "error", err)
	case res.Why != "":
		t.st.Ending.Status, t.st.Ending.Reason = agent.StatusFailed, &agent.Reason{Type: agent.ErrNotEntitled, Message: res.Why}
	case res.Then != agent.UnwindKeep:
		t.st.Ending.Undos = res.Undos
	}
}

// undo runs one compensation. It returns false when the run is to be continued as new instead.
func (t *turn) undo(ctx workflow.Context, u *agent.Undo) bool {
	j := job{
		place: u.Effect.Place, call: &u.Call, ask: &t.st.Ending.Ask, voids: &t.st.Ending.Voids,
		undoes: u.Effect.Key, undo: u.Effect.Undone + 1,
	}
	if _, begun := t.st.Ledger.Get(t.key(j)); !begun && !t.beginUndo(u, j) {
		return true
	}
	res, e := t.carryOut(ctx, j)
	if e != nil {
		return false
	}
	t.st.Ledger.Undone(u.Effect.Key, res, workflow.Now(t.root), "")
	t.note(u.Call, res)
	t.publish()
	return true
}

// beginUndo enters a compensation into the ledger. It returns false when there is none to run, and says why.
func (t *turn) beginUndo(u *agent.Undo, j job) bool {
	key := u.Effect.Key
	if err := t.undoable(u); err != nil {
		t.log.Error("An effect cannot be undone as it was planned.", "error", err)
		return false
	}
	if u.Irreversible {
		t.stands(key)
		return false
	}
	t.move(key, agent.StateCompensating, "", "", func(e *agent.Effect) { e.Undone = j.undo })
	why := u.Call.Trouble
	if why == "" && u.Call.Verdict.Decision == agent.DecisionDeny {
		why = "policy forbids " + u.Call.Tool + " (" + u.Call.Verdict.Rule + ")"
	}
	if why == "" {
		if err := t.begin(j); err != nil {
			why = err.Error()
		}
	}
	if why == "" && u.Call.Verdict.Decision == agent.DecisionAsk {
		if err := t.ask(j, 1, "undoes "+key); err != nil {
			t.move(t.key(j), agent.StateDenied, "", err.Error(), nil)
			why = err.Error()
		}
	}
	if why != "" {
		t.move(key, agent.StateCompensationFailed, "", why, func(e *agent.Effect) { e.Note = why })
	}
	return why == ""
}

// undoable says why an effect cannot be undone now: a plan is made from the store's records, which may know of an
// effect otherwise than the ledger does.
func (t *turn) undoable(u *agent.Undo) error {
	e, ok := t.st.Ledger.Get(u.Effect.Key)
	if !ok { // folded, or another turn's
		if e = u.Effect; t.st.Ledger.Add(e) != nil {
			return fmt.Errorf("the ledger cannot take effect %q, which is %q", e.Key, e.State)
		}
	}
	if !effect.Can(e.State, agent.StateCompensating) {
		return fmt.Errorf("effect %q is %s", e.Key, e.State)
	}
	return nil
}

// stands enters that nothing undoes an effect. One whose compensation failed, before its tool was declared so, is
// still for somebody to look at.
func (t *turn) stands(key string) {
	const note = "declared irreversible: it stands"
	if e, _ := t.st.Ledger.Get(key); !effect.Can(e.State, agent.StateIrreversible) {
		t.must(t.st.Ledger.Amend(key, func(e *agent.Effect) { e.Note = note }))
		return
	}
	t.move(key, agent.StateIrreversible, "", note, nil)
}
