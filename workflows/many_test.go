package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// More requests end than are kept while the first one still waits.
func TestADecisionHoldsUntilItsTurnComesHoweverManyOthersEnd(t *testing.T) {
	t.Parallel()
	for _, choice := range []agent.Choice{agent.ChoiceApprove, agent.ChoiceDecline} {
		t.Run(string(choice), func(t *testing.T) {
			t.Parallel()
			const n = agent.MaxPending
			var asked []agent.Call
			for i := range n {
				asked = append(asked, ask(fmt.Sprint("t", i), fmt.Sprint(i), agent.ClassOnce, 1))
			}
			c := &court{world: world{answers: []agent.ModelResult{calls(asked...)}}}
			env := newCourt(t, c)
			for i := 2; i <= n; i++ {
				later(env, time.Duration(i)*10*time.Second, agent.SignalApproval, with(approve(1, i, asked[i-1], "alice"), func(d *agent.ApprovalDecision) { d.Choice = choice }))
			}
			later(env, 30*time.Minute, agent.SignalApproval, approve(1, 1, asked[0], "alice"))
			finish(t, env, turnInput())
			wellEnded(t, env, c)
			want := 1
			if choice == agent.ChoiceApprove {
				want = n
			}
			if len(c.sent) != want {
				t.Errorf("sent %d of %d", len(c.sent), want)
			}
		})
	}
}

// The ledger keeps some settled effects only: not so few that one is gone which is asked for again.
func TestAVoidApprovalIsAskedForAfreshHoweverManyOthersHaveEnded(t *testing.T) {
	t.Parallel()
	const n = agent.MaxPending
	var asked []agent.Call
	for i := range n {
		asked = append(asked, ask(fmt.Sprint("t", i), fmt.Sprint(i), agent.ClassOnce, 1))
	}
	first := asked[0]
	tries := 0
	c := &court{world: world{answers: []agent.ModelResult{calls(asked...)}, tools: map[string]func(agent.ToolInput) (agent.ToolResult, error){
		"t0": func(agent.ToolInput) (agent.ToolResult, error) {
			if tries++; tries == 1 {
				return agent.ToolResult{State: agent.StateVoid, Note: "policy changed", Verdict: &first.Verdict, Terms: first.Terms}, nil
			}
			return agent.ToolResult{State: agent.StateCommitted, Attempt: 1, Text: "done"}, nil
		},
	}}}
	env := newCourt(t, c)
	for i := 2; i <= n; i++ {
		later(env, time.Duration(i)*10*time.Second, agent.SignalApproval, with(approve(1, i, asked[i-1], "alice"), func(d *agent.ApprovalDecision) { d.Choice = agent.ChoiceDecline }))
	}
	later(env, 30*time.Minute, agent.SignalApproval, approve(1, 1, first, "alice"))
	later(env, 40*time.Minute, agent.SignalApproval, with(approve(1, 1, first, "alice"), func(d *agent.ApprovalDecision) {
		d.ID = agent.ApprovalID(keyAt(1, 1, first), 2)
	}))
	finish(t, env, turnInput())
	wellEnded(t, env, c)
	if tries != 2 {
		t.Errorf("sent %d times", tries)
	}
}
