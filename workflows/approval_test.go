package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestAnApprovalLetsExactlyItsActionRun(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
		if len(v.Approvals) != 1 || v.Approvals[0].Action != pay.Action || v.Approvals[0].Outcome != agent.OutcomePending {
			t.Errorf("view %+v", v)
		}
		if got := view[agent.TurnView](t, env, agent.QueryTurn); got.Status != agent.StatusWaiting || !strings.Contains(got.Waiting, "holdfast approve") {
			t.Errorf("turn %+v", got)
		}
		if len(c.sent) != 0 {
			t.Error("it ran before anybody approved it")
		}
	}, time.Minute)
	later(env, 2*time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || len(c.sent) != 1 || c.sent[0].Grant == nil {
		t.Fatalf("result %+v, sent %+v", res, c.sent)
	}
	g := c.sent[0].Grant
	if g.Action != pay.Action || len(g.Decisions) != 1 || g.Decisions[0].Approver != "alice" {
		t.Errorf("grant %+v", g)
	}
	want := []string{"requested", "awaiting_approval", "authorized", "dispatched", "committed"}
	var got []string
	for _, s := range c.closed[0].Ledger[0].Trail {
		got = append(got, string(s.State))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
	if a := c.closed[0].Approvals; len(a) != 1 || a[0].Outcome != agent.OutcomeApproved {
		t.Errorf("closing record has %+v", a)
	}
}

func TestADecisionThatDoesNotCountIsRefusedWithItsReasonAndChangesNothing(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 2)
	good := approve(1, 1, pay, "alice")
	for name, test := range map[string]struct {
		signal any
		why    string
	}{
		"another digest":     {with(good, func(d *agent.ApprovalDecision) { d.Digest = agent.DigestOf([]byte("other")) }), "its digest is not"},
		"no digest":          {with(good, func(d *agent.ApprovalDecision) { d.Digest = "" }), "64 hex digits"},
		"another session":    {with(good, func(d *agent.ApprovalDecision) { d.ID = "x~00000000:turn-1/1.1/abc#1" }), "no such request"},
		"another ask":        {with(good, func(d *agent.ApprovalDecision) { d.ID = agent.ApprovalID(keyAt(1, 1, pay), 2) }), ""}, // kept: it may come
		"another word":       {with(good, func(d *agent.ApprovalDecision) { d.Choice = "yes" }), `"yes"`},
		"nobody":             {with(good, func(d *agent.ApprovalDecision) { d.Approver = "" }), "approver's name"},
		"no right":           {with(good, func(d *agent.ApprovalDecision) { d.Reason = "no right" }), "may not decide"},
		"not JSON":           {[]byte("\x00\x01"), "JSON"},
		"a number":           {17, "JSON"},
		"a list":             {[]string{"approve"}, "JSON"},
		"null":               {nil, "JSON"},
		"an unknown field":   {map[string]any{"id": good.ID, "digset": good.Digest}, "digset"},
		"another type":       {map[string]any{"id": 7}, "JSON"},
		"a megabyte":         {with(good, func(d *agent.ApprovalDecision) { d.Reason = strings.Repeat("x", 1<<20) }), "limit"},
		"an edit to decline": {with(good, func(d *agent.ApprovalDecision) { d.Choice, d.Args = agent.ChoiceDecline, "{}" }), "edit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			env := newCourt(t, c)
			later(env, time.Minute, agent.SignalApproval, test.signal)
			env.RegisterDelayedCallback(func() {
				v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
				if len(v.Approvals) != 1 || v.Approvals[0].Outcome != agent.OutcomePending || len(v.Approvals[0].Decisions) != 0 {
					t.Errorf("approvals %+v", v.Approvals)
				}
				switch {
				case test.why == "" && len(v.Refused) != 0:
					t.Errorf("refused %+v", v.Refused)
				case test.why != "" && (len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Why, test.why)):
					t.Errorf("refused %+v, want %q", v.Refused, test.why)
				}
			}, 2*time.Minute)
			// The real decisions still count.
			later(env, 3*time.Minute, agent.SignalApproval, good)
			later(env, 3*time.Minute, agent.SignalApproval, good) // delivered twice: one person
			later(env, 4*time.Minute, agent.SignalApproval, approve(1, 1, pay, "bob"))
			res := finish(t, env, turnInput())
			if res.Status != agent.StatusDone || len(c.sent) != 1 || len(c.sent[0].Grant.Decisions) != 2 {
				t.Errorf("result %+v, sent %+v", res, c.sent)
			}
		})
	}
}

