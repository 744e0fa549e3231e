package workflows_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// sequences is how many random lives of a turn are played; HOLDFAST_SEQUENCES sets another number, and
// HOLDFAST_SEED plays one of them again.
const sequences = 2000

// A chance is one random life of a turn: what the model asks for, what the tools say, what people send and when,
// and when a run continues as new.
type chance struct {
	*rand.Rand
	t    *testing.T
	c    *court
	seed uint64

	asked map[string]agent.Call // the calls by key, of effects and of reads
	ends  map[string]agent.ToolResult
	seen  map[string]agent.State // the last state that a query showed
	sent  map[string]int
}

// TestNothingRunsWithoutAuthorityAndNothingTwice plays random lives and holds what must be true of all of them: no
// effect is sent without a recorded verdict or approval of exactly it, none twice under a key, an end never
// changes, every request has one outcome, and the turn ends.
func TestNothingRunsWithoutAuthorityAndNothingTwice(t *testing.T) {
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_SEED"), 10, 64); err == nil {
		play(t, seed)
		return
	}
	n := sequences
	if v, err := strconv.Atoi(os.Getenv("HOLDFAST_SEQUENCES")); err == nil {
		n = v
	}
	if testing.Short() {
		n = 200
	}
	for seed := range n {
		play(t, uint64(seed))
		if t.Failed() {
			t.Fatalf("seed %d; play it again with HOLDFAST_SEED=%d", seed, seed)
		}
	}
}

func play(t *testing.T, seed uint64) {
	x := &chance{
		Rand: rand.New(rand.NewPCG(seed, 1)), t: t, seed: seed, c: &court{}, asked: map[string]agent.Call{},
		ends: map[string]agent.ToolResult{}, seen: map[string]agent.State{}, sent: map[string]int{},
	}
	x.script()
	in := turnInput()
	for run := 0; run < 20; run++ {
		env := newCourt(t, x.c)
		x.disturb(env, run)
		env.ExecuteWorkflow(agent.WorkflowTurn, in)
		next, renewed := continuedAs(env.GetWorkflowError())
		if !renewed {
			x.ended(env)
			return
		}
		in = next
	}
	t.Errorf("the turn did not end in 20 runs")
}

// script makes up what the model asks for.
func (x *chance) script() {
	x.c.limits = agent.Limits{Wait: agent.Duration(time.Duration(x.IntN(3)) * time.Hour), Faults: 4, Effects: x.IntN(6)}
	x.c.tools = map[string]func(agent.ToolInput) (agent.ToolResult, error){}
	x.c.say = agent.SettleResult{Why: "still not known"}
	for step := 1; step <= 1+x.IntN(3); step++ {
		var asked []agent.Call
		for n := 1; n <= 1+x.IntN(4); n++ {
			c := x.call(step, n)
			asked = append(asked, c)
			x.asked[keyAt(step, n, c)] = c
			x.c.tools[c.Tool] = x.tool
		}
		x.c.answers = append(x.c.answers, calls(asked...))
	}
	if x.IntN(4) == 0 {
		x.c.answers = append(x.c.answers, agent.ModelResult{Finish: agent.FinishRefusal, Text: "no"})
		x.c.plan = agent.PlanResult{Then: agent.UnwindKeep}
	}
}

func (x *chance) call(step, n int) agent.Call {
	class := []agent.Class{agent.ClassRead, agent.ClassOnce, agent.ClassIdempotent, agent.ClassReconcilable}[x.IntN(4)]
	tool, intent := fmt.Sprintf("t%d-%d", step, n), fmt.Sprint(x.IntN(5))
	switch x.IntN(4) {
	case 0:
		return ask(tool, intent, class, 1+x.IntN(2))
	case 1:
		c := call(tool, intent, class)
		c.Verdict.Decision = agent.DecisionDeny
		return c
	}
	return call(tool, intent, class)
}

// tool answers for every tool, and holds what must be true when something is sent.
func (x *chance) tool(in agent.ToolInput) (agent.ToolResult, error) {
	key := in.Key()
	c, known := x.asked[key]
	edited := in.Grant != nil && in.Grant.Proposed != ""
	switch {
	case !known && !edited:
		x.t.Errorf("%s was sent and never asked for", key)
	case in.Grant == nil && c.Verdict.Decision != agent.DecisionAllow:
		x.t.Errorf("%s was sent, its verdict is %s and nobody approved it", key, c.Verdict.Decision)
	case in.Grant != nil:
		x.granted(in)
	}
	x.sent[key]++
	if _, done := x.ends[key]; done && in.Class != agent.ClassRead {
		x.t.Errorf("%s was sent again after it had an outcome", key)
	}
	res, err := x.outcome(in)
	if err == nil && res.State != agent.StateVoid {
		x.ends[key] = res
	}
	return res, err
}

// granted holds an approval against what was decided.
func (x *chance) granted(in agent.ToolInput) {
	people := map[string]bool{}
	for _, d := range in.Grant.Decisions {
		people[d.Approver] = true
		if d.Choice != agent.ChoiceApprove || d.Digest != in.Action && (d.Args == "" || d.Args != in.Args) {
			x.t.Errorf("%s was sent by the decision %+v", in.Key(), d.ApprovalDecision)
		}
	}
	if in.Grant.Action != in.Action || len(people) < in.Grant.Terms.Quorum {
		x.t.Errorf("%s was sent by the grant %+v", in.Key(), in.Grant)
	}
}

