package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

const (
	waiting = "{rules: [{name: everything, then: allow}], duplicates: allow, uncertain: wait}"
	telling = "{rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell}"
)

// frozen returns a rig in which one worker stands still at a failpoint in the first effect of each session, and another
// has taken over and knows nothing of their outcome. wake lets the first one go on. The sessions are named with what
// more they are told to do.
func frozen(t *testing.T, point, policy string, sessions map[string]string) (r *rig, wake func()) {
	t.Helper()
	r = newRig(t, setting{model: modeltest.Config{Func: orders}, refund: "once", timeout: "1s", policy: policy})
	door := filepath.Join(r.dir, "door")
	first := r.worker(point + "=file:" + door)
	for s, further := range sessions {
		r.start(s, "refund"+refund42+further)
	}
	r.passed(point, len(sessions))
	first.signal(t, syscall.SIGSTOP)
	r.worker("")
	for s := range sessions {
		r.effects(s, 1, "nobody knows its outcome", func(v agent.EffectsView) bool {
			return len(v.Effects) == 1 && v.Effects[0].State == uncertain
		})
	}
	return r, func() {
		t.Helper()
		if err := os.WriteFile(door, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		first.signal(t, syscall.SIGCONT)
	}
}

// settled waits until the first effect of a session's first turn has a state.
func (r *rig) settled(session string, s agent.State) agent.Effect {
	r.t.Helper()
	v := r.effects(session, 1, "its outcome is known", func(v agent.EffectsView) bool {
		return len(v.Effects) > 0 && v.Effects[0].State == s
	})
	return v.Effects[0]
}

// TestAWorkerThatWakesAfterItsTimeSettlesWhatItLeftUncertain: what it saw is on record, and the turn is told to look.
func TestAWorkerThatWakesAfterItsTimeSettlesWhatItLeftUncertain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, point string
		state       agent.State
		entries     int
	}{
		// It has not sent, and its time to send is over: it must not, and says so.
		{"before it sent", failpoint.ToolAfterDispatch, agent.StateFailed, 0},
		{"after the answer", failpoint.ToolAfterCommit, committed, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, wake := frozen(t, test.point, waiting, map[string]string{"s": ""})
			if v, err := query[agent.TurnView](r, "s", 1, agent.QueryTurn); err != nil || v.Status != agent.StatusWaiting {
				t.Errorf("the turn does not wait: %+v, %v", v, err)
			}
			wake()
			r.settled("s", test.state)
			if res := r.ended("s", 1); res.Status != agent.StatusDone || len(res.Effects) != 0 {
				t.Errorf("result %+v", res)
			}
			if n := len(r.pay.Books().Entries); n != test.entries {
				t.Errorf("%d refunds, want %d", n, test.entries)
			}
			if v, err := r.view("s"); err != nil || len(v.Unresolved) != 0 {
				t.Errorf("unresolved %+v, %v", v.Unresolved, err)
			}
		})
	}
}

// TestALateOutcomeOfATurnThatHasEndedIsSettledByTheSession: the turn's end stays as the public saw it.
func TestALateOutcomeOfATurnThatHasEndedIsSettledByTheSession(t *testing.T) {
	t.Parallel()
	r, wake := frozen(t, failpoint.ToolAfterCommit, telling, map[string]string{"s": ""})
	res := r.ended("s", 1)
	r.eventually("the session lists it", func() bool {
		v, err := r.view("s")
		return err == nil && len(v.Unresolved) == 1 && v.Unresolved[0].State == uncertain
	})
	wake()
	r.eventually("the session has settled it", func() bool {
		v, err := r.view("s")
		return err == nil && len(v.Unresolved) == 0
	})
	if again := r.ended("s", 1); again.Status != res.Status || again.Closing != res.Closing || len(again.Effects) != 1 {
		t.Errorf("the turn's end was %+v and is %+v", res, again)
	}
	// The same may now be asked for again, and is another refund.
	if _, err := r.send(t.Context(), "s", agent.Message{ID: "again", Text: "refund" + refund42}); err != nil {
		t.Fatal(err)
	}
	r.ended("s", 2)
	if all := r.ledger("s", 2); len(all) != 1 || all[0].State != committed || len(r.pay.Books().Entries) != 2 {
		t.Errorf("effects %+v, books %+v", all, r.pay.Books())
	}
}

