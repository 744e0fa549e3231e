package activities

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/tool"
)

// A destination is a payments service over HTTP and the tool that is right for it.
type destination struct {
	*world
	service *payments.Service
	in      agent.ToolInput
}

func newDestination(t *testing.T, class agent.Class) *destination {
	t.Helper()
	cfg := payments.Config{
		Path: filepath.Join(t.TempDir(), "books"), Orders: []payments.Order{{ID: "42", Total: 1990}},
		IgnoreKeys: class != agent.ClassIdempotent, Unaskable: class == agent.ClassOnce,
	}
	s, err := payments.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.Close(); _ = s.Close() })
	c := tool.HTTPConfig{
		Name: "refund", Method: http.MethodPost, URL: srv.URL + "/refunds", Class: class, Timeout: 2 * time.Second, AllowPrivate: true,
		Parameters: []byte(`{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"string"}},"required":["order","amount"]}`),
	}
	if class == agent.ClassReconcilable {
		c.Reconcile = &tool.HTTPAsk{
			URL: srv.URL + "/refunds?key={key}", Found: "status == 200 && body.refunds.exists(r, r.key == key)",
			Absent: "status == 200 && body.refunds.size() == 0",
		}
	}
	refund, err := tool.NewHTTP(c)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "file://"+t.TempDir(), refund)
	return &destination{world: w, service: s, in: w.asked("refund", `{"amount":"19.90","order":"42"}`)}
}

// sent is what an attempt did at the destination before it was killed.
func (d *destination) sent(t *testing.T) {
	t.Helper()
	tl, _ := d.snap.Tools.Lookup("refund")
	if _, err := tl.Do(t.Context(), tool.Call{Key: d.in.Key(), Args: d.in.Args, Attempt: 1, Scope: d.in.Scope, Place: d.in.Place}); err != nil {
		t.Fatal(err)
	}
}

// ends runs attempts until one has a result, as Temporal does.
func (d *destination) ends(t *testing.T, first int) agent.ToolResult {
	t.Helper()
	var p Progress
	for n := first; n < first+5; n++ {
		res, next, err := d.attempt(t.Context(), n, p, d.in)
		if err == nil {
			return res
		}
		p = next
	}
	t.Fatal("no end")
	return agent.ToolResult{}
}

// The boundaries of section 6 of the design: where a worker was killed, by what it left behind, and what the table
// there says of each kind of destination.
func TestAKillAtEachBoundaryEndsAsTheDestinationAllows(t *testing.T) {
	t.Parallel()
	const committed, uncertain = agent.StateCommitted, agent.StateUncertain
	for _, c := range []struct {
		boundary string
		left     string
		sent     bool
		// by what the destination can do
		honours, asked, neither agent.State
		unsent                  int // entries where nobody can find out
	}{
		{"before the claim", "nothing", false, committed, committed, committed, 1},
		{"after the claim", "its own claim", false, committed, committed, committed, 1},
		{"after the dispatch record", "a dispatch", false, committed, committed, uncertain, 0},
		{"after the destination committed", "a dispatch", true, committed, committed, uncertain, 1},
		{"after the outcome was recorded", "a commit", true, committed, committed, committed, 1},
	} {
		for class, want := range map[agent.Class]agent.State{
			agent.ClassIdempotent: c.honours, agent.ClassReconcilable: c.asked, agent.ClassOnce: c.neither,
		} {
			t.Run(c.boundary+" of "+string(class), func(t *testing.T) {
				t.Parallel()
				d := newDestination(t, class)
				if c.left == "a dispatch" { // long ago, so that nobody has to wait for the dead
					d.left(d.in, now().Add(-time.Minute))
				} else {
					leaveBehind(t, d.world, d.in, c.left)
				}
				if c.sent {
					d.sent(t)
				}
				wantState(t, d.ends(t, 2), want)
				entries := 1
				if class == agent.ClassOnce {
					entries = c.unsent
				}
				if n := len(d.service.Books().Entries); n != entries {
					t.Errorf("%d refunds in the books, want %d", n, entries)
				}
			})
		}
	}
}

func TestALostAnswerEndsAsTheDestinationAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault   payments.Fault
		entries int // where nobody can find out
	}{{payments.FaultDrop, 1}, {payments.FaultError, 1}, {payments.FaultLose, 0}, {payments.FaultRefuse, 0}} {
		for class, want := range map[agent.Class]agent.State{
			agent.ClassIdempotent: agent.StateCommitted, agent.ClassReconcilable: agent.StateCommitted, agent.ClassOnce: agent.StateUncertain,
		} {
			t.Run(string(c.fault)+" of "+string(class), func(t *testing.T) {
				t.Parallel()
				d := newDestination(t, class)
				d.service.Inflict(c.fault)
				res := d.ends(t, 1)
				wantState(t, res, want)
				entries := 1
				if class == agent.ClassOnce {
					entries = c.entries
				}
				if n := len(d.service.Books().Entries); n != entries {
					t.Errorf("%d refunds in the books, want %d: %+v", n, entries, res)
				}
			})
		}
	}
}
