package starter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-run/holdfast/agent"
)

func TestTheTurnsWordOnADecisionIsFoundByItsRefAlone(t *testing.T) {
	t.Parallel()
	const id, ref = "k#1", "REF"
	decided := func(ref, who string) agent.Decided {
		return agent.Decided{ApprovalDecision: agent.ApprovalDecision{ID: id, Choice: agent.ChoiceApprove, Approver: who, Ref: ref}, Claimed: true}
	}
	request := func(id string, o agent.Outcome, quorum int, d ...agent.Decided) agent.Approval {
		return agent.Approval{ApprovalRequest: agent.ApprovalRequest{ID: id, Terms: agent.Terms{Quorum: quorum}}, Outcome: o, Decisions: d}
	}
	for name, c := range map[string]struct {
		view agent.ApprovalsView
		want decisionWord
	}{
		"nothing yet": {
			agent.ApprovalsView{Approvals: []agent.Approval{request(id, agent.OutcomePending, 1)}},
			decisionWord{Result: wordUnanswered},
		},
		"somebody else's decision": {
			agent.ApprovalsView{
				Approvals: []agent.Approval{request(id, agent.OutcomeApproved, 1, decided("OTHER", "me"))},
				Refused:   []agent.Refusal{{ID: id, Ref: "OTHER2", Why: "no"}, {ID: id, Why: "none"}},
			},
			decisionWord{Result: wordUnanswered},
		},
		"refused": {
			agent.ApprovalsView{Approvals: []agent.Approval{request(id, agent.OutcomePending, 1)}, Refused: []agent.Refusal{{ID: id, Ref: ref, Why: "late"}}},
			decisionWord{Result: wordRefused, Why: "late"},
		},
		"the list of refusals is full": {
			agent.ApprovalsView{More: 1},
			decisionWord{Result: wordUnanswered, full: true},
		},
		"the last of a quorum": {
			agent.ApprovalsView{Approvals: []agent.Approval{request(id, agent.OutcomeApproved, 2, decided("OTHER", "you"), decided(ref, "me"))}},
			decisionWord{Result: wordAccepted, Outcome: agent.OutcomeApproved, Approvals: 2, Quorum: 2, Claimed: true},
		},
		"edited": {
			agent.ApprovalsView{Approvals: []agent.Approval{request("k2#1", agent.OutcomePending, 2, decided(ref, "me")), request(id, agent.OutcomeSuperseded, 2)}},
			decisionWord{Result: wordAccepted, Outcome: agent.OutcomePending, Approvals: 1, Quorum: 2, Claimed: true, Successor: "k2#1"},
		},
	} {
		w := decisionWord{ID: id, Ref: ref, Result: wordUnanswered}
		heard := w.hear(c.view)
		c.want.ID, c.want.Ref = id, ref
		if diff := cmp.Diff(c.want, w, cmp.AllowUnexported(decisionWord{})); diff != "" || heard != (w.Result != wordUnanswered) {
			t.Errorf("%s: heard %v, %s", name, heard, diff)
		}
	}
}

func TestAKeyMeansItsLatestAskAndAPlaceWhatWaitsThere(t *testing.T) {
	t.Parallel()
	const key, other = "s~1a2b3c4d:turn-1/1.1/0123456789abcdef", "s~1a2b3c4d:turn-1/1.2/0123456789abcdef"
	request := func(key string, ask int, o agent.Outcome) agent.Approval {
		return agent.Approval{ApprovalRequest: agent.ApprovalRequest{ID: agent.ApprovalID(key, ask), Key: key, Ask: ask}, Outcome: o}
	}
	v := agent.ApprovalsView{
		Approvals: []agent.Approval{request(key, 2, agent.OutcomePending), request(other, 1, agent.OutcomeDeclined), request(key, 1, agent.OutcomeVoid)},
		Refused:   []agent.Refusal{{ID: key + "#2", Why: "a"}, {ID: other + "#1", Why: "b"}},
	}
	for in, want := range map[string][]string{
		"s": {key + "#2"}, "s/turn-1": {key + "#2"}, key: {key + "#2"}, key + "#1": {key + "#1"}, key + "#3": nil, other: {other + "#1"}, key + "/undo-1": nil,
	} {
		r, err := parseApproval(in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.among("s:turn-1", v) {
			got = append(got, f.ID)
			for _, x := range f.refused {
				if x.ID != f.ID {
					t.Errorf("%s has the refusal of %s", f.ID, x.ID)
				}
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestWhoSpeaksIsTheFlagsThenTheEnvironments(t *testing.T) {
	t.Setenv("HOLDFAST_APPROVER", "bob")
	if got := (&signFlags{as: "alice"}).approver(); got != "alice" {
		t.Errorf("with --as: %q", got)
	}
	if got := (&signFlags{}).approver(); got != "bob" {
		t.Errorf("without: %q", got)
	}
	t.Setenv("HOLDFAST_APPROVER", "")
	if got := (&signFlags{}).approver(); got != claimed() {
		t.Errorf("without either: %q", got)
	}
}
