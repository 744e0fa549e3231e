package workflows_test

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

// A plan is made by a worker from records and by today's declarations of the tools. Whatever it says, the turn ends.
func TestAPlanThatDoesNotFitTheLedgerIsCarriedOutAsFarAsItDoes(t *testing.T) {
	t.Parallel()
	for _, state := range []agent.State{
		agent.StateCommitted, agent.StateCompensationFailed, agent.StateCompensated, agent.StateUncertain, agent.StateFailed,
		agent.StateDeclined, agent.StateIrreversible, agent.StateVoid, "odd", "",
	} {
		for _, irreversible := range []bool{false, true} {
			for name, late := range map[string]bool{"its own end": false, "by command": true} {
				t.Run(string(state)+" "+name, func(t *testing.T) {
					t.Parallel()
					pay := call("pay", "a", agent.ClassOnce)
					c := &court{world: world{answers: []agent.ModelResult{calls(pay), {Finish: agent.FinishRefusal, Text: "no"}}}}
					if state == agent.StateUncertain || state == agent.StateFailed {
						c.tools = map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) {
							return agent.ToolResult{State: state, Attempt: 1}, nil
						}}
						c.answers[0].Calls = append(c.answers[0].Calls, call("other", "b", agent.ClassOnce))
					}
					e := agent.Effect{Key: keyAt(1, 1, pay), Tool: "pay", Place: agent.Place{Turn: 1, Step: 1, Call: 1}, State: state}
					undo := agent.Undo{Effect: e, Call: call("undo", "u", agent.ClassOnce), Irreversible: irreversible}
					c.plan = agent.PlanResult{Then: agent.UnwindCompensate, Undos: []agent.Undo{undo, undo}}
					in := turnInput()
					if late {
						in.Undo = &agent.UndoInput{Turn: 1, M: 1, Command: agent.Compensate{Turn: 1, Approver: "alice"}}
					}
					env := newCourt(t, c)
					finish(t, env, in)
					wellEnded(t, env, c)
				})
			}
		}
	}
}