func (x *chance) outcome(in agent.ToolInput) (agent.ToolResult, error) {
	res := agent.ToolResult{State: agent.StateCommitted, Attempt: 1, Text: "done"}
	switch x.IntN(8) {
	case 0:
		res.State = agent.StateFailed
	case 1:
		res.State, res.Hold = agent.StateUncertain, x.IntN(2) == 0
	case 2:
		c := ask(in.Tool, "", in.Class, 1)
		res = agent.ToolResult{State: agent.StateVoid, Note: "policy changed", Verdict: &c.Verdict, Terms: c.Terms}
	case 3:
		res = agent.ToolResult{State: agent.StateDenied, Note: "policy says no"}
	case 4:
		return res, temporal.NewNonRetryableApplicationError("the worker died", "x", nil)
	}
	return res, nil
}

// disturb sends signals at random times, looks at random times, and lets the run continue as new at one.
func (x *chance) disturb(env *testsuite.TestWorkflowEnvironment, run int) {
	for range x.IntN(12) {
		at := time.Duration(1+x.IntN(200)) * time.Minute
		env.RegisterDelayedCallback(func() { x.signal(env) }, at)
	}
	for range 3 {
		env.RegisterDelayedCallback(func() { x.look(env) }, time.Duration(1+x.IntN(300))*time.Minute)
	}
	if run < 5 && x.IntN(3) == 0 {
		env.RegisterDelayedCallback(func() {
			env.SetContinueAsNewSuggested(true)
			env.SignalWorkflow(agent.SignalApproval, "wake up")
		}, time.Duration(1+x.IntN(120))*time.Minute)
	}
	if x.IntN(6) == 0 {
		later(env, time.Duration(1+x.IntN(200))*time.Minute, agent.SignalCancel, agent.Cancel{})
	}
}

func (x *chance) signal(env *testsuite.TestWorkflowEnvironment) {
	switch x.IntN(5) {
	case 0:
		env.SignalWorkflow(agent.SignalSettle, x.settlement(env))
	case 1:
		env.SignalWorkflow(agent.SignalExtend, agent.Extend{Effects: x.IntN(3)})
	default:
		env.SignalWorkflow(agent.SignalApproval, x.decision(env))
	}
}

// decision is one on a request that waits, right or wrong in some field.
func (x *chance) decision(env *testsuite.TestWorkflowEnvironment) agent.ApprovalDecision {
	d := agent.ApprovalDecision{ID: "s~0123abcd:turn-1/1.1/none#1", Digest: agent.DigestOf(nil), Choice: agent.ChoiceApprove}
	d.Approver = []string{"alice", "bob", "carol"}[x.IntN(3)]
	if a := view[agent.ApprovalsView](x.t, env, agent.QueryApprovals).Approvals; len(a) > 0 {
		request := a[x.IntN(len(a))]
		d.ID, d.Digest = request.ID, request.Action
	}
	switch x.IntN(10) {
	case 0:
		d.Choice = agent.ChoiceDecline
	case 1:
		d.Choice = agent.ChoiceCancel
	case 2:
		d.Digest = agent.DigestOf([]byte("other"))
	case 3:
		d.Reason = "no right"
	case 4:
		d.Args = fmt.Sprintf(`{"edit":%d}`, x.IntN(1000))
	}
	return d
}

func (x *chance) settlement(env *testsuite.TestWorkflowEnvironment) agent.Settlement {
	s := agent.Settlement{Key: "none"}
	if all := view[agent.EffectsView](x.t, env, agent.QueryEffects).Effects; len(all) > 0 {
		s.Key = all[x.IntN(len(all))].Key
	}
	if x.IntN(2) == 0 {
		s.Outcome, s.Evidence, s.Approver = []agent.State{agent.StateCommitted, agent.StateFailed}[x.IntN(2)], "seen", "alice"
	}
	return s
}

// look holds the states that a query shows against those that one showed before.
func (x *chance) look(env *testsuite.TestWorkflowEnvironment) {
	for _, e := range view[agent.EffectsView](x.t, env, agent.QueryEffects).Effects {
		x.state(e)
	}
}

func (x *chance) state(e agent.Effect) {
	before, known := x.seen[e.Key]
	if known && before != e.State && !effect.Open(before) && before != agent.StateVoid {
		x.t.Errorf("%s was shown as %s and is %s", e.Key, before, e.State)
	}
	x.seen[e.Key] = e.State
	for i := 1; i < len(e.Trail); i++ {
		if !effect.Can(e.Trail[i-1].State, e.Trail[i].State) {
			x.t.Errorf("%s went from %s to %s", e.Key, e.Trail[i-1].State, e.Trail[i].State)
		}
	}
}

// ended holds what must be true of a turn that is over.
func (x *chance) ended(env *testsuite.TestWorkflowEnvironment) {
	if !env.IsWorkflowCompleted() || len(x.c.closed) != 1 {
		x.t.Fatalf("seed %d: not completed, or closed %d times: %+v", x.seed, len(x.c.closed), env.GetWorkflowError())
	}
	end := x.c.closed[0]
	ids := map[string]bool{}
	for _, a := range end.Approvals {
		if ids[a.ID] || a.Outcome == agent.OutcomePending || a.Outcome == "" {
			x.t.Errorf("request %s is there twice or has no outcome: %q", a.ID, a.Outcome)
		}
		ids[a.ID] = true
	}
	for _, e := range end.Ledger {
		x.state(e)
		if effect.Open(e.State) && e.State != agent.StateUncertain {
			x.t.Errorf("%s is still %s", e.Key, e.State)
		}
		if e.State == agent.StateCommitted && x.sent[e.Key] == 0 {
			x.t.Errorf("%s is committed and was never sent", e.Key)
		}
	}
}
