package activities

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

func TestAClosingRecordKeepsWhatWasDecidedAndALateCompensationHasItsOwn(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		w := newWorld(t, url)
		in := agent.CloseInput{
			Scope: w.scope, Turn: 2, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone},
			Approvals: []agent.Approval{{
				ApprovalRequest: agent.ApprovalRequest{ID: "k#1", Args: `{"n":1.50}`}, Outcome: agent.OutcomeDeclined,
				Decisions: []agent.Decided{{ApprovalDecision: agent.ApprovalDecision{Approver: "alice", Reason: "no"}, At: noon}},
			}},
			Refused: []agent.Refusal{{ID: "k#1", Approver: "eve", Why: "not entitled", At: noon}},
		}
		undo := in
		undo.Undo, undo.Approvals, undo.Refused = 1, nil, nil
		first, second := mustLocal[agent.CloseResult](t, w.Close, in), mustLocal[agent.CloseResult](t, w.Close, undo)
		if first.Closing == second.Closing {
			t.Error("the compensation has the turn's record")
		}
		for m, want := range []agent.CloseInput{in, undo} {
			b, err := w.space().Closing(t.Context(), store.ClosingName(2, m))
			var c Closing
			if err != nil || json.Unmarshal(b, &c) != nil || c.Undo != m || c.Turn != 2 {
				t.Fatalf("record %d: %s, %v", m, b, err)
			}
			if diff := cmp.Diff(want.Approvals, c.Approvals) + cmp.Diff(want.Refused, c.Refused); diff != "" {
				t.Errorf("record %d differs (-want +got):\n%s", m, diff)
			}
		}
	}
}
