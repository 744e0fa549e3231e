package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/worker"
)

// TestEachConfigurationIsOneThatAWorkerTakes loads them all as the worker does.
func TestEachConfigurationIsOneThatAWorkerTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{Destination: cell.HTTPKeyed},
		{Destination: cell.HTTPAsked, Renew: true},
		{Destination: cell.HTTPBlind, Expires: time.Minute},
		{Destination: cell.MCPKeyed},
		{Destination: cell.MCPAsked},
		{Destination: cell.MCPBlind},
	} {
		for _, c.Scenario = range []cell.Scenario{cell.Pay, cell.Undo} {
			t.Run(fmt.Sprintf("%s-%s", c.Scenario, c.Destination), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c)
				if _, err := worker.Load(w.builds[0].file); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestAScenarioRunsToItsEnd pays twice, the second time with a person's word, over HTTP and through an MCP server.
func TestAScenarioRunsToItsEnd(t *testing.T) {
	t.Parallel()
	for _, d := range []cell.Destination{cell.HTTPBlind, cell.MCPAsked} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{Scenario: cell.Pay, Destination: d})
			start(t, w, "")
			send(t, w, "m1")
			approve(t, w)
			if res := ended(t, w); res.Status != agent.StatusDone || len(res.Effects) != 0 {
				t.Errorf("%+v", res)
			}
			wantMade(t, w, "42 19.90", "43 29.90")
			if got := w.Model.Charges().Answers; got != 4 {
				t.Errorf("%d answers charged, want 4", got)
			}
			if (w.Pay == nil) != (d == cell.MCPAsked) || (w.BankBooks == "") != (d == cell.HTTPBlind) {
				t.Errorf("Pay %v, BankBooks %q", w.Pay, w.BankBooks)
			}
			wantShortTasks(t, w)
			out, errs, exit, err := w.Holdfast(t.Context(), "watch", w.Session, "--no-such-flag")
			if err != nil || exit != 2 {
				t.Errorf("a command that does not exist: exit %d, %v: %s%s", exit, err, out, errs)
			}
		})
	}
}

// wantShortTasks wants the session and its turn to give a silent worker up after [cell.WorkflowTask].
func wantShortTasks(t *testing.T, w *World) {
	t.Helper()
	for _, id := range []string{w.Session, agent.TurnID(w.Session, 1)} {
		d, err := w.Server.Client().DescribeWorkflow(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := d.RawResponse.GetExecutionConfig().GetDefaultWorkflowTaskTimeout().AsDuration(); got != cell.WorkflowTask {
			t.Errorf("%s: workflow tasks time out after %s, want %s", id, got, cell.WorkflowTask)
		}
	}
}

// TestASpareTakesOverFromAWorkerThatKillsItself does so while payments are taken back, of which the first worker took
// one back and told nobody.
func TestASpareTakesOverFromAWorkerThatKillsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Scenario: cell.Undo, Destination: cell.HTTPAsked})
	first := start(t, w, failpoint.UndoAfterCommit+":1=kill")
	door := filepath.Join(w.Dir, "door")
	spare := start(t, w, failpoint.WorkerReady+"=file:"+door)
	for _, p := range []*Worker{first, spare} {
		if err := p.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send(t, w, "m1")
	pending(t, w)
	if err := w.Signal(t.Context(), 0, agent.SignalCancel, agent.Cancel{Turn: 1}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Done():
	case <-time.After(patience):
		t.Fatal("the worker never came to its failpoint")
	}
	if !first.Killed() || spare.Killed() {
		t.Errorf("killed: first %v, spare %v", first.Killed(), spare.Killed())
	}
	wantMade(t, w, "42 19.90", "43 29.90", "void re_2")
	if err := os.WriteFile(door, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if res := ended(t, w); res.Status != agent.StatusCancelled || len(res.Effects) != 0 {
		t.Errorf("%+v", res)
	}
	wantMade(t, w, "42 19.90", "43 29.90", "void re_2", "void re_1")
	acted, err := w.Acted()
	if err != nil || len(acted) != 2 { // the other one is the spare's wait at its door
		t.Fatalf("acted %+v, %v", acted, err)
	}
	died := acted[1]
	if died.Name != failpoint.UndoAfterCommit || died.N != 1 || died.PID != first.PID() || time.Since(died.At) > patience {
		t.Errorf("acted %+v", died)
	}
	trace, err := w.Trace()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range trace {
		if p.PID == spare.PID() && p.Name == failpoint.UndoAfterAdoption && p.At.After(died.At) {
			return
		}
	}
	t.Errorf("the spare never came to %s: %+v", failpoint.UndoAfterAdoption, trace)
}

// TestAServerThatWasKilledGoesOnWithWhatItHad has a worker wait with an answer that it could not report meanwhile.
func TestAServerThatWasKilledGoesOnWithWhatItHad(t *testing.T) {
	t.Parallel()
	w, door := newWorldOfItsOwn(t, Config{Scenario: cell.Pay, Destination: cell.HTTPKeyed})
	start(t, w, failpoint.ToolAfterCommit+":1=file:"+door)
	send(t, w, "m1")
	eventually(t, "the worker is held", func() bool {
		acted, err := w.Acted()
		return err == nil && len(acted) == 1
	})
	w.Server.Crash()
	if err := os.WriteFile(door, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.Send(within, "m2", "Are you there?"); err == nil {
		t.Error("a server that was killed has taken a message")
	}
	if err := w.Server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	approve(t, w)
	if res := ended(t, w); res.Status != agent.StatusDone {
		t.Errorf("%+v", res)
	}
	wantMade(t, w, "42 19.90", "43 29.90")
}

// newWorldOfItsOwn makes a world with a server of its own, and names a file for which its worker may wait.
func newWorldOfItsOwn(t *testing.T, c Config) (w *World, door string) {
	t.Helper()
	if lab == nil {
		t.Skip("needs a Temporal server")
	}
	var err error
	if c.Server, err = lab.NewServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Server.Stop(); err != nil {
			t.Error(err)
		}
	})
	w = newWorld(t, c)
	return w, filepath.Join(w.Dir, "door")
}