// TestAPersonsWordOnAnEffectStandsAndALateContradictionIsShown: a person settles what nobody knew, and the worker
// wakes after that, while the turn waits for something else.
func TestAPersonsWordOnAnEffectStandsAndALateContradictionIsShown(t *testing.T) {
	t.Parallel()
	const policy = `{rules: [{name: slow, when: 'args.order == "43"', then: ask}, {name: rest, then: allow}], uncertain: wait}`
	const further = "\n" + `refund {"order":"43","amount":"1.00"}`
	r, wake := frozen(t, failpoint.ToolAfterCommit, policy, map[string]string{"right": "", "wrong": further})
	for session, outcome := range map[string]agent.State{"right": committed, "wrong": agent.StateFailed} {
		e := r.ledger(session, 1)[0]
		if stdout, stderr, exit := r.holdfast("effects", "settle", e.Key, "--outcome", string(outcome), "--as", "olga"); exit != 2 {
			t.Errorf("without evidence: exit %d: %s%s", exit, stdout, stderr)
		}
		stdout, stderr, exit := r.holdfast("effects", "settle", e.Key, "--outcome", string(outcome), "--evidence", "I looked", "--as", "olga")
		if exit != 0 || !strings.Contains(stdout, "accepted") {
			t.Errorf("exit %d: %s%s", exit, stdout, stderr)
		}
		if e := r.settled(session, outcome); !strings.Contains(e.Evidence, "I looked") || e.Trail[len(e.Trail)-1].By != "olga (claimed)" {
			t.Errorf("%s: %+v", session, e)
		}
	}
	r.ended("right", 1)
	_, asked := r.ask("wrong", 1, agent.OutcomePending)
	wake()
	if e := r.effects("wrong", 1, "it knows of the contradiction", func(v agent.EffectsView) bool {
		return v.Effects[0].Conflict != ""
	}).Effects[0]; e.State != agent.StateFailed {
		t.Errorf("the end has changed: %+v", e)
	}
	r.signal("wrong", 1, agent.SignalApproval, agent.ApprovalDecision{ID: asked.ID, Digest: asked.Action, Choice: agent.ChoiceDecline, Approver: "olga"})
	r.ended("wrong", 1)
	if e := r.conflict("wrong"); e.State != agent.StateFailed || e.Tool != "refund" {
		t.Errorf("conflict %+v", e)
	}
	if v, err := r.view("right"); err != nil || len(v.Unresolved) != 0 {
		t.Errorf("no contradiction: %+v, %v", v.Unresolved, err)
	}
	if stdout, stderr, exit := r.holdfast("attention"); exit != 8 || !strings.Contains(stdout, r.prefix+"wrong") || strings.Contains(stdout, r.prefix+"right") {
		t.Errorf("attention: exit %d:\n%s%s", exit, stdout, stderr)
	}
	if n := len(r.pay.Books().Entries); n != 2 {
		t.Errorf("%d refunds", n)
	}
}

// conflict waits until a session lists one contradiction.
func (r *rig) conflict(session string) agent.Effect {
	r.t.Helper()
	var v agent.SessionView
	r.eventually(session+" lists the contradiction", func() bool {
		var err error
		v, err = r.view(session)
		return err == nil && len(v.Unresolved) == 1 && v.Unresolved[0].Conflict != ""
	})
	return v.Unresolved[0]
}

// TestAWorkerFrozenInTheMiddleOfASendIsNotWaitedForWhereTheDestinationCanBeAsked uses no failpoint: the machine
// stands still while the destination works.
func TestAWorkerFrozenInTheMiddleOfASendIsNotWaitedForWhereTheDestinationCanBeAsked(t *testing.T) {
	t.Parallel()
	made := make(chan struct{}, 10)
	all := []shop{askedShop(t, "asked", "8s", payments.Config{IgnoreKeys: true, Delay: 4 * time.Second, OnCommit: func(string) { made <- struct{}{} }})}
	tools, yaml := declared(all)
	r := newRig(t, setting{model: modeltest.Config{Func: orders}, tools: tools, toolsYML: yaml})
	first := r.worker("")
	r.start("s", "asked"+refund42)
	<-made
	first.signal(t, syscall.SIGSTOP)
	r.worker("")
	if e := r.settled("s", committed); e.Evidence != found {
		t.Errorf("%+v", e)
	}
	res := r.ended("s", 1)
	first.signal(t, syscall.SIGCONT)
	// The zombie has had its say when it has taken other work.
	if _, err := r.send(t.Context(), "s", agent.Message{ID: "next", Text: `asked {"order":"43","amount":"1.00"}`}); err != nil {
		t.Fatal(err)
	}
	r.ended("s", 2)
	if e := r.ledger("s", 1)[0]; res.Status != agent.StatusDone || e.State != committed || e.Conflict != "" {
		t.Errorf("%+v, %+v", res, e)
	}
	if n := len(all[0].pay.Books().Entries); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// TestALateContradictionOfATurnThatHasEndedIsListedByTheSession: the turn's end stands, and nobody is left unaware.
func TestALateContradictionOfATurnThatHasEndedIsListedByTheSession(t *testing.T) {
	t.Parallel()
	r, wake := frozen(t, failpoint.ToolAfterCommit, waiting, map[string]string{"s": ""})
	e := r.ledger("s", 1)[0]
	if stdout, stderr, exit := r.holdfast("effects", "settle", e.Key, "--outcome", "failed", "--evidence", "I looked", "--as", "olga"); exit != 0 {
		t.Errorf("exit %d: %s%s", exit, stdout, stderr)
	}
	res := r.ended("s", 1)
	wake()
	if e := r.conflict("s"); e.State != agent.StateFailed || e.Tool != "refund" || e.Key == "" {
		t.Errorf("conflict %+v", e)
	}
	if again := r.ended("s", 1); again.Closing != res.Closing {
		t.Errorf("the turn's end was %+v and is %+v", res, again)
	}
	if stdout, stderr, exit := r.holdfast("attention"); exit != 8 || !strings.Contains(stdout, r.prefix+"s") {
		t.Errorf("attention: exit %d:\n%s%s", exit, stdout, stderr)
	}
	if stdout, stderr, exit := r.holdfast("effects", "settle", e.Key, "--outcome", "committed", "--evidence", "It is in the books", "--as", "olga"); exit != 0 {
		t.Errorf("exit %d: %s%s", exit, stdout, stderr)
	}
	if v, err := r.view("s"); err != nil || len(v.Unresolved) != 0 {
		t.Errorf("somebody has looked, and it is still listed: %+v, %v", v.Unresolved, err)
	}
}
