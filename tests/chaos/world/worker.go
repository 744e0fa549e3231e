//go:build unix

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// glance is how often a file of a worker is looked at.
const glance = 20 * time.Millisecond

// A Worker is a worker process, the leader of a process group. It is safe for concurrent use.
type Worker struct {
	world *World
	cmd   *exec.Cmd
	done  chan struct{}
	log   string // file of what it says
	file  string // its configuration
}

// Start starts a worker with failpoint rules, or none. It does not wait for anything, and ctx bounds nothing behind it:
// see [Worker.Ready].
func (w *World) Start(ctx context.Context, rules string, env ...string) (*Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start(ctx, rules, env)
}

// StartOther starts a worker of another build, whose agent has other instructions. Those that are started later are of
// that build too.
func (w *World) StartOther(ctx context.Context, rules string, env ...string) (*Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.rebuild(); err != nil {
		return nil, err
	}
	return w.start(ctx, rules, env)
}

// start is called with the lock held.
func (w *World) start(ctx context.Context, rules string, env []string) (*Worker, error) {
	b := w.builds[len(w.builds)-1]
	if w.cfg.Cold {
		env = append(env, "HOLDFAST_FAILPOINT_COLD=1")
	}
	// A build id of its own spares it the digest of the whole program.
	return w.launch(ctx, b.file, []string{w.program, "worker", "--config", b.file, "--build-id", b.id}, rules, env)
}

// Run starts any program as a worker of this world, with its failpoint rules and its connection to Temporal.
func (w *World) Run(ctx context.Context, command []string, rules string, env ...string) (*Worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.launch(ctx, "", command, rules, env)
}

func (w *World) launch(ctx context.Context, file string, command []string, rules string, env []string) (*Worker, error) {
	if w.closed {
		return nil, errors.New("the world is closed")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Worker{world: w, done: make(chan struct{}), file: file, log: filepath.Join(w.Dir, fmt.Sprintf("worker-%d.log", len(w.workers)+1))}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has one of its own
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = w.Dir, log, log
	p.cmd.SysProcAttr = groupOfItsOwn()
	p.cmd.Env = append(append(environ(), "TEMPORAL_ADDRESS="+w.ServerLink.Addr(),
		"HOLDFAST_FAILPOINT="+rules, "HOLDFAST_FAILPOINT_LOG="+w.actedFile(), "HOLDFAST_FAILPOINT_TRACE="+w.traceFile(),
		"HOLDFAST_FAILPOINT_WIDTH="+w.widthFile()), env...)
	if err := p.spawn(); err != nil {
		return nil, err
	}
	w.workers = append(w.workers, p)
	return p, nil
}

// environ is our environment without what would tell a worker or a command something about another world.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEMPORAL_") && !strings.HasPrefix(kv, "HOLDFAST_") {
			env = append(env, kv)
		}
	}
	return append(env, "TEMPORAL_NAMESPACE=default")
}

// spawn starts the process from a thread that lives as long as the process does: the death signal of prctl(2) is
// sent when the parent's thread ends, not its process (golang.org/issue/27505).
func (p *Worker) spawn() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the state says how it ended
			_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
			close(p.done)
		}
	}()
	return <-started
}

// Ready waits until the worker has come to worker.ready, where a rule may hold it: a spare that is connected already
// takes over at once.
func (p *Worker) Ready(ctx context.Context) error {
	return p.until(ctx, "it is ready", func() (bool, error) {
		all, err := p.world.Trace()
		for _, x := range all {
			if x.PID == p.PID() && x.Name == failpoint.WorkerReady {
				return true, nil
			}
		}
		return false, err
	})
}

// until waits for something that a living worker does.
func (p *Worker) until(ctx context.Context, what string, ok func() (bool, error)) error {
	t := time.NewTicker(glance)
	defer t.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-p.done:
			if done, err := ok(); done || err != nil { // it may have died of it
				return err
			}
			return fmt.Errorf("the worker ended (%s) before %s; it said:\n%s", p.cmd.ProcessState, what, p.said())
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-t.C:
		}
	}
}

// Done is closed when the process has ended.
func (p *Worker) Done() <-chan struct{} { return p.done }

// PID is the process id.
func (p *Worker) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process alone; it does nothing to one that has ended.
func (p *Worker) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Kill ends the process group at once, also one that stands still, and waits for it.
func (p *Worker) Kill() {
	if !p.Ended() { // else the group's number may be somebody else's by now
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	<-p.done
}

// Stop asks the process to end, and kills it if it has not done so within that time, which is an error.
func (p *Worker) Stop(within time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("the worker did not stop within %s; it said:\n%s", within, p.said())
	}
}

// Killed says whether the process was ended by SIGKILL.
func (p *Worker) Killed() bool {
	if !p.Ended() {
		return false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Ended says whether the process has ended.
func (p *Worker) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// standsStill says whether a process was stopped by a signal. It cannot tell where there is no /proc.
func standsStill(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(b, []byte(") T "))
}
