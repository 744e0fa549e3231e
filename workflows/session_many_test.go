package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
)

// A session takes no more messages with that many effects to look at, and one turn may have left several more: they
// must be settled to come out of it.
func TestASessionSettlesHoweverManyEffectsAreLeft(t *testing.T) {
	t.Parallel()
	for _, state := range []agent.State{agent.StateUncertain, agent.StateCompensationFailed} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			const n = agent.MaxUnresolved + 5
			key := func(i int) string { return fmt.Sprintf("s~00000000:turn-1/1.%d/0123456789abcdef", i) }
			c := &court{}
			var left []agent.Effect
			for i := 1; i <= n; i++ {
				left = append(left, agent.Effect{Key: key(i), Tool: "pay", Class: agent.ClassOnce, State: state, Attempt: 1})
			}
			left[3].State = agent.StateUncertain
			left[n-1] = agent.Effect{Key: agent.UndoKey(key(1), 1), Undoes: key(1), Tool: "undo", Class: agent.ClassOnce, State: agent.StateUncertain, Attempt: 1}
			left[0].State = agent.StateCompensationFailed
			env := newCourt(t, c)
			env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "s", TaskQueue: agent.TaskQueue})
			for i, k := range []string{left[3].Key, left[n-1].Key} {
				later(env, time.Duration(i+1)*time.Hour, agent.SignalSettle, agent.Settlement{
					Key: k, Outcome: agent.StateCommitted, Evidence: "seen", Approver: "alice",
				})
			}
			closeAfter(env, agent.Close{AcceptUncertain: true}, 3*time.Hour)
			env.ExecuteWorkflow(agent.WorkflowSession, agent.SessionInput{Agent: "helper", Checkpoint: sealed(t, map[string]any{
				"turns": 1, "unresolved": left, "store": "store-1",
			})})
			var res agent.SessionResult
			if err := env.GetWorkflowResult(&res); err != nil {
				t.Fatal(err)
			}
			// The two that were settled, and what the second one undid.
			if len(res.Unresolved) != n-3 {
				t.Errorf("%d of %d are left", len(res.Unresolved), n)
			}
		})
	}
}