func TestDeclinedExpiredAndWithdrawnAreThreeThings(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	for name, test := range map[string]struct {
		choice agent.Choice
		state  agent.State
		says   string
	}{
		"declined":  {agent.ChoiceDecline, agent.StateDeclined, "declined by alice (claimed): too much"},
		"withdrawn": {agent.ChoiceCancel, agent.StateCancelled, "withdrawn by alice"},
		"expired":   {"", agent.StateExpired, "nobody decided by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
			env := newCourt(t, c)
			if test.choice != "" {
				later(env, time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
					d.Choice, d.Reason = test.choice, "too much"
				}))
			}
			res := finish(t, env, turnInput())
			if res.Status != agent.StatusDone || len(c.sent) != 0 {
				t.Fatalf("result %+v, sent %+v", res, c.sent)
			}
			if got := c.asked[1].Entries[0].Text; !strings.Contains(got, test.says) {
				t.Errorf("the model hears %q", got)
			}
			if got := c.closed[0].Ledger[0].State; got != test.state {
				t.Errorf("state %q", got)
			}
		})
	}
}

func TestSeveralRequestsOfOneStepAreDecidedApart(t *testing.T) {
	t.Parallel()
	a, b, r := ask("a", "a", agent.ClassOnce, 1), ask("b", "b", agent.ClassOnce, 1), ask("r", "r", agent.ClassRead, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(a, b, r)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		if v := view[agent.ApprovalsView](t, env, agent.QueryApprovals); len(v.Approvals) != 3 {
			t.Errorf("not all requests opened at once: %+v", v.Approvals)
		}
	}, time.Second)
	// Approved in another order than asked for: effects start in the order asked for all the same.
	later(env, time.Minute, agent.SignalApproval, approve(1, 2, b, "alice"))
	later(env, 2*time.Minute, agent.SignalApproval, approve(1, 3, r, "alice"))
	later(env, 3*time.Minute, agent.SignalApproval, with(approve(1, 1, a, "alice"), func(d *agent.ApprovalDecision) { d.Choice = agent.ChoiceDecline }))
	finish(t, env, turnInput())
	var sent []string
	for _, in := range c.sent {
		sent = append(sent, in.Tool)
	}
	if diff := cmp.Diff([]string{"r", "b"}, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a declined", "b committed"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestADecisionAheadOfItsRequestIsKept(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(call("look", "x", agent.ClassRead)), calls(pay)}}}
	env := newCourt(t, c)
	later(env, 0, agent.SignalApproval, approve(2, 1, pay, "alice"))
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || len(c.sent) != 2 || c.sent[1].Grant == nil {
		t.Errorf("result %+v, sent %+v", res, c.sent)
	}
}

func TestAnEditMakesAnotherActionWithAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	edit := `{"amount":1}`
	later(env, time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) { d.Args = edit }))
	finish(t, env, turnInput())
	if len(c.sent) != 1 || c.sent[0].Args != edit || c.sent[0].Action == pay.Action || c.sent[0].Grant.Proposed != pay.Action {
		t.Fatalf("sent %+v", c.sent)
	}
	if diff := cmp.Diff([]string{"pay superseded", "pay committed"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	last := c.closed[0].Approvals[1]
	if last.Proposed != pay.Action || last.ProposedArgs != pay.Args || last.Args != edit || last.Outcome != agent.OutcomeApproved {
		t.Errorf("approval %+v", last)
	}
}

func TestAVoidApprovalIsAskedForAfreshAndTheThirdEndsTheCall(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	void := agent.ToolResult{
		State: agent.StateVoid, Note: "the order was closed meanwhile", Text: "not run: its authority changed three times",
		Verdict: &pay.Verdict, Terms: pay.Terms,
	}
	c := &court{world: world{
		answers: []agent.ModelResult{calls(pay)},
		tools:   map[string]func(agent.ToolInput) (agent.ToolResult, error){"pay": func(agent.ToolInput) (agent.ToolResult, error) { return void, nil }},
	}}
	env := newCourt(t, c)
	for n := 1; n <= 4; n++ {
		later(env, time.Duration(n)*time.Minute, agent.SignalApproval, with(approve(1, 1, pay, "alice"), func(d *agent.ApprovalDecision) {
			d.ID = agent.ApprovalID(keyAt(1, 1, pay), n)
		}))
	}
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusDone || len(c.sent) != agent.MaxVoids {
		t.Errorf("result %+v, sent %d times", res, len(c.sent))
	}
	var outcomes []string
	for _, a := range c.closed[0].Approvals {
		outcomes = append(outcomes, fmt.Sprint(a.Ask, " ", a.Outcome, " ", a.Why != ""))
	}
	if diff := cmp.Diff([]string{"1 void false", "2 void true", "3 void true"}, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestATurnContinuesAsNewWhileItWaitsForPeople(t *testing.T) {
	t.Parallel()
	pay, look := ask("pay", "a", agent.ClassOnce, 2), ask("look", "l", agent.ClassRead, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(call("first", "f", agent.ClassOnce), pay, look)}}}
	in := turnInput()
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, approve(1, 2, pay, "alice"))
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.SignalWorkflow(agent.SignalApproval, "rubbish that wakes it up")
	}, 2*time.Minute)
	in = continued(t, env, in)
	next := newCourt(t, c)
	later(next, time.Minute, agent.SignalApproval, approve(1, 2, pay, "bob"))
	later(next, 2*time.Minute, agent.SignalApproval, approve(1, 3, look, "bob"))
	res := finish(t, next, in)
	if res.Status != agent.StatusDone || len(c.sent) != 3 || len(c.sent[1].Grant.Decisions) != 2 {
		t.Errorf("result %+v, sent %+v", res, c.sent)
	}
	// What asks is entered before what does not.
	if diff := cmp.Diff([]string{"pay committed", "first committed"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestACancelledTurnWithdrawsWhatWaitsAndSendsNothing(t *testing.T) {
	t.Parallel()
	a, b := ask("a", "a", agent.ClassOnce, 1), ask("b", "b", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(a, b)}}}
	env := newCourt(t, c)
	later(env, time.Minute, agent.SignalApproval, approve(1, 2, b, "alice")) // approved, and its turn has not come
	later(env, 2*time.Minute, agent.SignalCancel, agent.Cancel{From: "bob"})
	res := finish(t, env, turnInput())
	if res.Status != agent.StatusCancelled || len(c.sent) != 0 {
		t.Errorf("result %+v, sent %+v", res, c.sent)
	}
	if diff := cmp.Diff([]string{"a cancelled", "b cancelled"}, states(c.closed[0].Ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestASignalOfAnyBytesNeverFailsTheTurn(t *testing.T) {
	t.Parallel()
	pay := ask("pay", "a", agent.ClassOnce, 1)
	c := &court{world: world{answers: []agent.ModelResult{calls(pay)}}}
	env := newCourt(t, c)
	env.RegisterDelayedCallback(func() {
		for _, name := range []string{agent.SignalApproval, agent.SignalSettle} {
			for _, v := range []any{nil, 1, "x", []byte{0xff, 0}, json.RawMessage(`{"id":{}}`), map[string]string{"key": keyAt(1, 1, pay)}, strings.Repeat("y", 1<<20)} {
				for range 40 {
					env.SignalWorkflow(name, v)
				}
			}
		}
	}, time.Minute)
	later(env, 2*time.Minute, agent.SignalApproval, approve(1, 1, pay, "alice"))
	env.RegisterDelayedCallback(func() {
		v := view[agent.ApprovalsView](t, env, agent.QueryApprovals)
		if len(v.Refused) != agent.MaxRefusals || len(v.Refused)+v.More != 7*40 {
			t.Errorf("%d refusals listed and %d more", len(v.Refused), v.More)
		}
	}, 90*time.Second)
	if res := finish(t, env, turnInput()); res.Status != agent.StatusDone || len(c.sent) != 1 {
		t.Errorf("result %+v", res)
	}
}
