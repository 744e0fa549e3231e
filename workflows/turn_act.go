package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// parallel bounds how many reads of one step run at once.
const parallel = 16

// acting is the step that is being acted on: a turn may continue as new while it waits for people.
type acting struct {
	Calls   []agent.Call        `json:"calls"`
	Results []*agent.ToolResult `json:"results"`
	Asks    []string            `json:"asks"`  // the id of each call's latest request
	Voids   []int               `json:"voids"` // how often each call's authority was void
}

// job returns the i-th call as a job.
func (t *turn) job(i int) job {
	a := t.st.Acting
	return job{
		place: agent.Place{Turn: t.in.Turn, Step: t.st.Step, Call: i + 1},
		call:  &a.Calls[i], ask: &a.Asks[i], voids: &a.Voids[i],
	}
}

// act runs the calls of one step and keeps their results as the next entries, in the order asked for. All requests
// for approval open at once. Reads run in parallel; effects start in the order asked for. A failed or declined
// effect does not stop the later ones, an uncertain one does: what comes after it may have been meant to build
// on it. It returns nil when the step is over.
func (t *turn) act(calls []agent.Call) *end {
	if t.st.Acting == nil {
		n := len(calls)
		t.st.Acting = &acting{calls, make([]*agent.ToolResult, n), make([]string, n), make([]int, n)}
		t.openAsks()
	}
	reads := t.startReads()
	e := t.effects()
	reads.Wait(t.root)
	if e == nil && t.unfinished() {
		e = &end{renew: true}
	}
	if e != nil && e.renew {
		return e
	}
	t.record()
	t.st.Acting = nil
	return e
}

// openAsks enters the effects that need a person and asks for all of them at once.
func (t *turn) openAsks() {
	for i, c := range t.st.Acting.Calls {
		if !runnable(c) || c.Verdict.Decision != agent.DecisionAsk {
			continue
		}
		j := t.job(i)
		if why := t.openAsk(j); why != "" {
			t.st.Acting.Results[i] = &agent.ToolResult{State: agent.StateDenied, Text: why}
		}
	}
}

// openAsk returns why nobody is asked, "" if somebody is.
func (t *turn) openAsk(j job) string {
	if j.call.Class != agent.ClassRead {
		if e, ok := t.blocked(j.call.Intent); ok {
			return blockedText(e)
		}
		if err := t.begin(j); err != nil {
			return "not run: " + err.Error()
		}
	}
	if err := t.ask(j, 1, ""); err != nil {
		if j.call.Class != agent.ClassRead {
			t.move(t.key(j), agent.StateDenied, "", err.Error(), nil)
		}
		return "not run: " + err.Error()
	}
	return ""
}

// startReads runs the step's reads in parallel.
func (t *turn) startReads() workflow.WaitGroup {
	a := t.st.Acting
	wg := workflow.NewWaitGroup(t.ctx)
	slots := workflow.NewSemaphore(t.root, parallel)
	for i, c := range a.Calls {
		if c.Class != agent.ClassRead || !runnable(c) || a.Results[i] != nil {
			continue
		}
		wg.Add(1)
		workflow.Go(t.ctx, func(ctx workflow.Context) {
			defer wg.Done()
			if res, ok := t.read(ctx, t.job(i), slots); ok {
				a.Results[i] = &res
			}
		})
	}
	return wg
}

// read runs a call that changes nothing. It returns false when the run is to be continued as new instead.
func (t *turn) read(ctx workflow.Context, j job, slots workflow.Semaphore) (agent.ToolResult, bool) {
	for {
		var grant *agent.Grant
		if *j.ask != "" {
			a, ended := t.answered(ctx, j)
			switch {
			case !ended:
				return agent.ToolResult{}, false
			case a.Outcome != agent.OutcomeApproved:
				return unanswered(a), true
			}
			grant = grantOf(a)
		}
		if slots.Acquire(ctx, 1) != nil {
			return notRun(), true
		}
		res := t.sendRead(ctx, j, grant)
		slots.Release(1)
		if res.State != agent.StateVoid || !t.askAgain(j, res) {
			return res, true
		}
	}
}

func (t *turn) sendRead(ctx workflow.Context, j job, grant *agent.Grant) agent.ToolResult {
	if ctx.Err() != nil {
		return notRun()
	}
	res, err := t.send(ctx, j, grant)
	if err != nil {
		return agent.ToolResult{State: agent.StateFailed, Text: "failed: " + reasonOf(err).Message}
	}
	return res
}

// effects runs the step's effects and refuses what cannot run.
func (t *turn) effects() *end {
	a := t.st.Acting
	var uncertain string
	for i, c := range a.Calls {
		switch {
		case a.Results[i] == nil && !runnable(c):
			res := refused(c)
			a.Results[i] = &res
		case c.Class == agent.ClassRead:
			continue
		case a.Results[i] == nil && uncertain != "":
			a.Results[i] = t.notAfter(i, uncertain)
		case a.Results[i] == nil:
			if e := t.effect(i); e != nil {
				return e
			}
		}
		if e := t.hold(i); e != nil {
			return e
		}
		if r := a.Results[i]; r != nil && r.State == agent.StateUncertain {
			uncertain = c.Tool
		}
	}
	return nil
}

// effect runs the i-th call, which may change the world.
func (t *turn) effect(i int) *end {
	a, j := t.st.Acting, t.job(i)
	if t.ctx.Err() != nil && *j.ask == "" {
		res := notRun()
		if e, _ := t.st.Ledger.Get(t.key(j)); e.State == agent.StateAuthorized { // it waited for more budget
			res = t.withhold(j, res.Text)
		}
		a.Results[i] = &res
		return nil
	}
	if *j.ask == "" {
		if e, ok := t.blocked(j.call.Intent); ok {
			a.Results[i] = &agent.ToolResult{State: agent.StateDenied, Text: blockedText(e)}
			return nil
		}
		if _, begun := t.st.Ledger.Get(t.key(j)); !begun {
			if err := t.begin(j); err != nil {
				a.Results[i] = &agent.ToolResult{State: agent.StateDenied, Text: "not run: " + err.Error()}
				return nil
			}
		}
	}
	res, e := t.carryOut(t.ctx, j)
	if e != nil && e.renew {
		return e
	}
	a.Results[i] = &res
	return e
}

// notAfter is for an effect that comes after an uncertain one.
func (t *turn) notAfter(i int, uncertain string) *agent.ToolResult {
	if id := t.st.Acting.Asks[i]; id != "" {
		t.withdraw(id, "the outcome of "+uncertain+", asked for before it, is uncertain")
	}
	return &agent.ToolResult{State: agent.StateCancelled, Text: "not run: the outcome of " + uncertain +
		", asked for before it, is uncertain. Tell the user; do not repeat either."}
}

// unfinished says that a call of the step has no result yet.
func (t *turn) unfinished() bool {
	for _, r := range t.st.Acting.Results {
		if r == nil {
			return true
		}
	}
	return false
}

func runnable(c agent.Call) bool {
	return c.Trouble == "" && (c.Verdict.Decision == agent.DecisionAllow || c.Verdict.Decision == agent.DecisionAsk)
}

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
func (t *turn) record() {
	ran := false
	for i, c := range t.st.Acting.Calls {
		r := agent.ToolResult{State: agent.StateCancelled, Text: "not run: the turn has ended"}
		if got := t.st.Acting.Results[i]; got != nil {
			r = *got
		}
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
