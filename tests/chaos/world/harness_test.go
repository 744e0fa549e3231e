package world

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// patience bounds every wait in these tests; nothing waits for it when all goes well.
const patience = 100 * time.Second

// lab is shared by all tests; nil in short runs, which have no server.
var lab *Lab

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if testing.Short() || os.Getenv(orphanEnv) != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "holdfast-world-")
		if err == nil {
			defer os.RemoveAll(dir)
			lab, err = Open(context.Background(), Options{Dir: dir})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := lab.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// names counts worlds: a test may run more than once.
var names atomic.Int64

// newWorld makes a world that lives as long as the test.
func newWorld(t *testing.T, c Config) *World {
	t.Helper()
	if lab == nil {
		t.Skip("needs a Temporal server and worker processes")
	}
	c.Name = fmt.Sprintf("%s-%d", t.Name(), names.Add(1))
	c.Model = script(c)
	w, err := lab.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("workers said:\n%s", w.Said())
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// script is a model that looks an order up and pays what the scenario's does, a call in each step.
func script(c Config) modeltest.Func {
	calls := []modeltest.Call{
		{Name: "lookup_order", Args: `{"id":"42"}`},
		{Name: c.ToolName(), Args: `{"order":"42","amount":"19.90"}`},
		{Name: c.ToolName(), Args: `{"order":"43","amount":"29.90"}`},
	}
	if c.Scenario == cell.Undo {
		calls = append(calls, modeltest.Call{Name: c.ToolName(), Args: `{"order":"44","amount":"99.00"}`})
	}
	return func(r modeltest.Request) modeltest.Step {
		n := len(r.Results())
		if n == len(calls) {
			return modeltest.Say("done")
		}
		call := calls[n]
		call.ID = fmt.Sprintf("call_%d", n)
		return modeltest.Want(call)
	}
}

func start(t *testing.T, w *World, rules string) *Worker {
	t.Helper()
	p, err := w.Start(t.Context(), rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends the message, for which a worker must run.
func send(t *testing.T, w *World, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Send(ctx, id, "Refund what was broken."); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(glance) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// pending waits for what the first turn asks a person.
func pending(t *testing.T, w *World) (scope agent.Scope, asked agent.Approval) {
	t.Helper()
	eventually(t, "a person is asked", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var v agent.ApprovalsView
		q, err := w.Server.Client().QueryWorkflow(ctx, agent.TurnID(w.Session, 1), "", agent.QueryApprovals)
		if err != nil || q.Get(&v) != nil || len(v.Approvals) == 0 {
			return false
		}
		scope, asked = v.Scope, v.Approvals[0]
		return true
	})
	return scope, asked
}

// approve has the world's approver approve what the first turn asks.
func approve(t *testing.T, w *World) {
	t.Helper()
	scope, asked := pending(t, w)
	d, err := w.Decision(scope, asked, agent.ChoiceApprove)
	if err == nil {
		err = w.Signal(t.Context(), 1, agent.SignalApproval, d)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of the first turn.
func ended(t *testing.T, w *World) (res agent.TurnResult) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	eventually(t, "the turn ends", func() bool {
		err = w.Server.Client().GetWorkflow(ctx, agent.TurnID(w.Session, 1), "").Get(ctx, &res)
		var absent *serviceerror.NotFound // it has not begun
		return !errors.As(err, &absent)
	})
	if err == nil {
		return res
	}
	res, ok := agent.ResultIn(err)
	if !ok {
		t.Fatal(err)
	}
	return res
}

// made is what the destination has made, each as "order amount" or "void of".
func made(t *testing.T, w *World) (out []string) {
	t.Helper()
	all, err := w.Made()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Key == "" {
			t.Errorf("%+v has no key", e)
		}
		text := e.Order + " " + e.Amount
		if e.Voids != "" {
			text = "void " + e.Voids
		}
		out = append(out, text)
	}
	return out
}

func wantMade(t *testing.T, w *World, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, made(t, w)); diff != "" {
		t.Errorf("the destination has made (-want +got):\n%s", diff)
	}
}
