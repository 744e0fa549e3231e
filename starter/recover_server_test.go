package starter

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

func writeFile(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }

// altered is a state whose bytes are not those that were sealed, newer one of a schema that no worker here knows.
func altered(c *agent.Checkpoint) { c.State = strings.Replace(c.State, "{", "{ ", 1) }

func newer(c *agent.Checkpoint) {
	sealed, err := versioning.Seal(99, json.RawMessage(c.State))
	if err != nil {
		panic(err)
	}
	*c = *sealed
}

func TestRecover(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for name, spoil := range map[string]func(*agent.Checkpoint){"altered": altered, "newer": newer} {
		t.Run("a turn with a state that is "+name+" goes on and pays once", func(t *testing.T) {
			t.Parallel()
			recoversTurn(t, newStage(t, server, "turn-"+name), worker.Options{}, spoil)
		})
		t.Run("a session with a state that is "+name+" knows what it was sent", func(t *testing.T) {
			t.Parallel()
			recoversSession(t, newStage(t, server, "session-"+name), spoil)
		})
	}
	t.Run("a turn of a worker deployment goes on and pays once", func(t *testing.T) {
		t.Parallel()
		recoversTurn(t, newStage(t, server, "turn-pinned"), worker.Options{Deployment: "pinned", Build: "v1"}, altered)
	})
	t.Run("a session that the server would not hand out again is left alone", func(t *testing.T) {
		t.Parallel()
		s, o := newStage(t, server, "session-pinned"), worker.Options{Deployment: "auto", Build: "v1"}
		s.worker(o, &spoiler{checkpoint: altered})
		s.promote(o)
		for i := range 8 {
			s.ok("run", "asker", fmt.Sprint("hello ", i), "--session", s.queue)
		}
		s.matter(matterStuck, s.queue)
		s.fails(ExitError, "would never hand session", "recover", s.queue, "--yes")
	})
	t.Run("a run whose previous one this build cannot replay is not started again", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, server, "unlike")
		s.worker(worker.Options{}, &spoiler{checkpoint: altered, timer: true})
		s.ok("start", "helper", "pay", "--session", "unlike")
		s.matter(matterStuck, "unlike/turn-1")
		s.fails(ExitError, "this build could not go on with the run before it", "recover", "unlike/turn-1", "--yes")
		s.fails(ExitError, "unlike/turn-1 is stuck: holdfast recover unlike/turn-1", "recover", "unlike", "--yes")
	})
	t.Run("a run that has begun is not started again", func(t *testing.T) {
		t.Parallel()
		refusesBegun(t, newStage(t, server, "begun"))
	})
	t.Run("a run that nobody failed on is not started again", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, server, "fine")
		s.worker(worker.Options{})
		s.ok("run", "helper", "hello", "--session", "fine")
		s.fails(ExitError, "has begun: nothing is wrong", "recover", "fine", "--yes")
		s.fails(ExitError, "has ended", "recover", "fine/turn-1", "--yes")
		s.fails(ExitError, "there is no run of", "recover", "nosuch", "--yes")
	})
}

// life is the scope that a session says it has.
func (s *stage) life(session string) string {
	s.t.Helper()
	v, err := s.conn().view(s.t.Context(), session)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.Scope.String()
}

