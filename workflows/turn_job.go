package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// A job is one action on its way: a call of the running step, or a compensation. What it points to is in the turn's
// state, so that it goes on after a continue-as-new.
type job struct {
	place agent.Place
	call  *agent.Call
	ask   *string // the id of its latest request, "" if policy allows it by itself
	voids *int    // how often its authority was no longer valid when it was to be sent
	// undoes is the key of the effect that it compensates, the undo-th time.
	undoes string
	undo   int
}

func (t *turn) key(j job) string {
	return agent.ToolInput{
		Scope: t.in.Scope, Place: j.place, Action: j.call.Action, Undoes: j.undoes, Undo: j.undo,
	}.Key()
}

// begin enters an effect into the ledger. The error is for the model.
func (t *turn) begin(j job) error {
	e := agent.Effect{
		Key: t.key(j), Tool: j.call.Tool, Place: j.place, Class: j.call.Class, State: agent.StateRequested,
		Action: j.call.Action, Intent: j.call.Intent, At: workflow.Now(t.root), Undoes: j.undoes,
	}
	if t.change >= authority {
		e.Summary, e.Verdict = j.call.Summary, j.call.Verdict
		if j.call.Terms != nil {
			e.Resource = j.call.Terms.Resource
		}
		e.Trail = []agent.Stamp{{State: e.State, At: e.At}}
	}
	return t.st.Ledger.Add(e)
}

// carryOut takes an effect that is in the ledger through approval and sending to its result. It returns an end when
// the turn cannot go on; if that is to continue as new, it is called again in the next run.
func (t *turn) carryOut(ctx workflow.Context, j job) (agent.ToolResult, *end) {
	if e, _ := t.st.Ledger.Get(t.key(j)); e.State == agent.StateRequested {
		t.move(e.Key, agent.StateAuthorized, "", "", nil)
	}
	for {
		var grant *agent.Grant
		if *j.ask != "" {
			a, ended := t.answered(ctx, j)
			switch {
			case !ended:
				return agent.ToolResult{}, &end{renew: true}
			case a.Outcome != agent.OutcomeApproved:
				return t.unsent(j, a), nil
			}
			grant = grantOf(a)
		}
		if text, e := t.heldBack(ctx, j); e != nil || text != "" {
			return t.withhold(j, text), e
		}
		res := t.dispatch(ctx, j, grant)
		switch {
		case res.State != agent.StateVoid:
			return res, nil
		case !t.askAgain(j, res): // an attempt that an earlier authority let go may be about to send it
			e, _ := t.st.Ledger.Get(t.key(j))
			return t.foundOut(e, res), nil
		}
	}
}

// unsent is what becomes of an effect whose request was not approved. An attempt may have been let go before, by the
// run that a reset discarded or by an authority that was then void; it may have sent it or may be about to. So that is
// found out, prevented, or stands in the ledger as a contradiction. It is always asked, not only after a reset: a run
// knows from its first event on that it was reset, and what it did before that point has to be what history says.
func (t *turn) unsent(j job, a agent.Approval) agent.ToolResult {
	res := unanswered(a)
	e, ok := t.st.Ledger.Get(a.Key)
	if !ok { // folded
		e = agent.Effect{
			Key: a.Key, Tool: a.Tool, Place: a.Place, Class: a.Class, State: res.State, Action: a.Action, Intent: j.call.Intent,
			Summary: j.call.Summary, Verdict: a.Verdict, Approval: a.ID, Undoes: j.undoes, At: t.now(),
		}
	}
	return t.foundOut(e, res)
}

