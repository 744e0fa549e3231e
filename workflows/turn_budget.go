package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// Bounds of what is added up: beyond them a sum would wrap around.
const (
	enough  = 1 << 40 // more than any turn can use
	maxTime = agent.Duration(10 * 365 * 24 * time.Hour)
)

// grown adds what was used or granted to b. Nothing is ever taken away.
func grown(b, by agent.Budget) agent.Budget {
	return agent.Budget{
		Steps: more(b.Steps, by.Steps, enough), Tokens: more(b.Tokens, by.Tokens, enough), Micros: more(b.Micros, by.Micros, enough),
		Effects: more(b.Effects, by.Effects, enough), Time: more(b.Time, by.Time, maxTime),
	}
}

func more[N int | int64 | agent.Duration](have, by, most N) N {
	return min(have+min(max(by, 0), most), most)
}

// onExtend adds what was granted.
func (t *turn) onExtend(x agent.Extend) { t.st.Extra = grown(t.st.Extra, x.Budget()) }

// spent is what the turn has used so far.
func (t *turn) spent() agent.Budget {
	return agent.Budget{
		Steps: t.st.Step, Tokens: t.st.Usage.Tokens(), Micros: t.st.Usage.Micros, Effects: t.st.Spent.Effects,
		Time: t.worked(),
	}
}

// worked is how long the turn has worked: not what it has waited for people.
func (t *turn) worked() agent.Duration {
	if t.st.Started.IsZero() {
		return 0
	}
	waited, now := t.st.Waited, workflow.Now(t.root)
	if !t.st.WaitingSince.IsZero() {
		waited += agent.Duration(now.Sub(t.st.WaitingSince))
	}
	return max(agent.Duration(now.Sub(t.st.Started))-waited, 0)
}

// usedUp says which limit leaves no room for another step, or, with effects above 0, for an effect that would be
// the turn's effects-th; "" if none does. What is about to be used is reserved: a step begins only while there is
// something left, so that it overshoots by itself at most.
func (t *turn) usedUp(effects int) string {
	l, x := t.st.Open.Limits, t.st.Extra
	turn := agent.Budget{Steps: l.Steps, Tokens: l.Tokens, Micros: l.Micros}
	if t.change < authority {
		return exhausted(turn, x, t.spent(), 0, "")
	}
	turn.Effects, turn.Time = l.Effects, l.Time
	if used := exhausted(turn, x, t.spent(), effects, ""); used != "" || l.Session == nil {
		return used
	}
	all := t.in.Spent.Add(t.spent())
	if effects > 0 {
		effects += t.in.Spent.Effects
	}
	return exhausted(*l.Session, x.Add(t.in.Granted), all, effects, " of the session")
}

func exhausted(limit, extra, spent agent.Budget, effects int, of string) string {
	switch {
	case effects > 0:
		if limit.Effects > 0 && effects > limit.Effects+extra.Effects {
			return fmt.Sprintf("%d of %d effects%s", effects-1, limit.Effects+extra.Effects, of)
		}
		return ""
	case limit.Steps > 0 && spent.Steps >= limit.Steps+extra.Steps:
		return fmt.Sprintf("%d of %d steps%s", spent.Steps, limit.Steps+extra.Steps, of)
	case limit.Tokens > 0 && spent.Tokens >= limit.Tokens+extra.Tokens:
		return fmt.Sprintf("%d of %d tokens%s", spent.Tokens, limit.Tokens+extra.Tokens, of)
	case limit.Micros > 0 && spent.Micros >= limit.Micros+extra.Micros:
		return fmt.Sprintf("%.6f of %.6f in cost%s", float64(spent.Micros)/1e6, float64(limit.Micros+extra.Micros)/1e6, of)
	case limit.Time > 0 && spent.Time >= limit.Time+extra.Time:
		return fmt.Sprintf("%s of %s of work%s", spent.Time.Std().Round(time.Second), (limit.Time + extra.Time).Std(), of)
	}
	return ""
}

// awaitMore waits for a person to extend the limits until left says that nothing is used up, or the deadline. It
// returns nil when the turn may go on.
func (t *turn) awaitMore(left func() string) *end {
	used := left()
	if t.st.Deadline.IsZero() {
		t.st.Deadline = workflow.Now(t.root).Add(t.st.Open.Limits.Wait.Std())
	}
	t.waiting = fmt.Sprintf("more than %s: run holdfast extend %s%s, or send the signal extend", used, t.in.Session, t.extensions())
	t.beginWait()
	timerCtx, stop := workflow.WithCancel(t.root)
	defer stop()
	timer := workflow.NewTimerWithOptions(timerCtx, max(t.st.Deadline.Sub(workflow.Now(t.root)), 0),
		workflow.TimerOptions{Summary: "wait for extend"})
	expired, renew := t.awaitExtend(timer, func() bool { return left() == "" })
	switch {
	case renew:
		return &end{renew: true}
	case t.ctx.Err() != nil:
		return nil // the next step says so
	case expired && left() != "":
		return t.exhaustedEnd(used)
	}
	t.waiting, t.st.Deadline = "", time.Time{}
	t.endWait()
	return nil
}

// extensions names what can be granted.
func (t *turn) extensions() string {
	if t.change < authority {
		return " with --steps, --tokens or --cost"
	}
	return " with --steps, --tokens, --cost, --effects or --time"
}

func (t *turn) exhaustedEnd(used string) *end {
	if t.change < authority {
		return failed(agent.Reason{Type: agent.ErrLimit, Message: "used up " + used + " and nobody extended it in time"})
	}
	r := agent.Reason{Type: agent.ErrBudget, Message: "used up " + used + " and nobody extended it in time"}
	return &end{status: agent.StatusBudget, reason: &r}
}

// awaitExtend receives what is granted until enough says so or the timer has fired. Renew says that the run is to be
// continued as new first.
func (t *turn) awaitExtend(timer workflow.Future, enough func() bool) (expired, renew bool) {
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
	sel.AddFuture(timer, func(workflow.Future) { expired = true })
	for t.ctx.Err() == nil && !expired && !enough() {
		sel.Select(t.root)
		if workflow.GetInfo(t.root).GetContinueAsNewSuggested() && !enough() && !expired && t.ctx.Err() == nil {
			return false, true
		}
	}
	return expired, false
}

func (t *turn) beginWait() {
	if t.change < authority {
		t.setStatus(agent.StatusWaiting)
		return
	}
	t.waits(+1)
}

func (t *turn) endWait() {
	if t.change < authority {
		t.setStatus(agent.StatusRunning)
		return
	}
	t.waits(-1)
}
