package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// of returns the n-th request of a session's first turn that was ever made, when it has that outcome.
func (r *rig) ask(session string, n int, outcome agent.Outcome) (agent.Scope, agent.Approval) {
	r.t.Helper()
	var out agent.Approval
	v := r.approvals(session, 1, fmt.Sprintf("request %d is %s", n, outcome), func(v agent.ApprovalsView) bool {
		for _, a := range v.Approvals {
			if a.Ask == n && a.Outcome == outcome {
				out = a
				return true
			}
		}
		return false
	})
	return v.Scope, out
}

// TestAPolicyThatBecameStricterVoidsWhatWasApprovedAndNotSent changes the rules after the approvals were accepted
// and before authority is looked at again: the worker dies there, and the file has a higher serial when the next one
// starts. What did not become stricter goes on.
func TestAPolicyThatBecameStricterVoidsWhatWasApprovedAndNotSent(t *testing.T) {
	t.Parallel()
	alice, bob := newPerson(t, "alice"), newPerson(t, "bob")
	const rules = `{rules: [
  {name: quorum, when: 'args.amount == "1.00"', then: ask, approval: {by: [alice, bob], quorum: 1}},
  {name: right, when: 'args.amount == "2.00"', then: ask, approval: {by: [alice, bob]}},
  {name: denied, when: 'args.amount == "3.00"', then: ask, approval: {by: [alice]}},
  {name: allowed, when: 'args.amount == "4.00"', then: ask, approval: {by: [alice]}},
  {name: same, when: 'args.amount == "5.00"', then: ask, approval: {by: [alice]}},
  {name: before, when: 'args.amount == "6.00"', then: allow}], `
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders}, policy: rules + "duplicates: allow, " + approvers(alice, bob) + "}",
	})
	dying := r.worker(failpoint.ToolBeforeAdmission + "=file:" + filepath.Join(r.dir, "never"))
	amounts := map[string]string{"quorum": "1.00", "right": "2.00", "denied": "3.00", "allowed": "4.00", "same": "5.00", "before": "6.00"}
	for session, amount := range amounts {
		r.start(session, fmt.Sprintf(`refund {"order":"42","amount":%q}`, amount))
	}
	for session := range amounts {
		if session != "before" {
			scope, a := r.ask(session, 1, agent.OutcomePending)
			r.signal(session, 1, agent.SignalApproval, alice.says(t, scope, a, agent.ChoiceApprove))
		}
	}
	r.passed(failpoint.ToolBeforeAdmission, len(amounts))
	dying.kill()
	r.edit("serial: 1", "serial: 2", "quorum: 1", "quorum: 2",
		`"2.00"', then: ask, approval: {by: [alice, bob]}`, `"2.00"', then: ask, approval: {by: [bob]}`,
		`"3.00"', then: ask, approval: {by: [alice]}`, `"3.00"', then: deny`,
		`"4.00"', then: ask, approval: {by: [alice]}`, `"4.00"', then: allow`,
		`"6.00"', then: allow`, `"6.00"', then: ask`)
	r.worker("")

	for session, who := range map[string][]person{"quorum": {alice, bob}, "right": {bob}, "before": {alice}} {
		if session != "before" {
			if _, a := r.ask(session, 1, agent.OutcomeVoid); a.Note == "" || len(a.Decisions) != 1 {
				t.Errorf("%s: the first request does not say why it is void: %+v", session, a)
			}
		}
		n := map[string]int{"before": 1}[session]
		if n == 0 {
			n = 2
		}
		scope, a := r.ask(session, n, agent.OutcomePending)
		if a.Why == "" || a.Terms.Quorum != len(who) || len(a.Decisions) != 0 {
			t.Errorf("%s: the fresh request: %+v", session, a)
		}
		for _, p := range who {
			d := p.says(t, scope, a, agent.ChoiceApprove)
			r.signal(session, 1, agent.SignalApproval, d)
			r.accepted(session, 1, d)
		}
	}
	made := map[string]int{}
	for session, want := range map[string]agent.State{
		"quorum": committed, "right": committed, "denied": agent.StateDenied, "allowed": committed, "same": committed, "before": committed,
	} {
		r.ended(session, 1)
		if all := r.ledger(session, 1); len(all) != 1 || all[0].State != want {
			t.Errorf("%s: effects %+v, want %s", session, all, want)
		}
	}
	for _, e := range r.pay.Books().Entries {
		made[e.Amount.String()]++
	}
	if len(made) != 5 || made["3.00"] != 0 || made["1.00"] != 1 || made["2.00"] != 1 {
		t.Errorf("refunds %v", made)
	}
}

