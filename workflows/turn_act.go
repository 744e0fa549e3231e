package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// parallel bounds how many reads of one step run at once.
const parallel = 16

// act runs the calls of one step and keeps their results as the next entries, in the order asked for. Reads
// run in parallel; effects start in the order asked for. A failed effect does not stop the later ones, an
// uncertain one does: what comes after it may have been meant to build on it.
func (t *turn) act(calls []agent.Call) {
	results := make([]agent.ToolResult, len(calls))
	wg := workflow.NewWaitGroup(t.ctx)
	slots := workflow.NewSemaphore(t.root, parallel)
	run := func(ctx workflow.Context, i int) {
		results[i] = t.call(ctx, agent.Place{Turn: t.in.Turn, Step: t.st.Step, Call: i + 1}, calls[i])
	}
	for i, c := range calls {
		if c.Class != agent.ClassRead || !runnable(c) {
			continue
		}
		wg.Add(1)
		workflow.Go(t.ctx, func(ctx workflow.Context) {
			defer wg.Done()
			if slots.Acquire(ctx, 1) != nil {
				results[i] = notRun()
				return
			}
			defer slots.Release(1)
			run(ctx, i)
		})
	}
	var uncertain string
	for i, c := range calls {
		switch {
		case !runnable(c):
			results[i] = refused(c)
		case c.Class == agent.ClassRead:
		case uncertain != "":
			results[i] = agent.ToolResult{State: agent.StateCancelled, Text: "not run: the outcome of " + uncertain +
				", asked for before it, is uncertain. Tell the user; do not repeat either."}
		default:
			run(t.ctx, i)
			if results[i].State == agent.StateUncertain {
				uncertain = calls[i].Tool
			}
		}
	}
	wg.Wait(t.root)
	t.record(calls, results)
}

func runnable(c agent.Call) bool { return c.Trouble == "" && c.Verdict.Decision == agent.DecisionAllow }

func refused(c agent.Call) agent.ToolResult {
	text := c.Trouble
	if text == "" {
		text = fmt.Sprintf("not run: policy says %s (rule %q)", c.Verdict.Decision, c.Verdict.Rule)
	}
	return agent.ToolResult{State: agent.StateDenied, Text: text}
}

func notRun() agent.ToolResult {
	return agent.ToolResult{State: agent.StateCancelled, Text: "not run: the turn was cancelled"}
}

// record turns results into what the model hears next.
func (t *turn) record(calls []agent.Call, results []agent.ToolResult) {
	ran := false
	for i, c := range calls {
		r := results[i]
		entry := agent.Entry{Role: agent.RoleTool, Call: c.ID, Text: r.Text, Body: r.Body}
		if r.Body != nil {
			entry.Text = "" // the body names all of it
		}
		t.st.Entries = append(t.st.Entries, entry)
		ran = ran || runnable(c)
		t.note(c, r)
	}
	if ran {
		t.st.Faults = 0
	} else {
		t.st.Faults++
	}
}

// call runs one call to its result. It has no error: whatever happens is told to the model.
func (t *turn) call(ctx workflow.Context, p agent.Place, c agent.Call) agent.ToolResult {
	if ctx.Err() != nil {
		return notRun()
	}
	if c.Class == agent.ClassRead {
		res, err := t.send(ctx, p, c)
		if err != nil {
			r := reasonOf(err)
			return agent.ToolResult{State: agent.StateFailed, Text: "failed: " + r.Message}
		}
		return res
	}
	if e, ok := t.blocked(c.Intent); ok {
		return agent.ToolResult{State: agent.StateDenied, Text: fmt.Sprintf(
			"not run: the same action was tried before (%s) and its outcome is uncertain. It is not repeated until somebody has settled it; tell the user.", e.Key)}
	}
	return t.effect(ctx, p, c)
}

// effect runs a call that may change the world and keeps the ledger.
func (t *turn) effect(ctx workflow.Context, p agent.Place, c agent.Call) agent.ToolResult {
	e := agent.Effect{
		Key: agent.ActionKey(t.in.Scope, p, c.Action), Tool: c.Tool, Place: p, Class: c.Class,
		State: agent.StateRequested, Action: c.Action, Intent: c.Intent, At: workflow.Now(ctx),
	}
	if err := t.st.Ledger.Add(e); err != nil {
		return agent.ToolResult{State: agent.StateDenied, Text: "not run: " + err.Error()}
	}
	t.must(t.st.Ledger.Move(e.Key, agent.StateAuthorized, nil))
	res, err := t.send(ctx, p, c)
	if err != nil {
		res = t.reconcile(e, err)
	}
	if err := t.st.Ledger.Settle(e.Key, res); err != nil {
		// A result that makes no sense proves nothing.
		res.State, res.Note, res.Attempt = agent.StateUncertain, err.Error(), max(res.Attempt, 1)
		t.must(t.st.Ledger.Settle(e.Key, res))
	}
	return res
}

func (t *turn) send(ctx workflow.Context, p agent.Place, c agent.Call) (res agent.ToolResult, err error) {
	err = workflow.ExecuteActivity(t.toolContext(ctx, c), agent.ActivityTool, agent.ToolInput{
		Scope: t.in.Scope, Place: p, Definition: t.st.Open.Definition.Short(),
		Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action,
		Reset: t.st.Reset, Store: t.st.Store, Serial: t.st.Serial,
	}).Get(ctx, &res)
	return res, err
}

// reconcile asks the store what became of an effect whose activity left no answer: an error says nothing
// about what was sent. It goes on when the turn is cancelled, for the answer is owed all the same.
func (t *turn) reconcile(e agent.Effect, cause error) agent.ToolResult {
	ctx, cancel := workflow.NewDisconnectedContext(t.root)
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

// must turns what only a defect of ours can cause, such as a broken rule of the ledger, into a failed workflow
// task, to be mended by a build that knows better. It is never a reason to end a turn.
func (t *turn) must(err error) {
	if err != nil {
		panic(err)
	}
}
