package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// A landing is what became of one effect: by the destination's own books, and by the turn's ledger.
type landing struct {
	Entries  int
	Requests int
	State    agent.State
	Evidence string // its first word that is not the same in all cases; empty: the destination answered
}

// A shop is a destination, and the tool that speaks to it.
type shop struct {
	tool string
	pay  *payments.Service
	yaml string
}

// shops are the three kinds of destination over HTTP: keyed honours the key, asked ignores it and says what it has
// made, blind does neither.
func shops(t *testing.T, timeout, suffix string) []shop {
	t.Helper()
	return []shop{
		keyedShop(t, "keyed"+suffix, timeout, payments.Config{}),
		askedShop(t, "asked"+suffix, timeout, payments.Config{IgnoreKeys: true}),
		blindShop(t, "blind"+suffix, timeout, payments.Config{IgnoreKeys: true, Unaskable: true}),
	}
}

func keyedShop(t *testing.T, name, timeout string, c payments.Config) shop {
	pay, url := serve(t, c)
	return shop{name, pay, shopTool(name, "idempotent", timeout, url, "")}
}

func askedShop(t *testing.T, name, timeout string, c payments.Config) shop {
	pay, url := serve(t, c)
	return shop{name, pay, shopTool(name, "reconcilable", timeout, url, fmt.Sprintf(
		`, reconcile: {url: "%s/refunds?key={key}", found: "status == 200 && size(body.refunds) > 0", `+
			`absent: "status == 200 && size(body.refunds) == 0"}`, url))}
}

func blindShop(t *testing.T, name, timeout string, c payments.Config) shop {
	pay, url := serve(t, c)
	return shop{name, pay, shopTool(name, "once", timeout, url, "")}
}

func shopTool(name, class, timeout, url, http string) string {
	return fmt.Sprintf(`  %s:
    description: Refunds an order.
    effect: %s
    timeout: %s
    parameters:
      type: object
      properties: {order: {type: string}, amount: {type: string}}
      required: [order, amount]
      additionalProperties: false
    http: {method: POST, url: "%s/refunds"%s}
`, name, class, timeout, url, http)
}

// declared returns the shops' tools as the configuration has them.
func declared(all []shop) (tools, yaml string) {
	var names []string
	for _, s := range all {
		names = append(names, s.tool)
		yaml += s.yaml
	}
	return "[" + strings.Join(names, ", ") + "]", yaml
}

const refund42 = ` {"order":"42","amount":"19.90"}`

// landed returns what became of the one effect of a session's first turn.
func (r *rig) landed(session string, pay *payments.Service) landing {
	r.t.Helper()
	res := r.ended(session, 1)
	if res.Status != agent.StatusDone {
		r.t.Errorf("%s: result %+v", session, res)
	}
	books := pay.Books()
	out := landing{Entries: len(books.Entries)}
	for _, n := range books.Requests {
		out.Requests += n
	}
	effects := r.ledger(session, 1)
	if len(effects) != 1 {
		r.t.Fatalf("%s: effects %+v", session, effects)
	}
	e := effects[0]
	out.State = e.State
	if e.Evidence != "the destination answered" {
		out.Evidence = e.Evidence
	}
	if books.Requests[e.Key] != out.Requests {
		r.t.Errorf("%s: requests %v, but its key is %q", session, books.Requests, e.Key)
	}
	if e.Conflict != "" {
		r.t.Errorf("%s: conflict %q", session, e.Conflict)
	}
	return out
}

const (
	found     = "found by asking the destination"
	committed = agent.StateCommitted
	uncertain = agent.StateUncertain
)

