//go:build failpoint

package failpoint

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestARuleThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"tool.after_commit":                "want name[:n[-m]]=action",
		"tool.nowhere=kill":                `there is no place "tool.nowhere"`,
		"tool.after_commit:0=kill":         `"0" are no passings`,
		"tool.after_commit:x=kill":         `"x" are no passings`,
		"tool.after_commit:=kill":          `"" are no passings`,
		"tool.after_commit:3-=kill":        `"3-" are no passings`,
		"tool.after_commit:3-2=kill":       `"3-2" are no passings`,
		"tool.after_commit:-2=kill":        `"-2" are no passings`,
		"tool.after_commit=kill:now":       "is no action",
		"tool.after_commit=freeze":         "want freeze:5s",
		"tool.after_commit=freeze:0s":      "want freeze:5s",
		"tool.after_commit=hang":           "want hang:5s",
		"tool.after_commit=hang:-1s":       "want hang:5s",
		"tool.after_commit=file:":          "want file:/path",
		"store.before_write=error:":        `"" is no error`,
		"store.before_write=error:ENOSPCE": `"ENOSPCE" is no error`,
		"tool.after_commit=explode":        "is no action",
	} {
		rules, err := parse("model.after_answer=kill, " + text)
		if err == nil {
			t.Errorf("parse(%q) = %v, want an error", text, rules)
		} else if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("parse(%q): %v, want the rule and %s", text, err, why)
		}
	}
}

func TestARuleActsAtItsPassingsAndNoOthers(t *testing.T) {
	t.Parallel()
	p := newPoints(t, "tool.after_commit:2=error, tool.after_dispatch:2-3=error, model.after_answer=error")
	for place, want := range map[string][]bool{
		ToolAfterCommit:    {false, true, false, false},
		ToolAfterDispatch:  {false, true, true, false},
		ModelAfterAnswer:   {true, true, true, true},
		ModelBeforeRequest: {false, false, false, false},
	} {
		var got []bool
		for range want {
			got = append(got, p.pass(place) != nil)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s failed at %v, want %v", place, got, want)
		}
	}
}

// TestEachPassingIsTracedAndThoseThatActAreLogged reads both files as a test does that looks for a passing.
func TestEachPassingIsTracedAndThoseThatActAreLogged(t *testing.T) {
	t.Parallel()
	p := newPoints(t, "tool.after_commit:2=error")
	before := time.Now()
	_, _, _ = p.pass(ToolAfterCommit), p.pass(ToolAfterCommit), p.pass(ModelAfterAnswer)
	want := []string{"tool.after_commit 1", "tool.after_commit 2", "model.after_answer 1"}
	if got := passings(t, p.trace, before); !slices.Equal(got, want) {
		t.Errorf("trace %v, want %v", got, want)
	}
	if got := passings(t, p.log, before); !slices.Equal(got, want[1:2]) {
		t.Errorf("log %v, want %v", got, want[1:2])
	}
}

// passings returns "name n" of each line, and checks the rest of it: a time not before since, and this process.
func passings(t *testing.T, path string, since time.Time) (out []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := append(strings.Fields(line), "", "", "", "")
		at, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil || len(f) != 8 || at < since.UnixNano() || at > time.Now().UnixNano() || f[3] != strconv.Itoa(os.Getpid()) {
			t.Errorf("line %q: want name, passing, nanoseconds and process", line)
		}
		out = append(out, f[0]+" "+f[1])
	}
	return out
}

// newPoints returns points of their own with a log and a trace.
func newPoints(t *testing.T, rules string) *points {
	t.Helper()
	parsed, err := parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return &points{rules: parsed, log: filepath.Join(dir, "log"), trace: filepath.Join(dir, "trace"), passed: map[string]int{}}
}

func TestAnErrorIsTheOperatingSystemsWhereOneIsNamed(t *testing.T) {
	t.Parallel()
	p := newPoints(t, "store.before_write:1=error:ENOSPC, store.before_write:2=error")
	if err := p.pass(StoreBeforeWrite); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "store.before_write 1") {
		t.Errorf("%v, want ENOSPC and the passing", err)
	}
	var errno syscall.Errno
	if err := p.pass(StoreBeforeWrite); err == nil || errors.As(err, &errno) {
		t.Errorf("%v, want an error that is none of the operating system", err)
	}
}

func TestFileWaitsUntilTheFileIsThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "go-on")
	p := newPoints(t, "tool.before_dispatch=file:"+path)
	done := make(chan error, 1)
	go func() { done <- p.pass(ToolBeforeDispatch) }()
	select {
	case <-done:
		t.Fatal("went on before the file was there")
	case <-time.After(50 * time.Millisecond):
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// again runs this test in a process of its own, which does what act does and prints beats meanwhile.
func again(t *testing.T, rules, log string, act func()) *exec.Cmd {
	t.Helper()
	if os.Getenv("HOLDFAST_FAILPOINT") != "" {
		go func() {
			for ; ; time.Sleep(10 * time.Millisecond) {
				fmt.Println("beat")
			}
		}()
		act()
		os.Exit(0)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "HOLDFAST_FAILPOINT="+rules, "HOLDFAST_FAILPOINT_LOG="+log)
	return cmd
}

func TestKillLeavesTheLogLineAndNothingElse(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	err := again(t, "tool.after_commit:1=kill", log, func() { At(ToolAfterCommit) }).Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("ended with %v, want SIGKILL", err)
	}
	b, _ := os.ReadFile(log)
	if !strings.HasPrefix(string(b), "tool.after_commit 1 ") {
		t.Errorf("log = %q, want the passing", b)
	}
}

func TestAFrozenProcessStandsStillAndThenGoesOn(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	cmd := again(t, "tool.after_commit:1=freeze:1s", log, func() {
		before := time.Now()
		At(ToolAfterCommit)
		fmt.Println("over", time.Since(before) >= time.Second)
	})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The longest silence is the freeze.
	var last, over string
	var silence time.Duration
	heard := time.Now()
	for s := bufio.NewScanner(out); s.Scan(); heard = time.Now() {
		silence = max(silence, time.Since(heard))
		if last = s.Text(); strings.HasPrefix(last, "over") {
			over = last
		}
	}
	if err := cmd.Wait(); err != nil || over != "over true" || silence < 800*time.Millisecond {
		t.Errorf("%v, %q, silent for %s at most; want a second of silence and then the end", err, over, silence)
	}
	if b, _ := os.ReadFile(log); !strings.HasPrefix(string(b), "tool.after_commit 1 ") {
		t.Errorf("log = %q, want the passing", b)
	}
}

// TestWhoeverIsToWakeAFrozenProcessDoesNotOutliveIt finds the waker in the process group that it leads.
func TestWhoeverIsToWakeAFrozenProcessDoesNotOutliveIt(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	cmd := again(t, "tool.after_commit:1=freeze:1h", log, func() { At(ToolAfterCommit) })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waker := 0
	eventually(t, "the process is frozen", func() bool {
		for _, pid := range children(t, cmd.Process.Pid) {
			waker = pid
		}
		return waker != 0 && stopped(t, cmd.Process.Pid)
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the waker is gone, and what it started", func() bool { return syscall.Kill(-waker, 0) != nil })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// children returns the children of a process.
func children(t *testing.T, pid int) (out []int) {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err == nil && parent == pid {
			out = append(out, child)
		}
	}
	return out
}

// stopped says whether a process stands still.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(b)), "T")
}
