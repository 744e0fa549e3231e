package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// What a run carries along and ends with is bounded, whatever its signals say.
func TestLongWordsOfACancelAreCut(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalCancel, agent.Cancel{From: strings.Repeat("é", 1<<19), Reason: strings.Repeat("ü", 1<<19)})
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusCancelled || len(res.Reason.Message) > 4<<10 || !strings.Contains(res.Reason.Message, "éé") || !strings.Contains(res.Reason.Message, "üü") {
		t.Errorf("status %s, a reason of %d bytes", res.Status, len(res.Reason.Message))
	}
}
