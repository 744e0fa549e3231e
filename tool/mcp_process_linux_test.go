package tool

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// group returns the processes of a process group that still run.
func group(pgid int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ") // the name before it may hold anything
		fields := strings.Fields(rest)
		if len(fields) < 3 || fields[0] == "Z" || fields[2] != strconv.Itoa(pgid) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		pids = append(pids, pid)
	}
	return pids
}

const helperWorker = "HOLDFAST_TEST_MCP_WORKER" // the command of the server to start, one argument a line

// TestHelperMCPWorker is what the kill tests kill: a process with a running MCP server.
func TestHelperMCPWorker(t *testing.T) {
	command := os.Getenv(helperWorker)
	if command == "" {
		t.Skip("the worker of other tests, not a test")
	}
	m, err := ConnectMCP(t.Context(), MCPConfig{
		Name: "w", Command: strings.Split(command, "\n"),
		Env: []string{helperMode + "=launcher", "HOME=" + os.Getenv("HOME")}, ListTimeout: 2 * time.Minute,
	}, nil)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("pid", m.link.current.process.pid)
	select {}
}

// killWorker starts a worker with a server of that command, kills it, and returns when all of the server's
// processes are gone. It fails if one stays, or if there was none but the direct child.
func killWorker(t *testing.T, command ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.CommandContext(t.Context(), exe, "-test.run=^TestHelperMCPWorker$")
	worker.Env = append(os.Environ(), helperWorker+"="+strings.Join(command, "\n"))
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, perr := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid ")))
	if err != nil || perr != nil {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	if n := len(group(pid)); n < 2 {
		t.Errorf("the server has %d processes: a launcher should have started another", n)
	}
	_ = worker.Process.Kill()
	_ = worker.Wait()
	awaitMCP(t, func() bool { return len(group(pid)) == 0 })
}

func TestNoServerOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killWorker(t, exe, "-test.run=^TestHelperMCPServer$")
}

func TestCloseEndsALaunchersChildren(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "launcher"))
	pid := m.link.current.process.pid
	if n := len(group(pid)); n != 2 {
		t.Errorf("the server has %d processes, want 2", n)
	}
	m.Close()
	if left := group(pid); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNoProcessIsLeftOfAServerThatDied(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "launcher"))
	pid := m.link.current.process.pid
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil { // the launcher only
		t.Fatal(err)
	}
	awaitMCP(t, func() bool { return len(group(pid)) == 0 })
	if got, err := callMCP(t, m, "pid", `{}`); err != nil || got == strconv.Itoa(pid) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNoServerStartedByNPXOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()
	npmServer(t, "mcp-server-everything")
	dir, err := filepath.Abs(filepath.Join("..", "tests", "mcp"))
	if err != nil {
		t.Fatal(err)
	}
	killWorker(t, "npx", "--no-install", "--prefix", dir, "mcp-server-everything")
}