// TestAChangedPolicyJudgesTheNextDecision changes the file under a running worker: nothing is started again.
func TestAChangedPolicyJudgesTheNextDecision(t *testing.T) {
	t.Parallel()
	alice, bob, carol := newPerson(t, "alice"), newPerson(t, "bob"), newPerson(t, "carol")
	r := newRig(t, setting{
		model:  modeltest.Config{Func: orders},
		policy: "{rules: [{name: asks, then: ask, approval: {by: [alice, bob, carol]}}], duplicates: allow, " + approvers(alice, bob, carol) + "}",
	})
	r.worker("")
	r.start("s", "refund"+refund42)
	scope, a := r.ask("s", 1, agent.OutcomePending)
	r.edit("serial: 1", "serial: 2", "by: [alice, bob, carol]", "by: [bob, carol]",
		fmt.Sprintf("bob: {keys: [%q]}", bob.line), fmt.Sprintf("bob: {keys: [{key: %q, revoked: true}]}", bob.line))
	r.inForce(2)
	mallory := person{name: "carol", key: alice.key} // in another's name
	for _, who := range []struct {
		person
		why string
	}{{alice, "alice"}, {bob, "revoked"}, {mallory, "signature"}} {
		d := who.says(t, scope, a, agent.ChoiceApprove)
		r.signal("s", 1, agent.SignalApproval, d)
		if why := r.refused("s", 1, d.Ref); !strings.Contains(why, who.why) {
			t.Errorf("%s is refused because: %s", who.name, why)
		}
	}
	if n := len(r.pay.Books().Entries); n != 0 {
		t.Errorf("%d refunds before anybody entitled has approved", n)
	}
	d := carol.says(t, scope, a, agent.ChoiceApprove)
	r.signal("s", 1, agent.SignalApproval, d)
	r.accepted("s", 1, d)
	if res := r.ended("s", 1); res.Status != agent.StatusDone || len(r.pay.Books().Entries) != 1 {
		t.Errorf("%+v, %+v", res, r.pay.Books())
	}
}

// TestATargetThatDriftedIsShownAgain changes what the approver has seen, between the ask and the approval.
func TestATargetThatDriftedIsShownAgain(t *testing.T) {
	t.Parallel()
	pay, url := serve(t, payments.Config{IgnoreKeys: true, Unaskable: true})
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders}, tools: "[watched]", policy: "{rules: [{name: asks, then: ask}]}",
		toolsYML: fmt.Sprintf(`  watched:
    description: Refunds an order.
    effect: once
    timeout: 2s
    resource: order {order}
    parameters: {type: object, properties: {order: {type: string}, amount: {type: string}}, required: [order, amount]}
    http: {url: "%s/refunds", observe: {url: "%s/orders/{order}/state"}}
`, url, url),
	})
	r.worker("")
	r.start("s", `watched {"order":"42","amount":"5.00"}`)
	_, first := r.ask("s", 1, agent.OutcomePending)
	if o := first.Terms.Observed; o == nil || !strings.Contains(o.Text, `"refunds":0`) {
		t.Fatalf("observed: %+v", o)
	}
	other, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/refunds", strings.NewReader(`{"order":"42","amount":"7.00"}`))
	if err != nil {
		t.Fatal(err)
	}
	other.Header.Set("Idempotency-Key", `"somebody-else"`)
	res, err := http.DefaultClient.Do(other)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %+v", err, res)
	}
	_ = res.Body.Close()
	approve := func(a agent.Approval) {
		r.signal("s", 1, agent.SignalApproval, agent.ApprovalDecision{ID: a.ID, Digest: a.Action, Choice: agent.ChoiceApprove, Approver: "somebody"})
	}
	approve(first)
	_, fresh := r.ask("s", 2, agent.OutcomePending)
	if o := fresh.Terms.Observed; o == nil || !strings.Contains(o.Text, `"refunds":1`) || !strings.Contains(fresh.Why, "state") {
		t.Errorf("the fresh request says %q and shows %+v", fresh.Why, o)
	}
	if _, a := r.ask("s", 1, agent.OutcomeVoid); a.Action != fresh.Action || len(pay.Books().Entries) != 1 {
		t.Errorf("%+v, %+v", a, pay.Books())
	}
	approve(first) // of the void request: it is over
	approve(fresh)
	r.ended("s", 1)
	if n := len(pay.Books().Entries); n != 2 {
		t.Errorf("%d entries, want the other's and ours", n)
	}
	v := r.approvals("s", 1, "it answers", func(agent.ApprovalsView) bool { return true })
	if len(v.Refused) != 1 || v.Refused[0].ID != first.ID {
		t.Errorf("refused %+v", v.Refused)
	}
}