// TestPolicyAndBuildChangeInTheMiddle denies the payments once a worker runs, whose agent is another one later.
func TestPolicyAndBuildChangeInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Scenario: cell.Pay, Destination: cell.HTTPKeyed})
	first := start(t, w, "")
	// Neither of these can take a configuration, and neither is waited for.
	start(t, w, failpoint.WorkerReady+"=file:"+filepath.Join(w.Dir, "never"))
	still := start(t, w, "")
	for _, p := range []*Worker{first, still} {
		eventually(t, "the worker polls", func() bool { _, polls := p.inForce(); return polls })
	}
	if err := still.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Deny(within); err != nil {
		t.Fatal(err)
	}
	still.Kill()
	send(t, w, "m1")
	if res := ended(t, w); res.Status != agent.StatusDone || res.Serial != 2 {
		t.Errorf("%+v", res)
	}
	wantMade(t, w)
	first.Kill()
	before := w.Model.Count()
	if _, err := w.StartOther(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	send(t, w, "m2")
	eventually(t, "the model is asked", func() bool { return w.Model.Count() > before })
	for i, r := range w.Model.Requests() {
		if other := strings.Contains(string(r.Raw), "You say why."); other != (i >= before) {
			t.Errorf("request %d of %d is of the other build: %v", i, before, other)
		}
	}
}

// TestWorkersKeepNothingAndEachStepContinuesAsNew looks at the histories that a cold world's worker leaves.
func TestWorkersKeepNothingAndEachStepContinuesAsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Scenario: cell.Pay, Destination: cell.HTTPKeyed, Cold: true, Renew: true})
	start(t, w, "")
	send(t, w, "m1")
	approve(t, w)
	ended(t, w)
	renewed := 0
	if trace, err := w.Trace(); err != nil {
		t.Fatal(err)
	} else {
		for _, p := range trace {
			if p.Name == failpoint.ContinueAfter {
				renewed++
			}
		}
	}
	if renewed < 3 {
		t.Errorf("%d runs continued as new, want one for each step but the last", renewed)
	}
	for _, id := range []string{w.Session, agent.TurnID(w.Session, 1)} {
		events := w.Server.Client().GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if q := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue(); q.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
				t.Errorf("%s: event %d is for the worker that has the run in its cache", id, e.GetEventId())
			}
		}
	}
}

// TestADamagedObjectIsFoundDamaged looks with the store's own eyes.
func TestADamagedObjectIsFoundDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Scenario: cell.Pay, Destination: cell.HTTPKeyed})
	start(t, w, "")
	send(t, w, "m1")
	scope, _ := pending(t, w)
	made, err := w.Made()
	if err != nil || len(made) != 1 {
		t.Fatalf("made %+v, %v", made, err)
	}
	s, err := store.Open(t.Context(), store.Config{URL: "file://" + w.Store()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	space := s.Space(scope)
	for _, test := range []struct {
		how  string
		want error
	}{{"", nil}, {"flipped", store.ErrDamaged}, {"truncated", store.ErrDamaged}, {"missing", store.ErrAbsent}} {
		if test.how != "" {
			path, err := w.Damage(string(store.KindDispatches), test.how)
			if err != nil || !strings.HasPrefix(path, w.Store()) {
				t.Errorf("%s: %q, %v", test.how, path, err)
			}
		}
		if _, err := space.Dispatch(t.Context(), made[0].Key); !errors.Is(err, test.want) {
			t.Errorf("%q: %v, want %v", test.how, err, test.want)
		}
	}
	if path, err := w.Damage(string(store.KindDispatches), "missing"); err == nil {
		t.Errorf("the last dispatch was damaged twice: %s", path)
	}
	if path, err := w.Damage(string(store.KindIntents), "scratched"); err == nil {
		t.Errorf("an unknown damage was done to %s", path)
	}
}

// TestAWorkerWhoseClockIsOffDoesItsWork is about the one hour that a clock is off after somebody has mended it by hand.
func TestAWorkerWhoseClockIsOffDoesItsWork(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{Scenario: cell.Pay, Destination: cell.HTTPBlind, Clock: off})
			began := time.Now()
			start(t, w, "")
			send(t, w, "m1")
			approve(t, w)
			if res := ended(t, w); res.Status != agent.StatusDone || len(res.Effects) != 0 {
				t.Errorf("%+v", res)
			}
			wantMade(t, w, "42 19.90", "43 29.90")
			trace, err := w.Trace()
			if err != nil || len(trace) == 0 {
				t.Fatalf("%+v, %v", trace, err)
			}
			// These are right only if the worker was wrong by as much.
			if early, late := trace[0].At.Sub(began), time.Since(trace[len(trace)-1].At); early < -time.Second || late < -time.Second {
				t.Errorf("the trace begins %s after the test and ends %s ago", early, late)
			}
		})
	}
}
