package e2e

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// refunds is the script of a model that looks an order up, refunds it, and says so.
func refunds(r modeltest.Request) modeltest.Step {
	switch len(r.Results()) {
	case 0:
		return modeltest.Want(modeltest.Call{ID: "call_a", Name: "lookup_order", Args: `{"id":"42"}`})
	case 1:
		return modeltest.Want(modeltest.Call{ID: "call_b", Name: "refund", Args: `{"order":"42","amount":"19.90"}`})
	}
	return modeltest.Say("Order 42 is refunded.")
}

// undisturbed runs the refund without any fault and returns its transcript's head.
func undisturbed(t *testing.T, s setting) agent.Head {
	t.Helper()
	s.model.Func = refunds
	r := newRig(t, s)
	r.worker("")
	r.start("calm", "Refund order 42.")
	res := r.ended("calm", 1)
	if res.Status != agent.StatusDone || r.model.Charges().Answers != 3 {
		t.Fatalf("the undisturbed run: %+v, %+v", res, r.model.Charges())
	}
	return res.Head
}

func TestAKilledWorkerLeavesOneRefund(t *testing.T) {
	t.Parallel()
	renewing := "    limits: {continue_after: 1}"
	calm := undisturbed(t, setting{})
	for _, test := range []struct {
		point    string
		agent    string
		answers  int // that the model server charged for
		requests int // that the payments service got for the refund
	}{
		{failpoint.ModelBeforeRequest, "", 3, 1},
		// Nobody can know of an answer that was never written down: it is paid for twice, the only
		// place where that can happen.
		{failpoint.ModelAfterAnswer, "", 4, 1},
		{failpoint.ModelAfterAdoption, "", 3, 1},
		{failpoint.ToolBeforeDispatch, "", 3, 1},
		{failpoint.ToolAfterDispatch, "", 3, 1},
		{failpoint.ToolAfterCommit, "", 3, 2},
		{failpoint.ToolAfterAdoption, "", 3, 1},
		{failpoint.ContinueBefore, renewing, 3, 1},
		{failpoint.ContinueAfter, renewing, 3, 1},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setting{model: modeltest.Config{Func: refunds}, agent: test.agent})
			dying := r.worker(test.point + ":1=kill")
			r.start("s", "Refund order 42.")
			r.died(dying)
			r.worker("")
			res := r.ended("s", 1)
			if res.Status != agent.StatusDone || len(res.Effects) != 0 {
				t.Errorf("result %+v", res)
			}
			if res.Head != calm {
				t.Errorf("the transcript ends in %+v, undisturbed in %+v", res.Head, calm)
			}
			books := r.pay.Books()
			if len(books.Entries) != 1 || books.Requests[books.Entries[0].Key] != test.requests {
				t.Errorf("books %+v", books)
			}
			if got := r.model.Charges().Answers; got != test.answers {
				t.Errorf("%d answers charged, want %d", got, test.answers)
			}
		})
	}
}

func TestWhatMayBeSentOnceIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		point   string
		entries int
		state   agent.State // of what the session keeps; empty if nothing
	}{
		{failpoint.ToolBeforeDispatch, 1, ""},
		{failpoint.ToolAfterDispatch, 0, agent.StateUncertain},
		{failpoint.ToolAfterCommit, 1, agent.StateUncertain},
		{failpoint.ToolAfterAdoption, 1, ""},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			// In the second turn the model asks for the same refund again.
			r := newRig(t, setting{model: modeltest.Config{Func: refunds}, refund: "once", timeout: "1s"})
			dying := r.worker(test.point + ":1=kill")
			r.start("s", "Refund order 42.")
			r.died(dying)
			r.worker("")
			res := r.ended("s", 1)
			if res.Status != agent.StatusDone {
				t.Errorf("result %+v", res)
			}
			if got := len(r.pay.Books().Entries); got != test.entries {
				t.Fatalf("%d entries, want %d", got, test.entries)
			}
			if test.state == "" {
				if len(res.Effects) != 0 {
					t.Errorf("effects %+v", res.Effects)
				}
				return
			}
			if len(res.Effects) != 1 || res.Effects[0].State != test.state {
				t.Fatalf("effects %+v", res.Effects)
			}
			if _, err := r.send(t.Context(), "s", agent.Message{ID: "again", Text: "Did it work? Refund it."}); err != nil {
				t.Fatal(err)
			}
			r.ended("s", 2)
			if got := len(r.pay.Books().Entries); got != test.entries {
				t.Errorf("asked again, %d entries", got)
			}
			v, err := r.view("s")
			if err != nil || len(v.Unresolved) != 1 {
				t.Errorf("view %+v, error %v", v, err)
			}
		})
	}
}

