package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/store"
)

const (
	// queryTimeout bounds one try to ask a closed run for its last state: it needs a worker of the
	// run's build.
	queryTimeout = 10 * time.Second
	queryTries   = 2
	// identifies is the first change number of turns that say what they worked with: see agent.TurnResult.
	identifies = 3
)

// Recover returns the end of a turn that may not have told it to its session. It waits until the turn is
// closed. One that ended by itself carries its result; of one that was terminated or timed out the last
// state is read back, what it may have sent is reconciled, and the closing record is written here.
func (a *Activities) Recover(ctx context.Context, in agent.RecoverInput) (agent.TurnResult, error) {
	p := begin(ctx, "waiting for the turn to close")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, 0); err != nil {
		return agent.TurnResult{}, err
	}
	id := agent.TurnID(in.Session, in.Turn)
	var res agent.TurnResult
	err := a.Client.GetWorkflow(ctx, id, "").Get(ctx, &res)
	var ended *temporal.WorkflowExecutionError
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return res, ctx.Err()
	case errors.As(err, &ended):
		if res, ok := agent.ResultIn(err); ok {
			return res, nil
		}
	case !errors.As(err, &gone):
		return res, snap.retryable(agent.ErrInternal, 0, "waiting for turn %q: %v", id, err)
	}
	p.phase("reading the turn's last state")
	return a.recoverTurn(ctx, snap, in, why(err))
}

// why says for a person how a turn ended that left no result.
func why(err error) string {
	var terminated *temporal.TerminatedError
	var timeout *temporal.TimeoutError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &terminated):
		return "the turn was terminated"
	case errors.As(err, &timeout):
		return "the turn timed out"
	case errors.As(err, &gone):
		return "the turn is not known to the server: it was never started, or it is gone after its retention"
	}
	return fmt.Sprintf("the turn ended without a result: %v", err)
}

// recoverTurn puts the end of a turn together from what it left behind.
func (a *Activities) recoverTurn(ctx context.Context, s *Snapshot, in agent.RecoverInput, reason string) (agent.TurnResult, error) {
	view, source, err := a.lastView(ctx, in)
	if err != nil {
		return agent.TurnResult{}, s.retryable(agent.ErrInternal, 0, "reading the history of turn %d: %v", in.Turn, err)
	}
	if view.Head.Seq < in.Head.Seq {
		view.Head = in.Head
	}
	if res, ok := a.closed(ctx, in); ok {
		res.Undelivered = view.Steering
		return res, nil
	}
	ledger, entries, err := a.settleAll(ctx, s, in, view)
	if err == nil {
		err = a.addDispatched(ctx, s, in, &ledger)
	}
	if err != nil {
		return agent.TurnResult{}, err
	}
	origin, err := a.origin(ctx, in.Scope)
	if err != nil && !definite(err) { // one that cannot be read is no reason to lose the end
		return agent.TurnResult{}, s.storeTrouble(ctx, "looking for where the session began", err)
	}
	undone(&ledger)
	res := agent.TurnResult{
		Status: agent.StatusFailed, Head: view.Head, Effects: ledger.Unresolved(),
		Reason: &agent.Reason{Type: agent.ErrTerminated, Message: s.say("%s%s", reason, source)},
		Usage:  view.Usage, Steps: view.Step, Spent: view.Spent, Undelivered: view.Steering, Store: a.Store.ID(), Serial: view.Serial,
	}
	if view.Change >= identifies && view.Definition != "" { // else the session goes on with what it had
		res.By = &agent.Identity{Definition: view.Definition, Policy: view.Policy, Build: view.Build}
	}
	end, err := a.close(ctx, s, agent.CloseInput{
		Scope: in.Scope, Turn: in.Turn, Agent: view.Agent, Definition: view.Definition,
		Result: res, Ledger: ledger.All(), Folded: append(view.Folded, ledger.Folded()...), Entries: entries,
		Approvals: abandoned(view.Approvals), Origin: origin,
	})
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		res.Closing, res.Head = end.Closing, end.Head
	case errors.As(err, &app) && app.NonRetryable(): // the session must hear of the effects all the same
		res.Reason.Message = s.say("%s; %s", res.Reason.Message, app.Message())
	default:
		return agent.TurnResult{}, err
	}
	return res, nil
}

// abandoned ends the requests that waited: nobody can answer them any more, and their actions are not sent.
func abandoned(waiting []agent.Approval) []agent.Approval {
	ended := slices.Clone(waiting)
	for i := range ended {
		if a := &ended[i]; a.Outcome == agent.OutcomePending {
			a.Outcome, a.EndedAt, a.Note = agent.OutcomeCancelled, now(), "the turn was ended from outside"
		}
	}
	return ended
}

// lastView returns a turn's last state and, for a person, where it is from if not from the turn itself.
func (a *Activities) lastView(ctx context.Context, in agent.RecoverInput) (view agent.TurnView, source string, err error) {
	for range queryTries {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		answer, err := a.Client.QueryWorkflow(ctx, agent.TurnID(in.Session, in.Turn), "", agent.QueryTurn)
		cancel()
		if err == nil && answer.Get(&view) == nil {
			return view, "", nil
		}
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return agent.TurnView{Head: in.Head}, "", nil
		}
	}
	view, err = a.viewFromHistory(ctx, in)
	return view, "; its last state was put together from its history, because no worker answered for it", err
}

