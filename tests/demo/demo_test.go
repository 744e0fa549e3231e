package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// patience bounds every wait. Nothing waits for it when all goes well.
const patience = 3 * time.Minute

// binary is the command under test, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "holdfast-demo-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "holdfast")
		if out, err := exec.Command("go", "build", "-o", binary, "github.com/holdfast-run/holdfast").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "holdfast does not build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// A run is one demo as a subprocess. Its folder for temporary files is its own.
type run struct {
	t    *testing.T
	cmd  *exec.Cmd
	tmp  string
	mark string // stands in the environment of the demo and of all that it starts
	out  *output
	done chan struct{}
	// heard is closed when all that was said on a terminal was read; nil where there is none.
	heard chan struct{}
}

// start starts a demo without a terminal; env replaces variables of ours.
func start(t *testing.T, env []string, args ...string) *run {
	t.Helper()
	r := prepare(t, env, args...)
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	r.begin()
	return r
}

// prepare returns a demo that has not begun.
func prepare(t *testing.T, env []string, args ...string) *run {
	t.Helper()
	r := &run{t: t, tmp: t.TempDir(), out: newOutput(), done: make(chan struct{})}
	r.mark = "HOLDFAST_TEST_MARK=" + r.tmp
	r.cmd = exec.Command(binary, append([]string{"demo"}, args...)...)
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.tmp, r.mark, "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "OPENAI_MODEL=")
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.WaitDelay = 5 * time.Second
	return r
}

// begin starts the demo and has it end with the test.
func (r *run) begin() {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // the tests look at the state
		if r.heard != nil {
			<-r.heard
		}
		close(r.done)
	}()
	r.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
	})
}

// ends waits for the exit code; -1 stands for a signal.
func (r *run) ends() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Fatalf("the demo did not end; it said:\n%s", r.out)
	}
	return r.cmd.ProcessState.ExitCode()
}

// says waits until the demo has printed a text.
func (r *run) says(text string) {
	r.t.Helper()
	timeout := time.After(patience)
	for {
		seen, more := r.out.look(text)
		if seen {
			return
		}
		select {
		case <-more:
		case <-r.done:
			if seen, _ := r.out.look(text); !seen {
				r.t.Fatalf("the demo ended before it said %q:\n%s", text, r.out)
			}
			return
		case <-timeout:
			r.t.Fatalf("the demo did not say %q:\n%s", text, r.out)
		}
	}
}

// cleanFolder fails when the demo left files.
func (r *run) cleanFolder() {
	r.t.Helper()
	left, err := os.ReadDir(r.tmp)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(left) > 0 {
		r.t.Errorf("the demo left %v in its folder", left)
	}
}

// good is what a demo says whose refund was approved, in this order.
var good = []string{
	`http://127\.0\.0\.1:\d+/namespaces/default/workflows/order-42:turn-1`,
	`tool refund waits for an approval, rule large-refunds`,
	`arguments +\| 31 bytes`,
	`digest +\| [0-9a-f]{64} ⟨computed`,
	`accepted: approved by (demo|you); the action goes ahead`,
	`KILL +SIGKILL to the worker, process \d+: the approval is there, and nothing was sent`,
	`a new one starts`,
	`payments +committed the refund`,
	`KILL +SIGKILL to the worker, process \d+: the money has moved`,
	`a new one starts`,
	`asked again under the same key`,
	`agent +Order 42 has been refunded`,
	`The books: 1 refund of 19\.90 for order 42, 2 requests with the same key`,
	`The ledger: 1 effect\s+refund 19\.90 42: committed, rule large-refunds, policy [0-9a-f]{16}`,
	`approved by (demo|you), signed`,
	`From the first kill to the finished turn: \d`,
}

// inOrder fails unless the demo said all of it, one after the other.
func (r *run) inOrder(patterns []string) {
	r.t.Helper()
	rest := r.out.String()
	for _, want := range patterns {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		if at == nil {
			r.t.Errorf("the demo did not say %s, or not at its place:\n%s", want, r.out)
			return
		}
		rest = rest[at[1]:]
	}
}

func TestAWorkerKilledAfterTheApprovalAndAfterThePaymentRefundsOnce(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	if code := r.ends(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, r.out)
	}
	t.Log(r.out)
	r.inOrder(good)
	r.inOrder([]string{`demo +there is no terminal to ask at: the demo approves`, `accepted: approved by demo`})
	r.cleanFolder()
	r.nobodyLeft()
}

func TestAModelThatNeverPaysIsNoDemo(t *testing.T) {
	t.Parallel()
	model := modeltest.ForTest(t, modeltest.Config{Key: "a-secret-of-a-test", Func: func(modeltest.Request) modeltest.Step {
		return modeltest.Say("I would rather not.")
	}})
	r := start(t, []string{"OPENAI_API_KEY=a-secret-of-a-test", "OPENAI_BASE_URL=" + model.URL(), "OPENAI_MODEL=shy"})
	if code := r.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if said := r.out.String(); !strings.Contains(said, "the model never asked for it") {
		t.Errorf("the demo does not say what went wrong:\n%s", said)
	}
	requests := model.Requests()
	if len(requests) != 1 || requests[0].Model != "shy" {
		t.Errorf("the model of OPENAI_MODEL was asked %d times, want once", len(requests))
	}
	r.nobodyLeft()
}

func TestWithoutATemporalCommandTheDemoSaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := start(t, []string{"HOLDFAST_TEMPORAL=" + filepath.Join(t.TempDir(), "none")})
	if code := r.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if said := r.out.String(); !strings.Contains(said, "make tools") {
		t.Errorf("the demo does not say what to do:\n%s", said)
	}
	r.nobodyLeft()
}

func TestCtrlCAtAnyMomentLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, moment := range []struct {
		name, after string
		args        []string
		code        int
	}{
		{"while the server starts", "payments service", nil, 130},
		{"before the question", "look at it", nil, 130},
		{"while the model thinks", "you ", nil, 130},
		{"while the approval is sent", "the demo approves", nil, 130},
		{"right after the first kill", "KILL", nil, 130},
		{"right after the second kill", "the money has moved", nil, 130},
		{"while the new worker starts", "a new one starts", nil, 130},
		{"when all is done", "Still running", []string{"--keep"}, 0},
	} {
		t.Run(moment.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, nil, moment.args...)
			r.says(moment.after)
			if err := r.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			if code := r.ends(); code != moment.code {
				t.Errorf("exit code %d, want %d:\n%s", code, moment.code, r.out)
			}
			r.cleanFolder()
			r.nobodyLeft()
		})
	}
}

func TestAKilledDemoTakesItsPartsAlong(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	r.says("you ")
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.ends()
	r.nobodyLeft()
}

// output is what a process prints, for somebody who waits for words in it.
type output struct {
	mu   sync.Mutex
	all  bytes.Buffer
	more chan struct{} // closed and replaced by every write
}

var _ io.Writer = (*output)(nil)

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.all.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// look says whether a text was printed and returns what is closed when there is more.
func (o *output) look(text string) (seen bool, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.all.String(), text), o.more
}
