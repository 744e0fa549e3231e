package starter

import (
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

func TestForkOnARealServer(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "fork")
	s.worker(worker.Options{})
	s.ok("run", "asker", "hello", "--session", "source")
	s.ok("run", "asker", "second", "--session", "source")

	var f forked
	s.json(&f, "fork", "source", "--at", "turn-1", "--session", "copy", "--as", "alice", "--reason", "to try")
	if f.Result != wordAccepted || f.Origin == nil || f.Origin.By != "alice (claimed)" || f.Origin.Turn != 1 || f.Agent != "asker" {
		t.Errorf("%+v", f)
	}
	if out := s.ok("transcript", "copy"); !strings.Contains(out, "hello") || strings.Contains(out, "second") {
		t.Errorf("the fork knows:\n%s", out)
	}
	if out := s.ok("sessions"); !strings.Contains(out, "source/turn-1") {
		t.Errorf("sessions does not say where it is from:\n%s", out)
	}
	out := s.ok("fork", "source/turn-2", "--agent", "helper", "third")
	if !strings.Contains(out, `heard "third"`) {
		t.Errorf("the answer is %q", out)
	}
	again := s.end("fork", "source", "--at", "2", "--message-id", "m", "once")
	twice := s.end("fork", "source", "--at", "2", "--message-id", "m", "once")
	if again.Session != twice.Session || twice.Turn != 1 || again.Status != agent.StatusDone {
		t.Errorf("%+v, then %+v", again, twice)
	}
	s.fails(ExitError, "is taken", "fork", "source", "--at", "1", "--session", "source")
	s.fails(ExitError, "is taken", "fork", "source", "--at", "2", "--session", "copy")
	s.fails(ExitRefused, "the fork was refused: ", "fork", "source", "--at", "9", "--session", "late")
	s.fails(ExitRefused, "the fork was refused: ", "fork", "source", "--at", "9", "--session", "later", "hello")
	s.fails(ExitError, "no session", "fork", "nosuch", "--at", "1")
	s.fails(ExitRefused, "the fork was refused: ", "fork", "source~00000000", "--at", "1", "--agent", "asker")

	var shown shownTurn
	s.ok("run", "asker", "and now", "--session", "copy")
	s.json(&shown, "show", "copy")
	if shown.Origin == nil || shown.Origin.From.Session != "source" {
		t.Errorf("origin %+v", shown.Origin)
	}
	if text := s.ok("show", "copy"); !strings.Contains(text, "forked from") {
		t.Errorf("show says nothing of the origin:\n%s", text)
	}
}
