package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/starter"
)

// checkName is what -only chooses the check of a deploy by.
const checkName = "deploy check"

// A checked is what "holdfast deploy check" takes, as a process of its own, over sessions that are open.
type checked struct {
	One  checkedSet   `json:"one"`  // of the many, alone: what the command takes to begin
	Many checkedSet   `json:"many"` // of one turn each
	Sets []checkedSet `json:"sets"` // of few turns each, and of many
}

// A checkedSet is one set of open sessions. Their agent is pinned and was changed since, so that of each session
// the definition is read from the store.
type checkedSet struct {
	Sessions int        `json:"sessions"`
	Turns    int        `json:"turns"` // of each session
	Reps     []checkRun `json:"reps"`
}

// A checkRun is one run of the command over a set.
type checkRun struct {
	Wall   float64 `json:"wall"`   // milliseconds
	CPU    float64 `json:"cpu"`    // milliseconds, of the process
	Memory float64 `json:"memory"` // MiB: its largest resident set
	// Each and EachCPU are milliseconds for each session after the first.
	Each    float64 `json:"each"`
	EachCPU float64 `json:"eachCPU"`
}

func (s checkedSet) median(of func(checkRun) float64) float64 { return median(each(s.Reps, of)) }

// by is the median over the repetitions of s's figure by o's: both were measured after one another.
func (s checkedSet) by(o checkedSet, of func(checkRun) float64) float64 {
	var out []float64
	for i := range min(len(s.Reps), len(o.Reps)) {
		if d := of(o.Reps[i]); d > 0 {
			out = append(out, of(s.Reps[i])/d)
		}
	}
	return median(out)
}

func (s checkedSet) prefix() string { return fmt.Sprintf("check-%d-", s.Turns) }

// checkSets returns the many and those that are compared. A run of a session continues as new after eight turns and
// carries a checkpoint from then on: after 2 turns it is short, after 7 as long as it gets, and after 10 and 42 it is
// short again, with a checkpoint.
func checkSets(quick bool) checked {
	many, few := 1000, 50
	if quick {
		many, few = 100, 10
	}
	return checked{
		One:  checkedSet{Sessions: 1, Turns: 1},
		Many: checkedSet{Sessions: many, Turns: 1},
		Sets: []checkedSet{{Sessions: few, Turns: 2}, {Sessions: few, Turns: 7}, {Sessions: few, Turns: 10}, {Sessions: few, Turns: 42}},
	}
}

// check makes the sessions, all of which stay open, and checks them with the file of the next rollout.
func (l *lab) check(ctx context.Context, o options) (checked, error) {
	c := checkSets(o.quick)
	file, err := l.checkConfig("check", 1, instructions)
	if err != nil {
		return c, err
	}
	w, err := spawn("-variant", string(holdfast), "-address", l.server.Address(), "-config", file)
	if err != nil {
		return c, err
	}
	defer w.stop()
	sets := []*checkedSet{&c.Many}
	for i := range c.Sets {
		sets = append(sets, &c.Sets[i])
	}
	for _, s := range sets {
		progress("%s: %d sessions of %d turns ...", checkName, s.Sessions, s.Turns)
		if err := l.openSessions(ctx, *s); err != nil {
			return c, err
		}
	}
	if file, err = l.checkConfig("next", 2, "You do what is asked for, and swiftly."); err != nil {
		return c, err
	}
	reps := 11 // a second each, and what is compared is small
	if o.quick {
		reps = 1
	}
	for range reps {
		if err := l.checkAll(ctx, file, &c.One, sets); err != nil {
			return c, err
		}
	}
	return c, nil
}

// checkAll checks each set once, and first a single session.
func (l *lab) checkAll(ctx context.Context, file string, single *checkedSet, sets []*checkedSet) error {
	one, err := l.runCheck(ctx, file, single.prefix()+"00000", 1)
	if err != nil {
		return err
	}
	single.Reps = append(single.Reps, one)
	for _, s := range sets {
		r, err := l.runCheck(ctx, file, s.prefix(), s.Sessions)
		if err != nil {
			return err
		}
		n := float64(s.Sessions - 1)
		r.Each, r.EachCPU = (r.Wall-one.Wall)/n, (r.CPU-one.CPU)/n
		s.Reps = append(s.Reps, r)
	}
	return nil
}

// checkConfig writes a configuration. Its store is in a folder also where the others' are in memory: the check is
// another process than the worker.
func (l *lab) checkConfig(name string, serial int, instructions string) (string, error) {
	path := filepath.Join(l.dir, name+".yaml")
	yaml := fmt.Sprintf(`serial: %d
store: {url: "file://%s"}
worker: {task_queue: check}
policy: {rules: [{name: everything, then: allow}], upgrade: pin}
models:
  scripted: {base_url: %q}
agents:
  %s: {instructions: %q, model: scripted, tools: [%s]}
`, serial, filepath.Join(l.dir, "store-check"), l.model.URL(), agentActs, instructions, toolActs)
	return path, os.WriteFile(path, []byte(yaml), 0o600)
}

// openSessions makes the sessions of a set, many at a time, and gives each its turns.
func (l *lab) openSessions(ctx context.Context, s checkedSet) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(50)
	for i := range s.Sessions {
		g.Go(func() error {
			for n := range s.Turns {
				if _, err := l.send(ctx, "check", agentActs, fmt.Sprintf("%s%05d", s.prefix(), i), n+1, job{0, 0}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// runCheck runs the command over the sessions whose ids begin so, and holds its answer against what there is.
func (l *lab) runCheck(ctx context.Context, file, prefix string, sessions int) (r checkRun, err error) {
	exe, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, exe, "cli", "deploy", "check", "-o", "json", "--quiet", "--config", file,
		"--address", l.server.Address(), "--query", fmt.Sprintf("WorkflowId STARTS_WITH '%s'", prefix))
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	began := time.Now()
	err = cmd.Run()
	r.Wall = ms(time.Since(began))
	if err != nil {
		return r, fmt.Errorf("%s of %d sessions: %w: %s%s", checkName, sessions, err, stderr.String(), cut(out.String()))
	}
	var said struct {
		Compared int `json:"compared"`
		Drift    []struct {
			Kind     string `json:"kind"`
			Then     string `json:"then"`
			Sessions int    `json:"sessions"`
		} `json:"drift"`
	}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		return r, err
	}
	if d := said.Drift; said.Compared != sessions || len(d) == 0 || d[0].Sessions != sessions || d[0].Then != "keeps" {
		return r, fmt.Errorf("%s says of %d pinned sessions whose agent was changed: %+v", checkName, sessions, said)
	}
	r.CPU = ms(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.Memory = float64(u.Maxrss) / 1024 // KiB on Linux: getrusage(2)
	}
	return r, nil
}

func cut(s string) string { return s[:min(len(s), 2000)] }

// cliMain is the command line of a program with the job's tools.
func cliMain(args []string) int {
	own, err := tools()
	if err != nil {
		return exit(err)
	}
	return starter.Main(args, os.Stdin, os.Stdout, os.Stderr, own...)
}
