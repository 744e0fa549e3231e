//go:build unix

package tool

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how long a server may take to end after its input ended, and again after SIGTERM.
const grace = 2 * time.Second

// An mcpProcess is a server's process group. Launchers such as npx run the server as a grandchild, so
// that everything here is done to the group.
type mcpProcess struct {
	in     *os.File // the server's standard input, our end
	out    *os.File // its standard output, our end
	stderr *tail
	exited chan struct{} // closed when the group is gone
	state  string        // how it ended; read after exited

	stopping sync.Once
	pid      int
}

// startProcess starts the server. What keeps it from outliving us, even if we are killed: its input ends,
// the kernel kills the direct child (Linux), and a watchdog kills the group.
func startProcess(c MCPConfig) (*mcpProcess, error) {
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, fmt.Errorf("there is no command %q on the PATH; install it or write its path", c.Command[0])
	}
	pipes, err := openPipes()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: c.Command, Env: mcpEnv(c.Env),
		Stdin: pipes.childIn, Stdout: pipes.childOut, Stderr: pipes.childErr,
		SysProcAttr: serverAttr(),
	}
	p := &mcpProcess{in: pipes.in, out: pipes.out, stderr: &tail{}, exited: make(chan struct{})}
	started := make(chan error)
	go p.run(cmd, started)
	err = <-started
	pipes.closeChild()
	if err != nil {
		pipes.closeOurs()
		return nil, fmt.Errorf("the command %q cannot be started: %w", c.Command[0], err)
	}
	go p.stderr.fill(pipes.err)
	return p, nil
}

// run starts the process and sees it to its end. It keeps its thread, because the kernel sends the death
// signal when the thread that started the child ends, not the process (golang/go#27505).
func (p *mcpProcess) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	unwatch := watch(p.pid)
	started <- nil
	err := cmd.Wait()
	p.state = "exit status 0"
	if err != nil {
		p.state = err.Error()
	}
	p.signal(syscall.SIGKILL) // what the launcher left behind
	unwatch()
	close(p.exited)
	// What it had written may still be read. A process that left the group could hold the pipe open.
	time.AfterFunc(grace, func() { p.out.Close() })
}

// stop ends the server: its input ends, then SIGTERM, then SIGKILL. It does not wait; exited tells.
func (p *mcpProcess) stop() {
	p.stopping.Do(func() {
		p.in.Close()
		p.out.Close()
		go func() {
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				select {
				case <-p.exited:
					return
				case <-time.After(grace):
					p.signal(sig)
				}
			}
		}()
	})
}

func (p *mcpProcess) signal(sig syscall.Signal) { _ = syscall.Kill(-p.pid, sig) }

// watch starts a shell that kills the group when our end of its input closes, which happens however this
// process ends. The kernel's death signal reaches the direct child only, and a server whose event loop
// keeps a timer does not end with its input. Where there is no shell there are those two alone.
func watch(pgid int) (unwatch func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", `read -r _; kill -9 "-$1"`, "holdfast-mcp-watchdog", fmt.Sprint(pgid)},
		Env: []string{}, Stdin: r, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		w.Close()
		return func() {}
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w.Close()
	}
}

// mcpEnv is the configured environment and PATH.
func mcpEnv(env []string) []string {
	for _, e := range env {
		if strings.HasPrefix(e, "PATH=") {
			return env
		}
	}
	return append([]string{"PATH=" + os.Getenv("PATH")}, env...)
}

type processPipes struct{ childIn, childOut, childErr, in, out, err *os.File }

// openPipes makes plain pipes instead of exec's: Wait must not wait for whoever inherited them.
func openPipes() (*processPipes, error) {
	p := &processPipes{}
	var err error
	for _, ends := range []struct{ r, w **os.File }{{&p.childIn, &p.in}, {&p.out, &p.childOut}, {&p.err, &p.childErr}} {
		if *ends.r, *ends.w, err = os.Pipe(); err != nil {
			p.closeChild()
			p.closeOurs()
			return nil, fmt.Errorf("no pipe to the server: %w", err)
		}
	}
	return p, nil
}

func (p *processPipes) closeChild() { closeFiles(p.childIn, p.childOut, p.childErr) }
func (p *processPipes) closeOurs()  { closeFiles(p.in, p.out, p.err) }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