// foundOut makes sure that an effect which is not to be sent never will be, and returns res; or what became of it, if
// it had been sent before.
func (t *turn) foundOut(e agent.Effect, res agent.ToolResult) agent.ToolResult {
	before := t.reconcile(t.root, e, errors.New("it was approved before"))
	if !happened(before) {
		return res
	}
	before.Conflict = fmt.Sprintf("%s, but by an earlier approval it was sent: %s", e.State, before.State)
	if t.st.Ledger.Settle(e.Key, before, t.now(), "") != nil { // it was folded, and now it has to be seen
		e.Conflict = before.Conflict
		t.must(t.st.Ledger.Add(e))
	}
	return before
}

// happened says that an action has taken effect or may have.
func happened(r agent.ToolResult) bool {
	return r.State == agent.StateCommitted || r.State == agent.StateUncertain
}

// heldBack says what stands in the way of sending a job that is authorized. A compensation is held back by nothing.
func (t *turn) heldBack(ctx workflow.Context, j job) (text string, e *end) {
	if t.change < authority || j.undoes != "" {
		return "", nil
	}
	left := func() string { return t.usedUp(t.st.Spent.Effects + 1) }
	if left() != "" {
		switch e := t.awaitMore(left); {
		case e != nil && e.renew:
			return "", e
		case e != nil:
			return "not run: " + e.reason.Message, e
		}
	}
	if ctx.Err() != nil {
		return notRun().Text, nil
	}
	if e, ok := t.blocked(j.call.Intent); ok {
		return blockedText(e), nil
	}
	return "", nil
}

// withhold ends a job that was authorized and is not sent after all; one that the next run goes on with has no text.
func (t *turn) withhold(j job, text string) agent.ToolResult {
	if text == "" {
		return agent.ToolResult{}
	}
	t.move(t.key(j), agent.StateCancelled, "", "not sent", nil)
	return agent.ToolResult{State: agent.StateCancelled, Text: text}
}

// askAgain opens the next request for an action whose authority was void, with what policy says now. It returns
// false when there is none to open: the third void ends the call.
func (t *turn) askAgain(j job, res agent.ToolResult) bool {
	var a agent.Approval
	if *j.ask != "" {
		a, _ = t.st.Requests.Get(*j.ask)
		t.st.Requests.Void(*j.ask, res.Note, workflow.Now(t.root))
	}
	*j.voids++
	if *j.voids >= agent.MaxVoids || res.Terms == nil || res.Verdict == nil {
		return false
	}
	j.call.Verdict, j.call.Terms = *res.Verdict, res.Terms
	if t.ask(j, a.Ask+1, res.Note) != nil {
		return false
	}
	if a.Proposed != "" { // it is still what an approver made of the model's
		t.st.Requests.Proposed(*j.ask, a)
	}
	return true
}

// dispatch sends an effect and enters what came of it. It has no error: whatever happens has a place in the ledger.
func (t *turn) dispatch(ctx workflow.Context, j job, grant *agent.Grant) agent.ToolResult {
	key := t.key(j)
	if t.change >= authority {
		t.st.Spent.Effects++
	}
	t.sending, t.told = key, false
	res := t.found(ctx, j, grant)
	t.sending = ""
	if ctx.Err() != nil && t.change >= authority {
		res.Cancel = fact(res)
	}
	t.st.Serial = max(t.st.Serial, res.Serial)
	if err := t.st.Ledger.Settle(key, res, t.now(), ""); err != nil {
		// A result that makes no sense proves nothing.
		res.State, res.Note, res.Attempt = agent.StateUncertain, err.Error(), max(res.Attempt, 1)
		t.must(t.st.Ledger.Settle(key, res, t.now(), ""))
	}
	if t.change < authority {
		return res
	}
	if effect.Unsent(res.State) {
		t.st.Spent.Effects-- // it was reserved
	}
	if e, _ := t.st.Ledger.Get(key); e.State == agent.StateVoid && res.State == agent.StateDenied {
		t.move(key, agent.StateDenied, "", res.Note, nil)
	}
	return res
}

