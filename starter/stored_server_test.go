package starter

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

// What a turn answers may be too large for a message of Temporal's, too.
func TestALongAnswerIsReadFromTheStore(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "stored")
	s.worker(worker.Options{})
	s.ok("start", "asker", "pay", "--session", "long")
	turn := agent.TurnID("long", 1)
	s.await("the turn waits", func() bool {
		var v agent.ApprovalsView
		return s.conn().ask(t.Context(), turn, agent.QueryApprovals, &v) == nil && len(v.Approvals) == 1
	})
	for _, id := range []string{"m1", "m2"} {
		steer := agent.Message{ID: id, Text: strings.Repeat("x", 100_000), Now: true}
		h, err := s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: "long", UpdateName: agent.UpdateSend, Args: []any{steer}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := func(config string) (v agent.TurnView, err error) {
		c, err := (&App{config: config, address: s.server.Address()}).connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.await("the turn has both messages", func() bool {
			err = c.ask(t.Context(), turn, agent.QueryTurn, &v)
			return errors.Is(err, errStored) || len(v.Steering) == 2
		})
		return v, err
	}
	if v, err := asked(s.file); err != nil || len(v.Steering) != 2 || len(v.Steering[1].Text) != 100_000 {
		t.Errorf("%d messages, %v", len(v.Steering), err)
	}
	_, err := asked(filepath.Join(t.TempDir(), "none.yaml"))
	if _, hint := explain(err); !errors.Is(err, errStored) || !strings.Contains(hint, "--config") {
		t.Errorf("where no store is at hand: %v, %q; want %v and what to do", err, hint, errStored)
	}
}

// Without the store, nobody here can see which turn took a message that is as long as one may be: the session says it.
func TestALongMessageBehindOthersFindsItsTurnWithoutTheStore(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "behind")
	s.worker(worker.Options{})
	s.ok("start", "asker", "pay", "--session", "busy")
	s.await("the first turn waits", func() bool {
		var v agent.ApprovalsView
		return s.conn().ask(t.Context(), agent.TurnID("busy", 1), agent.QueryApprovals, &v) == nil && len(v.Approvals) == 1
	})
	file := filepath.Join(t.TempDir(), "message.txt")
	if err := writeFile(file, []byte(strings.Repeat("x", agent.MaxMessage))); err != nil {
		t.Fatal(err)
	}
	away := func(args ...string) (out, errs string, code int) {
		var o, e buffer
		args = append(args, "--address", s.server.Address(), "--config", filepath.Join(t.TempDir(), "none.yaml"), "--task-queue", s.queue)
		code = Main(args, strings.NewReader(""), &o, &e)
		return o.String(), e.String(), code
	}
	done := make(chan string)
	for _, id := range []string{"second", "third"} {
		go func() {
			out, errs, code := away("send", "busy", "--file", file, "--message-id", id, "--follow", "-o", "json")
			done <- fmt.Sprintf("%s: code %d: %s%s", id, code, out, errs)
		}()
		s.await("it waits for its turn", func() bool {
			v, err := s.conn().view(t.Context(), "busy")
			return err == nil && v.Queued == map[string]int{"second": 1, "third": 2}[id]
		})
	}
	s.holdfast("cancel", "busy")
	for range 2 {
		said := <-done
		id, _, _ := strings.Cut(said, ":")
		want := fmt.Sprintf(`"turn":%d,"status":"done"`, map[string]int{"second": 2, "third": 3}[id])
		if !strings.Contains(said, want) || !strings.Contains(said, ": code 0:") {
			t.Errorf("%.2000s\nwant %s", said, want)
		}
	}
}
