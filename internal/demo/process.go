package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A process is a child in a process group of its own, so that the terminal's Ctrl-C reaches only the demo,
// which stops its parts in order.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and all its output was read

	mu   sync.Mutex
	ends bool // somebody here wants it to end
}

// spawn starts cmd from a thread that lives as long as the child does: the death signal of prctl(2) is
// sent when the parent's thread ends, not its process (golang.org/issue/27505).
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = sysProcAttr()
	cmd.WaitDelay = time.Second
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state says how it ended
			close(p.done)
		}
	}()
	return p, <-started
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// exitCode is -1 for a process that a signal ended. Valid once done is closed.
func (p *process) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// kill ends the whole group at once and returns when it is gone.
func (p *process) kill() {
	p.mu.Lock()
	p.ends = true
	p.mu.Unlock()
	select {
	case <-p.done: // the group's number may be somebody else's by now
	default:
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
	}
	<-p.done
}

func (p *process) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends
}

var errLeaving = errors.New("the demo is ending")

// startWorker starts one more worker and reports one that ends without being told to.
func (s *stage) startWorker() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return nil, errLeaving
	}
	path := filepath.Join(s.dir, fmt.Sprintf("worker-%d.log", len(s.workers)+1))
	log, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	cmd := s.holdfast("worker")
	cmd.Stdout, cmd.Stderr = log, log
	w, err := spawn(cmd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("worker: %w", err), log.Close())
	}
	s.workers = append(s.workers, w)
	go func() {
		<-w.done
		log.Close()
		if !w.wanted() {
			s.fail(fmt.Errorf("the worker ended by itself (%s); it last said:\n%s", w.cmd.ProcessState, lastLines(path)))
		}
	}()
	return w, nil
}

// lastLines returns the end of a log.
func lastLines(path string) string {
	const most = 2000
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	return string(bytes.TrimSpace(b))
}
