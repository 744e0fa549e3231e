package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// Ports of servers lie below those that the kernel gives to outgoing connections. While a server is down, one of
// those could take its port otherwise, or a client that dials it be connected with itself.
const (
	firstPort = 15_000
	ports     = 15_000
)

// A Server is a Temporal server whose database is on disk, so that it can be killed and started again. It is safe for
// concurrent use.
type Server struct {
	opts    devserver.Options
	log     *os.File
	client  client.Client
	closing sync.Once

	mu      sync.Mutex
	running *devserver.Server
}

// NewServer starts a server for worlds that kill it.
func (l *Lab) NewServer(ctx context.Context) (_ *Server, err error) {
	l.mu.Lock()
	n := len(l.servers) + 1
	s := &Server{}
	l.servers = append(l.servers, s)
	l.mu.Unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	dir := filepath.Join(l.dir, "servers", fmt.Sprint(n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	s.opts = devserver.Options{
		DBFile: filepath.Join(dir, "db"), Headless: true, Log: s.log,
		Dynamic: []string{
			// A frozen worker keeps what it polls for until its poll expires, a minute by default.
			`matching.longPollExpirationInterval="5s"`,
			// A turn does not inherit what its session was started with.
			fmt.Sprintf("history.defaultWorkflowTaskTimeout=%q", cell.WorkflowTask),
		},
	}
	if err := s.begin(ctx, l.nextPort); err != nil {
		return nil, err
	}
	s.client, err = client.DialContext(ctx, client.Options{HostPort: s.Address(), Logger: silent{}})
	return s, err
}

func (l *Lab) nextPort() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.port++
	return firstPort + (l.port-firstPort)%ports
}

// begin tries other ports while the one that was chosen is somebody else's.
func (s *Server) begin(ctx context.Context, port func() int) error {
	for tries := 0; ; tries++ {
		s.opts.Port = port()
		err := s.Restart(ctx)
		var taken *devserver.PortError
		if !errors.As(err, &taken) || tries == 20 {
			return err
		}
	}
}

// Address is where the server listens, also after a restart.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.opts.Port) }

// Client is the harness's own connection, which no link disturbs.
func (s *Server) Client() client.Client { return s.client }

// Crash kills the server.
func (s *Server) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Kill()
		s.running = nil
	}
}

// Restart starts a server that was killed, on the same port with the same database.
func (s *Server) Restart(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return errors.New("the server runs: crash it first")
	}
	s.running, err = devserver.Start(ctx, s.opts)
	return err
}

// Stop ends the server for good.
func (s *Server) Stop() error {
	s.Crash() // nobody needs what a graceful stop would still write
	if s.client != nil {
		s.closing.Do(s.client.Close)
	}
	if s.log == nil {
		return nil
	}
	if err := s.log.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// silent keeps what the SDK says about a server that is down out of the harness's output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