func recoversTurn(t *testing.T, s *stage, o worker.Options, spoil func(*agent.Checkpoint)) {
	t.Helper()
	id := s.queue
	stop := s.worker(o, &spoiler{checkpoint: spoil})
	s.promote(o)
	s.ok("start", "helper", "pay", "--session", id)
	m := s.matter(matterStuck, id+"/turn-1")
	if m.Command != "holdfast recover "+id+"/turn-1" || !strings.Contains(m.Why, "the state that was carried into the run") {
		t.Errorf("%+v", m)
	}
	life := s.life(id)
	s.ok("send", id, "--now", "and thanks") // which the stuck run receives
	stop()
	s.worker(o)
	if out := s.ok("show", id); !strings.Contains(out, "holdfast recover "+id+"/turn-1") {
		t.Errorf("show does not say what to do:\n%s", out)
	}
	var plan, done recovered
	s.json(&plan, "recover", id+"/turn-1", "--dry-run")
	s.fails(ExitUsage, "--yes", "recover", id+"/turn-1")
	s.fails(ExitError, "has ended", "recover", id+"/turn-1", "--yes", "--run", plan.Previous)
	if now := s.currentRun(id + ":turn-1"); plan.Recovered || now != plan.Run {
		t.Fatalf("--dry-run did something: %+v, the current run is %s", plan.Recovery, now)
	}
	var told, errs buffer // to somebody who watches all the time
	watched := make(chan int, 1)
	go func() {
		watched <- Main([]string{"watch", id, "--wait", "--address", s.server.Address()}, strings.NewReader(""), &told, &errs)
	}()
	told.await(t, "the worker cannot go on")
	s.json(&done, "recover", id+"/turn-1", "--yes")
	if !done.Recovered || done.NewRun == "" || len(done.Signals) != 1 || done.Signals[0].Sent {
		t.Errorf("%+v", done.Recovery)
	}
	end := s.end("watch", id, "--wait")
	if end.Status != agent.StatusDone || end.Answer != `heard "and thanks", 0 results` {
		t.Errorf("%+v", end)
	}
	if n := s.paid.Load(); n != 1 {
		t.Errorf("paid %d times", n)
	}
	code, out := <-watched, told.String()
	if code != ExitDone || strings.Count(out, "turn 1 started") != 1 || strings.Count(out, "tool pay") != 2 ||
		!strings.Contains(out, "started again by an operator") || strings.Contains(out, "terminated") {
		t.Errorf("whoever watched was told, and got exit code %d:\n%s", code, out)
	}
	s.await("the session hears of the turn", func() bool {
		v, err := s.conn().view(t.Context(), id)
		return err == nil && v.Running == 0 && v.Last != nil && v.Last.Status == agent.StatusDone
	})
	if again := s.life(id); again != life {
		t.Errorf("the life was %s and is %s", life, again)
	}
	s.ok("run", "helper", "hello", "--session", id)
	s.shownOnce(id)
}

// shownOnce checks that show tells each step of a recovered turn once, whatever runs it took.
func (s *stage) shownOnce(id string) {
	s.t.Helper()
	var turn shownTurn
	s.json(&turn, "show", id+"/turn-1")
	for i, step := range turn.Steps {
		if step.Step != i+1 {
			s.t.Errorf("step %d is shown in place %d", step.Step, i+1)
		}
	}
	if len(turn.Steps) != 2 {
		s.t.Errorf("%d steps", len(turn.Steps))
	}
}

func (s *stage) currentRun(workflow string) string {
	s.t.Helper()
	d, err := s.conn().describe(s.t.Context(), workflow, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

func recoversSession(t *testing.T, s *stage, spoil func(*agent.Checkpoint)) {
	t.Helper()
	id := s.queue
	stop := s.worker(worker.Options{}, &spoiler{checkpoint: spoil})
	for i := range 8 { // after which it goes on in a new run
		s.ok("run", "asker", fmt.Sprint("hello ", i), "--session", id, "--message-id", fmt.Sprint("m-", i))
	}
	if m := s.matter(matterStuck, id); m.Command != "holdfast recover "+id {
		t.Errorf("%+v", m)
	}
	stop()
	s.worker(worker.Options{})
	s.ok("recover", id, "--yes")
	last := s.end("run", "asker", "and now", "--session", id)
	if last.Turn != 9 || last.Answer != `heard "and now", 0 results` {
		t.Errorf("%+v", last)
	}
	var again accepted
	s.json(&again, "send", id, "hello 3", "--message-id", "m-3")
	if !again.Duplicate || again.Turn != 4 {
		t.Errorf("the session forgot a message: %+v", again)
	}
}

func refusesBegun(t *testing.T, s *stage) {
	t.Helper()
	stop := s.worker(worker.Options{Build: "first"}, &spoiler{timer: true})
	_, errs, code := s.holdfast("run", "asker", "pay", "--session", "begun")
	if code != ExitWaiting {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	stop()
	stopOther := s.worker(worker.Options{Build: "other"})
	s.ok("extend", "begun", "--steps", "1")
	m := s.matter(matterStuck, "begun/turn-1")
	if !strings.Contains(m.Why, "a command was removed") || !strings.Contains(m.Advice, "build first went on with it last") {
		t.Errorf("%+v", m)
	}
	s.fails(ExitError, "has begun: nothing is wrong with the state", "recover", "begun/turn-1", "--yes")
	stopOther()
	s.worker(worker.Options{Build: "first"}, &spoiler{timer: true}) // a worker of the right build goes on with it
	s.ok("cancel", "begun")
	if end := s.end("watch", "begun"); end.Status != agent.StatusCancelled {
		t.Errorf("%+v", end)
	}
}

// promote makes the worker's build the current one of its deployment, if it has one.
func (s *stage) promote(o worker.Options) {
	s.t.Helper()
	if o.Deployment == "" {
		return
	}
	s.await("a current build", func() bool { return s.setCurrent(o.Deployment, o.Build) == nil })
}
