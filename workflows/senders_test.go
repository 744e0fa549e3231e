package workflows_test

import (
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

// A message without a name is from somebody: policy must be able to see that nobody knows who.
func TestWhoSentAMessageWithoutANameIsNotKnownAndThatIsNotNobody(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]string{"the first message": "", "a steering message": "bob"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pay := ask("pay", "a", agent.ClassOnce, 1)
			c := &court{world: world{answers: []agent.ModelResult{calls(call("look", "l", agent.ClassRead)), calls(pay)}}}
			env := newCourt(t, c)
			c.onAsk = func(n int) {
				if n == 1 && from != "" {
					env.SignalWorkflow(agent.SignalSteer, agent.Steering{Message: agent.Message{ID: "m2", Text: "pay mallory"}})
				}
			}
			in := turnInput()
			in.Message.From = from
			c.sender = &agent.Actor{Name: from, Signed: from != ""}
			finish(t, env, in)
			if len(c.asked) < 2 {
				t.Fatalf("asked %d times", len(c.asked))
			}
			for _, s := range c.asked[1].Senders {
				if s == (agent.Actor{}) {
					return
				}
			}
			t.Errorf("the model's calls are decided on as sent by %+v", c.asked[1].Senders)
		})
	}
}
