package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyWithin bounds the wait for a server that lives but does not answer. A loaded machine needs seconds.
const readyWithin = 90 * time.Second

// stopWithin bounds a graceful stop; then the server is killed. Its database survives that.
const stopWithin = 15 * time.Second

// A Server is a running development server. Its methods are safe for concurrent use.
type Server struct {
	opts   Options
	cmd    *exec.Cmd
	output *tail
	done   chan struct{}

	mu       sync.Mutex
	stopping bool
	err      error // how the process ended; set before done is closed
}

// Start starts a server and returns when it serves the namespace, with the search attributes of package
// agent registered and [Retention] set. ctx bounds only the start. When it fails no process is left.
//
// Errors: [ErrNotFound], [*OldError], [*PortError]; else why the server died, with the last lines it printed.
func Start(ctx context.Context, o Options) (*Server, error) {
	binary, err := Find(ctx, o.Binary)
	if err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, binary, o)
		if err == nil || !lostPort(err) || attempt == 3 {
			return s, err
		}
	}
}

// lostPort says whether a start failed over a port that nobody named. One chosen by us may be taken by
// somebody else before the server listens on it, and the server chooses five more for itself and panics when
// it cannot. A port that was named and is taken is a [*PortError], found before the server is started.
func lostPort(err error) bool {
	var named *PortError
	return !errors.As(err, &named) &&
		(strings.Contains(err.Error(), "in use") || strings.Contains(err.Error(), "failed assigning ephemeral port"))
}

func start(ctx context.Context, binary string, o Options) (*Server, error) {
	if err := o.choosePorts(); err != nil {
		return nil, err
	}
	s := &Server{opts: o, output: &tail{to: o.Log}, done: make(chan struct{})}
	s.cmd = exec.Command(binary, o.args()...)
	s.cmd.Env = environ()
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.SysProcAttr = sysProcAttr()
	s.cmd.WaitDelay = time.Second
	if err := s.spawn(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", binary, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	ctx, died := context.WithCancelCause(ctx)
	defer died(nil)
	go func() {
		select {
		case <-s.done:
			died(s.Err())
		case <-ctx.Done():
		}
	}()
	if err := waitReady(ctx, s.Address(), o.Namespace); err != nil {
		return nil, s.giveUp(ctx, err)
	}
	return s, nil
}

// spawn starts the process from a thread that lives as long as the process does: the death signal of
// prctl(2) is sent when the parent's thread ends, not its process (golang.org/issue/27505).
func (s *Server) spawn() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := s.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		err := s.cmd.Wait()
		s.mu.Lock()
		s.err = s.verdict(err)
		s.mu.Unlock()
		close(s.done)
	}()
	return <-started
}

func (s *Server) verdict(waitErr error) error {
	if s.stopping {
		return nil
	}
	how := "it exited"
	if waitErr != nil {
		how = waitErr.Error()
	}
	if said := s.output.String(); said != "" {
		return fmt.Errorf("the Temporal dev server died (%s); it last said:\n%s", how, said)
	}
	return fmt.Errorf("the Temporal dev server died (%s) and said nothing", how)
}

// giveUp ends the process and returns why the start failed.
func (s *Server) giveUp(ctx context.Context, err error) error {
	if death := s.Err(); death != nil {
		return death
	}
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.kill()
	<-s.done
	if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("the Temporal dev server did not get ready in time (%w); it last said:\n%s", err, s.output)
	}
	return err
}

// Address is where the server's gRPC front end listens, "host:port".
func (s *Server) Address() string { return net.JoinHostPort(host, strconv.Itoa(s.opts.Port)) }

// Namespace is the namespace that the server was started with.
func (s *Server) Namespace() string { return s.opts.Namespace }

// UI is the address of the Web UI, or "" for a headless server.
func (s *Server) UI() string {
	if s.opts.Headless {
		return ""
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(s.opts.UIPort))
}

// WorkflowURL is the Web UI's page of a workflow.
func (s *Server) WorkflowURL(workflowID string) string {
	return s.UI() + "/namespaces/" + url.PathEscape(s.opts.Namespace) + "/workflows/" + url.PathEscape(workflowID)
}

// PID is the process id of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Done is closed when the process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says how a server died that nobody had stopped; nil while it runs and after Stop.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stop asks the server to end, waits for it, and kills it when that takes too long. Stopping twice is fine.
func (s *Server) Stop() error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	_ = s.cmd.Process.Signal(syscall.SIGINT) // fails only for one that has ended
	select {
	case <-s.done:
		return nil
	case <-time.After(stopWithin):
		s.kill()
		<-s.done
		return fmt.Errorf("the Temporal dev server did not stop within %s and was killed; its state is kept", stopWithin)
	}
}

// Kill ends the server at once, as a crash would. For tests.
func (s *Server) Kill() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.kill()
	<-s.done
}

// kill ends the process and whatever it started.
func (s *Server) kill() {
	select {
	case <-s.done: // the process group's number may be somebody else's by now
	default:
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
}
