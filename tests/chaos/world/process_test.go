package world

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

// inside returns the processes that work in a folder: those of a world, and what they have started.
func inside(t *testing.T, dir string) (out []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(links) == 0 {
		t.Skip("there is no /proc to look at")
	}
	for _, l := range links {
		if at, err := os.Readlink(l); err == nil && at == dir {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(l), "cmdline"))
			out = append(out, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return out
}

// TestNoProcessOutlivesItsWorld has workers that run, wait at their door, stand still by a signal and by a failpoint,
// each with a bank.
func TestNoProcessOutlivesItsWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Scenario: cell.Pay, Destination: cell.MCPKeyed})
	start(t, w, failpoint.ToolAfterCommit+":1=freeze:1h")
	waits := start(t, w, failpoint.WorkerReady+"=file:"+filepath.Join(w.Dir, "never"))
	send(t, w, "m1")
	eventually(t, "the worker stands still", func() bool {
		acted, err := w.Acted()
		return err == nil && len(acted) == 2
	})
	stopped, asked := start(t, w, ""), start(t, w, "")
	for _, p := range []*Worker{waits, stopped, asked} {
		if err := p.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// A bank and its watchdog for each, and who is to wake the frozen one.
	if all := inside(t, w.Dir); len(all) < 4*3+1 {
		t.Fatalf("%d processes, want more:\n%s", len(all), strings.Join(all, "\n"))
	}
	if err := asked.Stop(patience); err != nil || asked.Killed() {
		t.Errorf("a worker that was told to stop: %v, killed %v", err, asked.Killed())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all are gone", func() bool { return len(inside(t, w.Dir)) == 0 })
	if _, err := w.Start(t.Context(), ""); err == nil {
		t.Error("a world that is closed has started a worker")
	}
}

// orphanEnv names the folder in which this test binary, when it is set, starts a process and waits to be killed.
const orphanEnv = "HOLDFAST_CHAOS_ORPHAN"

// TestNoProcessOutlivesTheHarness kills a harness of its own.
func TestNoProcessOutlivesTheHarness(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(orphanEnv); dir != "" {
		leave(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), orphanEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if len(inside(t, dir)) != 1 {
		t.Error("it has started nothing")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "what it has started is gone", func() bool { return len(inside(t, dir)) == 0 })
}

// leave starts a process and waits.
func leave(t *testing.T, dir string) {
	t.Helper()
	nowhere, err := link.New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Dir: dir, ServerLink: nowhere}
	if _, err := w.Run(t.Context(), []string{"sleep", "300"}, ""); err != nil {
		t.Fatal(err)
	}
	fmt.Println("started")
	select {}
}
