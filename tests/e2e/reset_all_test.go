package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// twoReadsTwoEffects is what the turn of the next test does: two reads at once, then one effect that policy allows and one
// that a person has to approve.
const twoReadsTwoEffects = `lookup_order {"id":"42"}; lookup_order {"id":"43"}
refund {"order":"42","amount":"19.90"}; refund {"order":"43","amount":"29.90"}`

// TestAResetToAnyTaskRepeatsNothing resets a turn to every end of a workflow task: while it waits for its approval, and
// when it is over, when the decision is reapplied ahead of the request that it answers. Nothing is paid for twice, not
// at the model and not at the bank, and nobody is asked again.
func TestAResetToAnyTaskRepeatsNothing(t *testing.T) {
	t.Parallel()
	alice := newPerson(t, "alice")
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders},
		policy: `{rules: [{name: large, when: 'tool == "refund" && args.amount == "29.90"', then: ask, approval: {by: [alice]}}, ` +
			`{name: everything, then: allow}], duplicates: deny, ` + approvers(alice) + "}",
	})
	r.worker("")
	r.start("s", twoReadsTwoEffects)
	id := agent.TurnID(r.prefix+"s", 1)
	r.ask("s", 1, agent.OutcomePending)
	r.books("19.90") // it does not wait for the other
	for run, tasks := r.run(id), r.taskEnds(id, r.run(id)); len(tasks) > 0; tasks = tasks[1:] {
		r.reset(id, run, tasks[0])
		r.ask("s", 1, agent.OutcomePending)
		r.books("19.90")
		r.paid(2)
	}
	scope, a := r.ask("s", 1, agent.OutcomePending)
	r.signal("s", 1, agent.SignalApproval, alice.says(t, scope, a, agent.ChoiceApprove))
	r.done("s")

	run := r.run(id)
	tasks := r.taskEnds(id, run)
	if len(tasks) < 6 {
		t.Fatalf("the turn has %d ends of tasks", len(tasks))
	}
	for _, task := range tasks {
		r.reset(id, run, task)
		r.done("s")
		if all := r.ledger("s", 1); len(all) != 2 || all[0].State != agent.StateCommitted || all[1].State != agent.StateCommitted || all[0].Conflict+all[1].Conflict != "" {
			t.Errorf("reset to event %d: ledger %+v", task, all)
		}
	}
}

// done waits for the end of a turn that has done both effects, each with one request to the bank and one answer of the
// model for each step.
func (r *rig) done(session string) {
	r.t.Helper()
	if res := r.ended(session, 1); res.Status != agent.StatusDone {
		r.t.Fatalf("ended as %s: %+v", res.Status, res.Reason)
	}
	r.books("19.90", "29.90")
	r.paid(3)
}

// books holds the bank's books to these amounts, in this order, with one request for each.
func (r *rig) books(want ...string) {
	r.t.Helper()
	var got []string
	r.eventually("the bank has made "+strings.Join(want, ", "), func() bool {
		got = nil
		for _, e := range r.pay.Books().Entries {
			got = append(got, e.Amount.String())
		}
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatal(diff)
	}
	for key, n := range r.pay.Books().Requests {
		if n != 1 {
			r.t.Errorf("%d requests with key %s", n, key)
		}
	}
}

func (r *rig) paid(answers int) {
	r.t.Helper()
	if n := r.model.Charges().Answers; n != answers {
		r.t.Fatalf("%d answers of the model were paid for, want %d", n, answers)
	}
}