func TestAZombieThatComesBackChangesNothing(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"idempotent", "once"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			committed := make(chan struct{}, 10)
			r := newRig(t, setting{
				model: modeltest.Config{Func: refunds}, refund: class, timeout: "6s",
				pay: payments.Config{Delay: 3 * time.Second, OnCommit: func(string) { committed <- struct{}{} }},
			})
			frozen := r.worker("")
			r.start("s", "Refund order 42.")
			<-committed
			frozen.signal(t, syscall.SIGSTOP)
			r.worker("")
			res := r.ended("s", 1)
			frozen.signal(t, syscall.SIGCONT)
			if got := len(r.pay.Books().Entries); got != 1 {
				t.Fatalf("%d entries", got)
			}
			if res.Status != agent.StatusDone {
				t.Errorf("result %+v", res)
			}
			want := 0
			if class == "once" {
				want = 1 // nobody could know
			}
			if len(res.Effects) != want {
				t.Errorf("effects %+v", res.Effects)
			}
			// The zombie has had its say when it takes new work.
			if _, err := r.send(t.Context(), "s", agent.Message{ID: "next", Text: "Thanks."}); err != nil {
				t.Fatal(err)
			}
			r.ended("s", 2)
			if got := len(r.pay.Books().Entries); got > 2 {
				t.Errorf("%d entries after the zombie woke", got)
			}
		})
	}
}

func TestARestartOfTheTemporalServerLosesNothing(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "temporal.db")
	server, err := devserver.Start(t.Context(), devserver.Options{Headless: true, DBFile: db, Port: freePort(t)})
	if err != nil {
		t.Fatal(err)
	}
	committed := make(chan struct{}, 10)
	r := newRig(t, setting{
		model: modeltest.Config{Func: refunds}, address: server.Address(), timeout: "20s",
		pay: payments.Config{Delay: 2 * time.Second, OnCommit: func(string) { committed <- struct{}{} }},
	})
	r.worker("")
	r.start("s", "Refund order 42.")
	<-committed
	server.Kill()
	<-server.Done()
	port := portOf(t, server.Address())
	again, err := devserver.Start(context.Background(), devserver.Options{Headless: true, DBFile: db, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Stop() })
	res := r.ended("s", 1)
	if res.Status != agent.StatusDone || len(res.Effects) != 0 {
		t.Errorf("result %+v", res)
	}
	if got := len(r.pay.Books().Entries); got != 1 {
		t.Errorf("%d entries", got)
	}
}

func TestATerminatedTurnLeavesItsHeadAndItsEffects(t *testing.T) {
	t.Parallel()
	committed := make(chan struct{}, 10)
	r := newRig(t, setting{
		model: modeltest.Config{Func: refunds}, refund: "once", timeout: "5s",
		pay: payments.Config{Delay: 2 * time.Second, OnCommit: func(string) { committed <- struct{}{} }},
	})
	r.worker("")
	r.start("s", "Refund order 42.")
	<-committed
	if err := r.client.TerminateWorkflow(t.Context(), agent.TurnID(r.prefix+"s", 1), "", "test"); err != nil {
		t.Fatal(err)
	}
	var v agent.SessionView
	r.eventually("the session has recovered the turn", func() bool {
		var err error
		v, err = r.view("s")
		return err == nil && v.Running == 0 && v.Last != nil
	})
	if v.Last.Reason == nil || v.Last.Reason.Type != agent.ErrTerminated {
		t.Errorf("last %+v", v.Last)
	}
	if v.Head.Seq < 2 {
		t.Errorf("head %+v: two answers had been accepted", v.Head)
	}
	if len(v.Unresolved) != 1 || !strings.Contains(v.Unresolved[0].Key, "/2.1/") {
		t.Errorf("unresolved %+v", v.Unresolved)
	}
	if _, err := r.send(t.Context(), "s", agent.Message{ID: "next", Text: "And now?"}); err != nil {
		t.Fatal(err)
	}
	if res := r.ended("s", 2); res.Status != agent.StatusDone {
		t.Errorf("the next turn: %+v", res)
	}
	if got := len(r.pay.Books().Entries); got != 1 {
		t.Errorf("%d entries", got)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func portOf(t *testing.T, addr string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}
