package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// undoable is a rig whose refunds can be taken back, with a policy that does so when a turn is cancelled. The model
// refunds three times, the third of which waits for an approval that never comes.
func undoable(t *testing.T, policy string) (*rig, *payments.Service) {
	t.Helper()
	pay, url := serve(t, payments.Config{})
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders}, tools: "[pay, wipe]", policy: policy,
		toolsYML: fmt.Sprintf(`  pay:
    description: Refunds an order.
    effect: idempotent
    timeout: 2s
    compensate: {tool: take_back, args: {refund: result.refund}}
    parameters: {type: object, properties: {order: {type: string}, amount: {type: string}}, required: [order, amount]}
    http: {url: "%s/refunds"}
  take_back:
    description: Takes a refund back.
    effect: idempotent
    timeout: 2s
    parameters: {type: object, properties: {refund: {type: string}}, required: [refund]}
    http: {url: "%s/refunds/{refund}/void"}
  wipe:
    description: Refunds for good.
    effect: idempotent
    irreversible: true
    timeout: 2s
    parameters: {type: object, properties: {order: {type: string}, amount: {type: string}}, required: [order, amount]}
    http: {url: "%s/refunds"}
`, url, url, url),
	})
	return r, pay
}

const threeRefunds = `pay {"order":"42","amount":"1.00"}
wipe {"order":"43","amount":"2.00"}
pay {"order":"43","amount":"3.00"}
pay {"order":"42","amount":"9.00"}`

// voids returns the refunds that were taken back, in the order in which that was done.
func voids(pay *payments.Service) (out []string) {
	for _, e := range pay.Books().Entries {
		if e.Voids != "" {
			out = append(out, e.Voids)
		}
	}
	return out
}

// states returns each effect of a turn as "amount state".
func (r *rig) states(session string, turn int) (out []string) {
	r.t.Helper()
	for _, e := range r.ledger(session, turn) {
		out = append(out, e.Tool+" "+string(e.State))
	}
	return out
}

// TestACancelledTurnIsUndoneInReverseOrderAlsoByAWorkerThatComesLater cancels by the command. In the second case the
// worker dies after the first refund was taken back on the service, and before anybody knows.
func TestACancelledTurnIsUndoneInReverseOrderAlsoByAWorkerThatComesLater(t *testing.T) {
	t.Parallel()
	for name, point := range map[string]string{
		"undisturbed": "", "killed in a compensation": failpoint.UndoAfterCommit + ":1=kill",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, pay := undoable(t, `{rules: [{name: large, when: 'has(args.amount) && args.amount == "9.00"', then: ask}, {name: rest, then: allow}], on_failure: compensate}`)
			first := r.worker(point)
			r.start("s", threeRefunds)
			r.ask("s", 1, agent.OutcomePending)
			if _, stderr, exit := r.holdfast("cancel", r.prefix+"s", "--reason", "wrong customer"); exit != 0 && exit != 5 {
				t.Errorf("cancel: exit %d: %s", exit, stderr)
			}
			if point != "" {
				r.died(first)
				r.worker("")
			}
			if res := r.ended("s", 1); res.Status != agent.StatusCancelled {
				t.Errorf("%+v", res)
			}
			if diff := cmp.Diff([]string{"re_3", "re_1"}, voids(pay)); diff != "" {
				t.Errorf("taken back (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{
				"pay compensated", "wipe irreversible", "pay compensated", "pay cancelled", "take_back committed", "take_back committed",
			}, r.states("s", 1)); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatCouldNotBeUndoneIsShownAndTriedAgainByCommand: policy forbids one compensation, and then does not.
func TestWhatCouldNotBeUndoneIsShownAndTriedAgainByCommand(t *testing.T) {
	t.Parallel()
	r, pay := undoable(t, `{rules: [{name: not-yet, when: 'tool == "take_back" && args.refund == "re_1"', then: deny}, `+
		`{name: large, when: 'has(args.amount) && args.amount == "9.00"', then: ask}, {name: rest, then: allow}], on_failure: compensate}`)
	r.worker("")
	r.start("s", threeRefunds)
	r.ask("s", 1, agent.OutcomePending)
	r.holdfast("cancel", r.prefix+"s")
	r.ended("s", 1)
	if diff := cmp.Diff([]string{"re_3"}, voids(pay)); diff != "" {
		t.Errorf("taken back (-want +got):\n%s", diff)
	}
	all := r.ledger("s", 1)
	if e := all[0]; e.State != agent.StateCompensationFailed || !strings.Contains(e.Note, "not-yet") {
		t.Errorf("%+v", e)
	}
	if stdout, _, exit := r.holdfast("attention"); exit != 8 || !strings.Contains(stdout, r.prefix+"s") {
		t.Errorf("attention: exit %d: %s", exit, stdout)
	}
	turn := r.prefix + "s/turn-1"
	if stdout, stderr, exit := r.holdfast("compensate", turn, "--as", "olga"); exit != 4 || len(voids(pay)) != 1 {
		t.Errorf("while it is forbidden: exit %d: %s%s", exit, stdout, stderr)
	}
	r.edit("serial: 1", "serial: 2", "then: deny", "then: allow")
	r.inForce(2)
	if stdout, stderr, exit := r.holdfast("compensate", turn, "--as", "olga", "--reason", "now it may"); exit != 0 {
		t.Errorf("exit %d: %s%s", exit, stdout, stderr)
	}
	if diff := cmp.Diff([]string{"re_3", "re_1"}, voids(pay)); diff != "" {
		t.Errorf("taken back (-want +got):\n%s", diff)
	}
	// What nothing undoes stays until somebody has looked at it.
	v, err := r.view("s")
	if err != nil || len(v.Unresolved) != 1 || v.Unresolved[0].State != agent.StateIrreversible {
		t.Fatalf("unresolved %+v, %v", v.Unresolved, err)
	}
	key := v.Unresolved[0].Key
	if stdout, stderr, exit := r.holdfast("effects", "settle", key, "--outcome", "committed", "--evidence", "it is wiped", "--as", "olga"); exit != 0 {
		t.Errorf("settle: exit %d: %s%s", exit, stdout, stderr)
	}
	if v, err := r.view("s"); err != nil || len(v.Unresolved) != 0 {
		t.Errorf("unresolved %+v, %v", v.Unresolved, err)
	}
	// What is undone is not undone again.
	if stdout, stderr, exit := r.holdfast("compensate", turn, "--as", "olga"); exit != 0 || len(voids(pay)) != 2 {
		t.Errorf("again: exit %d, taken back %v: %s%s", exit, voids(pay), stdout, stderr)
	}
}