// found sends an effect and returns what came of it. A late attempt of it may write that down after the one that
// counts has looked for the last time; its word then comes before the doubt, and is looked into here.
func (t *turn) found(ctx workflow.Context, j job, grant *agent.Grant) agent.ToolResult {
	res, err := t.send(ctx, j, grant)
	e, _ := t.st.Ledger.Get(t.key(j))
	if err != nil {
		if t.change < authority {
			e.State = agent.StateRequested // as those runs put it
		}
		res = t.reconcile(t.root, e, err)
	}
	for n := 0; n < maxAsks && t.told && res.State == agent.StateUncertain; n++ {
		t.told = false
		res = t.reconcile(t.root, e, errors.New(res.Note))
	}
	return res
}

// fact is what became of a wish to stop an action, as far as the tool did not say it itself.
func fact(r agent.ToolResult) agent.CancelFact {
	switch {
	case r.Cancel != "":
		return r.Cancel
	case r.State == agent.StateCommitted:
		return agent.CancelCompleted
	case r.State == agent.StateUncertain:
		return agent.CancelAsked
	}
	return agent.CancelAccepted // nothing was done
}

func (t *turn) send(ctx workflow.Context, j job, grant *agent.Grant) (res agent.ToolResult, err error) {
	in := agent.ToolInput{
		Scope: t.in.Scope, Place: j.place, Definition: t.st.Open.Definition.Short(),
		Tool: j.call.Tool, Args: j.call.Args, Class: j.call.Class, Action: j.call.Action,
		Grant: grant, Undoes: j.undoes, Undo: j.undo, Senders: t.st.Senders, Root: t.family(),
		Reset: t.st.Reset, Store: t.st.Store, Serial: t.st.Serial,
	}
	err = workflow.ExecuteActivity(t.toolContext(ctx, *j.call), agent.ActivityTool, in).Get(ctx, &res)
	return res, err
}

// reconcile asks the store what became of an effect whose activity left no answer: an error says nothing
// about what was sent. It goes on when the turn is cancelled, for the answer is owed all the same.
func (t *turn) reconcile(ctx workflow.Context, e agent.Effect, cause error) agent.ToolResult {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var out agent.ReconcileResult
	err := ordinary(ctx, agent.ActivityReconcile, "reconcile: "+e.Tool, attemptGrace,
		agent.ReconcileInput{Scope: t.in.Scope, Store: t.st.Store, Effects: []agent.Effect{e}}, &out)
	if err == nil && len(out.Results) == 1 {
		return out.Results[0]
	}
	return agent.ToolResult{
		State: agent.StateUncertain, Text: "It is not known whether this happened. Do not repeat it; tell the user.",
		Note: reasonOf(cause).Message,
	}
}

// blocked finds an uncertain effect with the same intent, of this turn or an earlier one.
func (t *turn) blocked(intent string) (agent.Effect, bool) {
	for _, e := range t.in.Unresolved {
		if e.Intent == intent && e.State == agent.StateUncertain {
			return e, true
		}
	}
	return t.st.Ledger.Blocks(intent)
}

func blockedText(e agent.Effect) string {
	return fmt.Sprintf("not run: the same action was tried before (%s) and its outcome is uncertain. "+
		"It is not repeated until somebody has settled it; tell the user.", e.Key)
}

// move takes an effect to another state. Runs of before the change leave no trail.
func (t *turn) move(key string, to agent.State, who, note string, with func(*agent.Effect)) {
	t.must(t.st.Ledger.Move(key, to, agent.Stamp{At: t.now(), By: who, Note: note}, with))
}

// now is the time of stamps: none in runs of before the change.
func (t *turn) now() (at time.Time) {
	if t.change >= authority {
		at = workflow.Now(t.root)
	}
	return at
}

// must turns what only a defect of ours can cause, such as a broken rule of the ledger, into a failed workflow
// task, to be mended by a build that knows better. It is never a reason to end a turn.
func (t *turn) must(err error) {
	if err != nil {
		panic(err)
	}
}