// closed returns the result in a turn's closing record, if it had written one before it was ended from
// outside.
func (a *Activities) closed(ctx context.Context, in agent.RecoverInput) (agent.TurnResult, bool) {
	b, err := a.Store.Space(in.Scope).Closing(ctx, store.ClosingName(in.Turn, 0))
	var c Closing
	if err != nil || json.Unmarshal(b, &c) != nil || !c.Result.Status.Final() {
		return agent.TurnResult{}, false
	}
	c.Result.Closing = agent.DigestOf(b)
	return c.Result, true
}

// settleAll finds out what became of every effect, and what the model has to hear of it: a turn that is
// ended in the middle of a step has the results of that step in the store only.
func (a *Activities) settleAll(ctx context.Context, s *Snapshot, in agent.RecoverInput, view agent.TurnView) (effect.Ledger, []agent.Entry, error) {
	var ledger effect.Ledger
	asked, err := a.lastCalls(ctx, s, in.Scope, view)
	if err != nil {
		return ledger, nil, err
	}
	entries := view.Entries
	for _, e := range view.Ledger {
		latest := e.Place.Step == view.Step && e.Place.Call >= 1 && e.Place.Call <= len(asked)
		if err := ledger.Add(e); err != nil || !effect.Open(e.State) && !latest {
			continue
		}
		res, err := a.reconcile(ctx, s, in.Scope, e)
		if err != nil {
			return ledger, nil, err
		}
		// What makes no sense for an effect proves nothing about it, and it stays as it was.
		_ = ledger.Settle(e.Key, res, now(), "")
		if latest {
			entries = answered(entries, asked[e.Place.Call-1], res)
		}
	}
	return ledger, entries, nil
}

// undone enters how the compensations ended that the turn was at: what could not be undone has to be looked at. A state
// that was put together from a history has the effect itself as committed.
func undone(ledger *effect.Ledger) {
	for _, e := range ledger.All() {
		o, ok := ledger.Get(e.Undoes)
		if !ok || o.State != agent.StateCommitted && o.State != agent.StateCompensating {
			continue
		}
		k, _ := agent.ParseKey(e.Key)
		_ = ledger.Move(o.Key, agent.StateCompensating, agent.Stamp{}, func(o *agent.Effect) { o.Undone = k.Undo })
		ledger.Undone(o.Key, agent.ToolResult{State: e.State, Note: e.Note}, now(), "")
	}
}

// addDispatched adds the effects that may have been sent and of which the turn's last state says nothing: a
// state that was put together from a history lacks what earlier runs carried along and what could not be
// decoded. The dispatch records have them all.
func (a *Activities) addDispatched(ctx context.Context, s *Snapshot, in agent.RecoverInput, ledger *effect.Ledger) error {
	space := a.Store.Space(in.Scope)
	keys, err := space.List(ctx, store.KindDispatches, agent.TurnKeys(in.Scope, in.Turn))
	if err != nil {
		return s.storeTrouble(ctx, "listing the dispatch records", err)
	}
	for _, key := range keys {
		if _, there := ledger.Get(key); there || isPlace(key) {
			continue
		}
		d, err := space.Dispatch(ctx, key)
		if err != nil && !definite(err) {
			return s.storeTrouble(ctx, "reading the dispatch of "+key, err)
		}
		e := effectOf(key, d)
		res, err := a.reconcile(ctx, s, in.Scope, e)
		if err != nil {
			return err
		}
		if res.State != agent.StateUncertain && res.Conflict == "" {
			continue // it had its end, or was never sent
		}
		if ledger.Add(e) == nil {
			_ = ledger.Settle(key, res, now(), "") // from dispatched that is always allowed
		}
	}
	return nil
}

// effectOf is what a dispatch record says of its effect: that it may have been sent.
func effectOf(key string, d store.Dispatch) agent.Effect {
	k, _ := agent.ParseKey(key)
	return agent.Effect{
		Key: key, Tool: d.Tool, Place: k.Place, Class: d.Class, State: agent.StateDispatched, Action: d.Action, Intent: d.Intent,
		Undoes: d.Undoes, Verdict: d.Verdict, Attempt: max(d.Attempt, 1), At: d.At,
	}
}

// lastCalls returns the ids of the calls of the last answer in the transcript.
func (a *Activities) lastCalls(ctx context.Context, s *Snapshot, scope agent.Scope, view agent.TurnView) ([]string, error) {
	conv, err := a.Log.Read(ctx, scope, view.Head)
	if err != nil {
		return nil, s.storeTrouble(ctx, "reading the transcript", err)
	}
	var ids []string
	if n := len(conv.Entries); n > 0 && conv.Entries[n-1].Role == agent.RoleAssistant {
		for _, c := range conv.Entries[n-1].Calls {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// answered adds the result of a call to entries unless it is there.
func answered(entries []agent.Entry, id string, r agent.ToolResult) []agent.Entry {
	for _, e := range entries {
		if e.Role == agent.RoleTool && e.Call == id {
			return entries
		}
	}
	e := agent.Entry{Role: agent.RoleTool, Call: id, Text: r.Text, Body: r.Body}
	if r.Body != nil {
		e.Text = ""
	}
	return append(entries, e)
}