// TestAnApprovedActionIsAppliedAsItsDestinationAllowsWhereverTheWorkerDies kills the worker at each boundary of
// DESIGN section 6 while it holds three actions there, one for each kind of destination. Each was approved by two
// people; what the second says while no worker runs is said to the server.
func TestAnApprovedActionIsAppliedAsItsDestinationAllowsWhereverTheWorkerDies(t *testing.T) {
	t.Parallel()
	never := landing{Entries: 0, Requests: 0, State: uncertain}
	unknown := landing{Entries: 1, Requests: 1, State: uncertain}
	once := landing{Entries: 1, Requests: 1, State: committed}
	twice := landing{Entries: 1, Requests: 2, State: committed} // the same key again: one entry
	asked := landing{Entries: 1, Requests: 1, State: committed, Evidence: found}
	const between = "between two approvals"
	for _, test := range []struct {
		point               string
		keyed, asked, blind landing
	}{
		{failpoint.ApprovalAfterJudgement, once, once, once},
		{between, once, once, once},
		{failpoint.ToolBeforeAdmission, once, once, once},
		{failpoint.ToolBeforeDispatch, once, once, once},
		{failpoint.ToolAfterDispatch, once, once, never},
		{failpoint.ToolAfterCommit, twice, asked, unknown},
		{failpoint.ToolAfterAdoption, once, once, once},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			alice, bob := newPerson(t, "alice"), newPerson(t, "bob")
			all := shops(t, "1s", "")
			tools, yaml := declared(all)
			r := newRig(t, setting{
				model: modeltest.Config{Func: orders}, tools: tools, toolsYML: yaml,
				policy: "{rules: [{name: two-people, then: ask}], approval: {by: [alice, bob], quorum: 2}, uncertain: tell, " + approvers(alice, bob) + "}",
			})
			points := ""
			if test.point != between {
				points = test.point + "=file:" + filepath.Join(r.dir, "never")
			}
			dying := r.worker(points)
			var second []agent.ApprovalDecision
			for _, s := range all {
				r.start(s.tool, s.tool+refund42)
			}
			for _, s := range all {
				scope, waits := r.pending(s.tool, 1, 1)
				first := alice.says(t, scope, waits[0], agent.ChoiceApprove)
				second = append(second, bob.says(t, scope, waits[0], agent.ChoiceApprove))
				r.signal(s.tool, 1, agent.SignalApproval, first)
				if test.point != failpoint.ApprovalAfterJudgement {
					r.accepted(s.tool, 1, first)
				}
			}
			approveAll := func() {
				for i, s := range all {
					r.signal(s.tool, 1, agent.SignalApproval, second[i])
				}
			}
			early := test.point == between || test.point == failpoint.ApprovalAfterJudgement
			if !early {
				approveAll()
			}
			if points != "" {
				r.passed(test.point, len(all))
			}
			dying.kill()
			if early {
				approveAll()
			}
			r.worker("")
			for i, want := range []landing{test.keyed, test.asked, test.blind} {
				if diff := cmp.Diff(want, r.landed(all[i].tool, all[i].pay)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", all[i].tool, diff)
				}
				r.approvals(all[i].tool, 1, "its request was approved by both", func(v agent.ApprovalsView) bool {
					return len(v.Approvals) == 1 && v.Approvals[0].Outcome == agent.OutcomeApproved && len(v.Approvals[0].Decisions) == 2
				})
			}
		})
	}
}

// TestWhatGoesWrongOnTheWayEndsAsTheDestinationAllows has no dying worker: the destination answers badly, or not.
func TestWhatGoesWrongOnTheWayEndsAsTheDestinationAllows(t *testing.T) {
	t.Parallel()
	never := landing{Entries: 0, Requests: 1, State: uncertain}
	unknown := landing{Entries: 1, Requests: 1, State: uncertain}
	again := landing{Entries: 1, Requests: 2, State: committed}
	asked := landing{Entries: 1, Requests: 1, State: committed, Evidence: found}
	table := []struct {
		fault               payments.Fault
		keyed, asked, blind landing
	}{
		{payments.FaultRefuse, again, again, never}, // 503 proves nothing, and an empty book does
		{payments.FaultLose, again, again, never},
		{payments.FaultDrop, again, asked, unknown},
		{payments.FaultError, again, asked, unknown},
		{payments.FaultSilence, again, asked, unknown},
	}
	var all []shop
	for _, test := range table {
		these := shops(t, "1s", "_"+string(test.fault))
		for _, s := range these {
			s.pay.Inflict(test.fault)
		}
		all = append(all, these...)
	}
	tools, yaml := declared(all)
	r := newRig(t, setting{model: modeltest.Config{Func: orders}, tools: tools, toolsYML: yaml})
	r.worker("")
	for _, s := range all {
		r.start(s.tool, s.tool+refund42)
	}
	for i, test := range table {
		for j, want := range []landing{test.keyed, test.asked, test.blind} {
			s := all[3*i+j]
			if diff := cmp.Diff(want, r.landed(s.tool, s.pay)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", s.tool, diff)
			}
		}
	}
}