// TestADecisionIsJudgedByTheTimeAtWhichTheServerTookIt lets no worker run when decisions come and requests expire.
func TestADecisionIsJudgedByTheTimeAtWhichTheServerTookIt(t *testing.T) {
	t.Parallel()
	alice := newPerson(t, "alice")
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders},
		policy: `{rules: [{name: soon, when: 'args.amount != "9.00"', then: ask, approval: {by: [alice], expires: 4s}}, {name: later, then: ask, approval: {by: [alice]}}], ` +
			"duplicates: allow, " + approvers(alice) + "}",
	})
	first := r.worker("")
	amounts := map[string]string{"in-time": "1.00", "late": "2.00", "never": "3.00", "no-hurry": "9.00"}
	for session, amount := range amounts {
		r.start(session, fmt.Sprintf(`refund {"order":"42","amount":%q}`, amount))
	}
	asks, last := map[string]agent.ApprovalDecision{}, time.Time{}
	for session := range amounts {
		scope, a := r.ask(session, 1, agent.OutcomePending)
		asks[session] = alice.says(t, scope, a, agent.ChoiceApprove)
		if session != "no-hurry" && a.ExpiresAt.After(last) {
			last = a.ExpiresAt
		}
	}
	first.kill()
	r.signal("in-time", 1, agent.SignalApproval, asks["in-time"])
	r.signal("no-hurry", 1, agent.SignalApproval, asks["no-hurry"])
	r.eventually("the requests have expired", func() bool { return time.Now().After(last.Add(100 * time.Millisecond)) })
	r.signal("late", 1, agent.SignalApproval, asks["late"])
	r.worker("")

	r.ended("no-hurry", 1)
	r.ended("never", 1)
	r.ended("late", 1)
	if why := r.refused("late", 1, asks["late"].Ref); !strings.Contains(why, "late") && !strings.Contains(why, "expired") {
		t.Errorf("the late decision is refused because: %s", why)
	}
	for session, want := range map[string]agent.State{"late": agent.StateExpired, "never": agent.StateExpired, "no-hurry": committed} {
		if all := r.ledger(session, 1); len(all) != 1 || all[0].State != want {
			t.Errorf("%s: effects %+v, want %s", session, all, want)
		}
	}
	// It came in time and counts; when it could be acted on, its time was over, so that people are asked again.
	r.accepted("in-time", 1, asks["in-time"])
	if _, a := r.ask("in-time", 1, agent.OutcomeVoid); !strings.Contains(a.Note, "expired") || !a.Decisions[0].At.Before(a.ExpiresAt) {
		t.Errorf("the request that was approved in time: %+v", a)
	}
	r.ended("in-time", 1)
	if all := r.ledger("in-time", 1); len(all) != 1 || all[0].State != agent.StateExpired || len(r.pay.Books().Entries) != 1 {
		t.Errorf("effects %+v, books %+v", all, r.pay.Books())
	}
}
