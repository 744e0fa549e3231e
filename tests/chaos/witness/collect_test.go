//go:build unix

package witness_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// patience bounds every wait in these tests; nothing waits for it when all goes well.
const patience = 100 * time.Second

// lab is shared by all tests; nil in short runs, which have no server.
var lab *world.Lab

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if testing.Short() {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "holdfast-witness-")
		if err == nil {
			defer os.RemoveAll(dir)
			lab, err = world.Open(context.Background(), world.Options{Dir: dir})
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

// A stand is where a test stands: a world and what is heard of it.
type stand struct {
	*testing.T
	w   *world.World
	src witness.Source
}

// stage makes a world whose model pays 42 and 43, the latter with a person's word.
func stage(t *testing.T, c world.Config) stand {
	t.Helper()
	if lab == nil {
		t.Skip("needs a Temporal server and worker processes")
	}
	c.Name, c.Scenario = t.Name(), cell.Pay
	c.Model = func(r modeltest.Request) modeltest.Step {
		calls := []modeltest.Call{
			{ID: "a", Name: c.ToolName(), Args: `{"order":"42","amount":"19.90"}`},
			{ID: "b", Name: c.ToolName(), Args: `{"order":"43","amount":"29.90"}`},
		}
		if n := len(r.Results()); n < len(calls) {
			return modeltest.Want(calls[n])
		}
		return modeltest.Say("done")
	}
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
	return stand{t, w, witness.Source{
		Client: w.Server.Client(), Session: w.Session, Turns: 1, Store: w.Store(), Books: w.Made,
		Charges: func() int { return w.Model.Charges().Answers },
	}}
}

func (s stand) worker(rules string) *world.Worker {
	s.Helper()
	p, err := s.w.Start(s.Context(), rules)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s stand) send(id string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.w.Send(ctx, id, "Refund what was broken."); err != nil {
		s.Fatal(err)
	}
}

// turn waits until the first turn is as wanted, and returns it.
func (s stand) turn(what string, ok func(witness.Turn) bool) witness.Turn {
	s.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if all, err := witness.Turns(s.Context(), s.src); err == nil && len(all) > 0 && ok(all[0]) {
			return all[0]
		}
	}
	all, err := witness.Turns(s.Context(), s.src)
	s.Fatalf("waited in vain until the turn %s: %+v, %v", what, all, err)
	return witness.Turn{}
}

