package activities

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// frozen is a world whose n-th request of a kind to the store takes three hours.
func frozen(t *testing.T, n int, op, kind string, f *fake) *world {
	t.Helper()
	s := newUnsteady(t, func(_ context.Context, o, name string) (x fault) {
		if o == op && strings.Contains(name, "/"+kind+"/") {
			if n--; n == 0 {
				x.after = 3 * time.Hour
			}
		}
		return x
	})
	return worldOver(t, s, f)
}

// What an attempt had found out before its machine stood still does not count any more when it goes on: others have
// looked since, and a person has said what became of it.
func TestAnAttemptThatStoodStillBeforeItSendsAgainSendsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		class agent.Class
		left  time.Duration // since the first attempt's dispatch
		op    string
		kind  string
		n     int
	}{
		"after the look for an outcome":     {agent.ClassIdempotent, time.Minute, "read", "results", 1},
		"after the second claim of intents": {agent.ClassReconcilable, time.Hour, "create", "intents", 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := askable(t, c.class, 0, nil, tool.Absent)
				w := frozen(t, c.n, c.op, c.kind, f)
				in := w.asked("pay", `{}`)
				w.dispatch(in, now().Add(-c.left))
				time.AfterFunc(time.Hour, func() {
					said := agent.ToolResult{State: agent.StateFailed, Attempt: 1, Note: "settled by ann"}
					if _, _, err := w.space().CreateResult(t.Context(), store.Result{Key: in.Key(), Tool: &said}); err != nil {
						t.Error(err)
					}
				})
				_, _, err := w.attempt(t.Context(), 2, Progress{}, in)
				wantApp(t, err, agent.ErrTool, false)
				if f.count() != 0 {
					t.Errorf("sent %d times", f.count())
				}
				wantState(t, w.mustAttempt(3, in), agent.StateFailed)
			})
		})
	}
}

// While a machine stands still its monotonic clock may too.
func TestTimeThatOnlyTheWallClockSawPassEndsAWindowAndAnApproval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := spec(agent.ClassIdempotent)
		s.Window = time.Hour
		f := newFake(t, s, nil)
		w := newWorld(t, "mem://", f)
		in := granted(w.asked("pay", `{}`), "")
		w.dispatch(in, now())
		p := &pulse{ctx: t.Context(), attempt: 2, started: time.Now(), began: time.Now(), wall: time.Now().Add(-2 * time.Hour).Round(0), beat: func(Progress) {}}
		res, err := w.tool(p, in)
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateUncertain)
		if f.count() != 0 {
			t.Errorf("sent %d times after the key's window", f.count())
		}
		r := &toolRun{pulse: p, in: in}
		if !r.expired() {
			t.Error("the approval, which was good for an hour, has not expired")
		}
	})
}
