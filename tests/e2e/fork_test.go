package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// fork makes a session that begins where a turn of another one ended.
func (r *rig) fork(from string, turn int, session string) {
	r.t.Helper()
	out, errs, exit := r.holdfast("fork", r.prefix+from, "--at", fmt.Sprintf("turn-%d", turn), "--session", r.prefix+session, "--as", "alice")
	if exit != 0 {
		r.t.Fatalf("fork: exit %d: %s%s", exit, out, errs)
	}
}

// tell gives a session its n-th message and waits for the end of the turn.
func (r *rig) tell(session string, n int, text string) agent.TurnResult {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := r.send(ctx, session, agent.Message{ID: fmt.Sprintf("m-%d", n), Text: text}); err != nil {
		r.t.Error(err)
		return agent.TurnResult{}
	}
	return r.ended(session, n)
}

const (
	refundOne = `refund {"order":"42","amount":"1.00"}`
	refundTwo = `refund {"order":"42","amount":"2.00"}`
)

// TestAForkRepeatsNothingThatItsFamilyDid forks a session, and its fork, after a refund. What is asked for again, in
// the fork, in its fork, and in the session that all began with after a fork did it first, is refused.
func TestAForkRepeatsNothingThatItsFamilyDid(t *testing.T) {
	t.Parallel()
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders}, refund: "once",
		policy: "{rules: [{name: everything, then: allow}], duplicates: deny, uncertain: tell}",
	})
	r.worker("")
	r.tell("s", 1, refundOne)
	r.fork("s", 1, "fork")
	r.tell("fork", 1, refundOne)
	r.fork("fork", 1, "forkfork")
	r.tell("forkfork", 1, refundOne)
	if n := len(r.pay.Books().Entries); n != 1 {
		t.Errorf("%d refunds", n)
	}
	r.tell("forkfork", 2, refundTwo)
	r.tell("s", 2, refundTwo)
	r.tell("fork", 2, refundTwo)
	if n := len(r.pay.Books().Entries); n != 2 {
		t.Errorf("%d refunds of two amounts", n)
	}
	for session, turn := range map[string]int{"fork": 2, "forkfork": 1, "s": 2} {
		for _, e := range r.ledger(session, turn) {
			if e.State != agent.StateDenied || !strings.Contains(e.Note, "the same was done before") {
				t.Errorf("%s: %s (%s)", session, e.State, e.Note)
			}
		}
	}
}

// TestAFamilyThatAsksAtOnceIsServedOnce lets a session and its forks ask for the same at once, while workers are killed
// before and after they record what they are about to send.
func TestAFamilyThatAsksAtOnceIsServedOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", failpoint.ToolBeforeDispatch, failpoint.ToolAfterDispatch, failpoint.ToolAfterCommit} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setting{
				model: modeltest.Config{Func: orders}, refund: "once", timeout: "2s",
				policy: "{rules: [{name: everything, then: allow}], duplicates: deny, uncertain: tell}",
			})
			first := r.worker("")
			r.tell("s", 1, "lookup_order {\"id\":\"42\"}")
			r.fork("s", 1, "fork")
			r.fork("s", 1, "other")
			worker := first
			if point != "" {
				first.kill()
				worker = r.worker(point + "=kill")
			}
			var all sync.WaitGroup
			for session, n := range map[string]int{"s": 2, "fork": 1, "other": 1} {
				all.Go(func() { r.tell(session, n, refundOne) })
			}
			if point != "" {
				r.died(worker)
				r.worker("")
			}
			all.Wait()
			n := len(r.pay.Books().Entries)
			switch {
			case n > 1:
				t.Errorf("%d refunds", n)
			case n == 0 && point != failpoint.ToolAfterDispatch: // after that nobody knows, and nobody repeats it
				t.Error("no refund")
			}
		})
	}
}