// approve has the world's approver approve what waits.
func (s stand) approve() {
	s.Helper()
	t := s.turn("waits", func(t witness.Turn) bool { return t.Status == agent.StatusWaiting && len(t.Approvals) == 1 })
	key, _ := agent.ParseKey(t.Approvals[0].Key)
	d, err := s.w.Decision(key.Scope, t.Approvals[0], agent.ChoiceApprove)
	if err == nil {
		err = s.w.Signal(s.Context(), 1, agent.SignalApproval, d)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s stand) collect() witness.Story {
	s.Helper()
	got, err := witness.Collect(s.Context(), s.src)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

func final(t witness.Turn) bool { return t.Status.Final() }

// TestEveryWitnessIsHeard kills a worker of which nobody can know what it has done, in a turn of several runs. Then it
// stops all workers, and takes away from the store.
func TestEveryWitnessIsHeard(t *testing.T) {
	t.Parallel()
	s := stage(t, world.Config{Destination: cell.HTTPBlind, Renew: true})
	first := s.worker(failpoint.ToolAfterCommit + ":1=kill")
	s.send("m1")
	<-first.Done()
	second := s.worker("")
	s.approve()
	shown := s.turn("ends", final)
	got := s.collect()
	made, err := s.w.Made()
	if err != nil || len(made) != 2 {
		t.Fatalf("made %+v, %v", made, err)
	}
	if !slices.Equal(got.Made, made) || got.Charges != 3 || got.Gaps != 0 || got.Queued != 0 || len(got.Stuck)+len(got.Replay) != 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Dispatches) != 2 || len(got.Unresolved) != 1 || got.Unresolved[0].Key != made[0].Key {
		t.Errorf("dispatched %+v, unresolved %+v", got.Dispatches, got.Unresolved)
	}
	if len(got.Turns) != 1 {
		t.Fatalf("turns %+v", got.Turns)
	}
	wantTurn(t, got.Turns[0], made)
	got.Shown, got.Calm = []witness.Turn{shown}, true
	if v := witness.Judge(got, got, cell.HTTPBlind, cell.Same); len(v) > 0 {
		t.Errorf("judged: %+v", v)
	}
	second.Kill()
	s.lose(made)
}

// wantTurn wants a turn in whose first payment nobody can know whether it was made.
func wantTurn(t *testing.T, turn witness.Turn, made []witness.Entry) {
	t.Helper()
	if turn.Number != 1 || turn.Status != agent.StatusDone || turn.Waiting != "" || turn.Mute || !turn.Closed || turn.Answer != agent.DigestOf([]byte("done")) {
		t.Errorf("%+v", turn)
	}
	for who, effects := range map[string][]agent.Effect{"closing record": turn.Effects, "history": turn.Replayed} {
		if len(effects) != 2 || effects[0].Key != made[0].Key || effects[0].State != agent.StateUncertain || effects[1].State != agent.StateCommitted {
			t.Errorf("%s: %+v", who, effects)
		}
	}
	if len(turn.Approvals) != 1 || turn.Approvals[0].Outcome != agent.OutcomeApproved {
		t.Errorf("approvals %+v", turn.Approvals)
	}
	if len(turn.Said) != 6 || turn.Said[0] != "user: Refund what was broken." || turn.Said[5] != "assistant: done" {
		t.Errorf("said %q", turn.Said)
	}
	if h := turn.Heard; len(h) != 2 || h[0].Step != 1 || h[1].Step != 2 || h[1].Call != 1 || h[1].Tool != "pay" ||
		!strings.Contains(h[0].Text, "not known") || !strings.Contains(h[1].Text, `"refund"`) {
		t.Errorf("heard %+v", h)
	}
}

// lose sends a message that no worker takes, and damages what there is of the session in the store.
func (s stand) lose(made []witness.Entry) {
	s.Helper()
	if err := s.w.Signal(s.Context(), 0, agent.SignalSettle, agent.Settlement{Key: made[0].Key}); err != nil {
		s.Fatal(err)
	}
	if _, err := s.w.Damage("dispatches", "flipped"); err != nil {
		s.Fatal(err)
	}
	folder, err := filepath.Glob(filepath.Join(s.w.Store(), "*", "segments"))
	if err != nil || len(folder) != 1 || os.RemoveAll(folder[0]) != nil {
		s.Fatalf("segments %q, %v", folder, err)
	}
	s.src.Patience, s.src.Turns = time.Second, 2
	got := s.collect()
	if len(got.Unreadable) != 1 || len(got.Dispatches) != 1 {
		s.Errorf("dispatched %+v, unreadable %q", got.Dispatches, got.Unreadable)
	}
	if got.Gaps == 0 {
		s.Errorf("nothing is missing in a transcript without a segment: %+v", got.Turns)
	}
	if len(got.Stuck) != 2 || !strings.Contains(got.Stuck[0], "workflow task") || !strings.Contains(got.Stuck[1], "1 turns of 2") {
		s.Errorf("stuck %q", got.Stuck)
	}
}

// TestWhoComesLateIsHeard freezes a worker that has sent; the session settles what it left uncertain, after the turn was
// shown.
func TestWhoComesLateIsHeard(t *testing.T) {
	t.Parallel()
	s := stage(t, world.Config{Destination: cell.MCPBlind})
	door := filepath.Join(s.w.Dir, "door")
	frozen := s.worker(failpoint.ToolAfterCommit + ":1=file:" + door)
	s.send("m1")
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if acted, err := s.w.Acted(); err == nil && len(acted) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the worker never came to its failpoint")
		}
	}
	if err := frozen.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.worker("")
	s.approve()
	shown := s.turn("ends", final)
	if shown.Effects[0].State != agent.StateUncertain {
		t.Fatalf("shown %+v", shown.Effects)
	}
	if err := errors.Join(os.WriteFile(door, nil, 0o600), frozen.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	s.turn("is settled", func(t witness.Turn) bool { return t.Effects[0].State == agent.StateCommitted })
	got := s.collect()
	if len(got.Unresolved) != 0 || got.Turns[0].Effects[0].State != agent.StateCommitted || got.Turns[0].Replayed[0].State != agent.StateUncertain {
		t.Errorf("%+v, unresolved %+v", got.Turns, got.Unresolved)
	}
	got.Shown, got.Calm = []witness.Turn{shown}, true
	if v := witness.Judge(got, got, cell.MCPBlind, cell.Same); len(v) > 0 {
		t.Errorf("judged: %+v", v)
	}
}
