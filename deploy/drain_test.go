package deploy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestWhatHoldsABuildIsToldByItsAttributes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := map[string]any{
		agent.AttributeAgent: "support", agent.AttributeStatus: "waiting", agent.AttributeAttention: agent.AttentionApproval,
		agent.AttributeApprovals: 2, agent.AttributeExpires: at, agent.AttributeUncertain: 1,
	}
	for _, test := range []struct {
		kind, id string
		with     map[string]any
		want     Held
	}{
		{agent.WorkflowTurn, "s:turn-3", all, Held{
			Session: "s", Turn: 3, Agent: "support", Status: "waiting", Attention: agent.AttentionApproval, Approvals: 2, Expires: at, Uncertain: 1,
		}},
		{agent.WorkflowTurn, "s:turn-3-undo-1", nil, Held{Session: "s", Turn: 3}},
		{agent.WorkflowTurn, "by hand", nil, Held{}},
		{agent.WorkflowSession, "s", map[string]any{agent.AttributeAgent: 7, agent.AttributeApprovals: "x"}, Held{Session: "s"}},
		{"Other", "o", nil, Held{}},
	} {
		test.want.Workflow, test.want.Run, test.want.Type = test.id, "run-"+test.id, test.kind
		if diff := cmp.Diff(test.want, held(run(t, test.kind, test.id, test.with))); diff != "" {
			t.Errorf("%s: %s", test.id, diff)
		}
	}
}

func TestAReasonIsToldOnceAndTriedAgainOnlyIfItMayGo(t *testing.T) {
	t.Parallel()
	told := 0
	w := &drain{left: map[string]Left{}, o: DrainOptions{Each: func(DrainEvent) { told++ }}}
	r := run(t, agent.WorkflowTurn, "s:turn-1", nil)
	busy, replay := left(r, LeftBusy, ErrNotReplayed), left(r, LeftReplay, &BusyBuildError{})
	w.leave(busy)
	w.leave(busy)
	w.leave(replay)
	w.leave(replay)
	if told != 2 || w.left[busy.Run].Kind != LeftReplay {
		t.Errorf("told %d times, left as %+v", told, w.left)
	}
	for l, again := range map[*Left]bool{
		&busy: true, &replay: false,
		{Kind: LeftReplay, err: ErrNotReplayed}: true,
		{Kind: LeftFailed}:                      true,
		{Kind: LeftPinned}:                      false,
	} {
		if l.again() != again {
			t.Errorf("%+v: again %v", l, l.again())
		}
	}
}
