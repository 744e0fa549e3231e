package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// A stage is the running parts of one demo.
type stage struct {
	cfg    Config
	dir    string
	say    *printer
	failed chan error // a part failed on its own

	temporal *devserver.Server
	model    *modeltest.Server
	payments *payments.Service
	http     *http.Server

	mu      sync.Mutex
	workers []*process // the first is the one that is killed
	client  *process
	leaving bool // no new process is started any more
	killed  time.Time

	finished time.Time
}

// build starts every part and says what each is.
func (s *stage) build(ctx context.Context) error {
	s.say.plain("A worker is killed right after a payment. The payment must happen once.\n")
	p := places{Agent: agentName, Heartbeat: heartbeat, Store: "file://" + filepath.Join(s.dir, "store")}
	if err := s.startModel(&p); err != nil {
		return err
	}
	if err := s.startPayments(ctx, &p); err != nil {
		return err
	}
	began := time.Now()
	var err error
	if s.temporal, err = devserver.Start(ctx, devserver.Options{DBFile: filepath.Join(s.dir, "temporal.db")}); err != nil {
		return err
	}
	s.say.part("Temporal server", "%s, Web UI %s (started in %.1f s)", s.temporal.Address(), s.temporal.UI(), time.Since(began).Seconds())
	if err := writeConfig(s.configPath(), p); err != nil {
		return err
	}
	// An empty profile: the user's own may point anywhere.
	if err := os.WriteFile(s.profilePath(), nil, 0o600); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	w, err := s.startWorker()
	if err != nil {
		return err
	}
	s.say.part("worker", "process %d, configured by %s", w.pid(), s.configPath())
	s.say.part("look at it", "%s", s.temporal.WorkflowURL(turnID))
	return nil
}

func (s *stage) startModel(p *places) error {
	if m := s.cfg.Model; m != nil {
		p.BaseURL, p.Model, p.Key = m.BaseURL, m.Name, "env:OPENAI_API_KEY"
		s.say.part("model", "%s (yours)", m.Name)
		return nil
	}
	server, err := modeltest.Start(modeltest.Config{Func: script, Latency: thinking})
	if err != nil {
		return fmt.Errorf("model server: %w", err)
	}
	s.model = server
	p.BaseURL, p.Model = server.URL(), "scripted"
	s.say.part("model server", "%s, OpenAI-compatible, scripted", server.URL())
	return nil
}

func (s *stage) startPayments(ctx context.Context, p *places) error {
	var err error
	s.payments, err = payments.New(payments.Config{
		Path:     s.booksPath(),
		Orders:   []payments.Order{{ID: order, Item: "espresso cup", Status: "delivered", Total: price}},
		OnCommit: s.committed,
		OnRepeat: s.repeated,
	})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("payments service: %w", err)
	}
	s.http = &http.Server{Handler: s.payments, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("payments service: %w", err))
		}
	}()
	p.Payments = "http://" + l.Addr().String()
	s.say.part("payments service", "%s, books in %s", p.Payments, s.booksPath())
	return nil
}

// committed runs between the payments service's commit and its answer: the moment that the demo is about.
func (s *stage) committed(key string) {
	s.say.event("payments", "committed the refund, key %s", key)
	w := s.victim()
	if w == nil {
		return
	}
	w.kill()
	s.say.shout("KILL", "SIGKILL to the worker, process %d: nobody has heard of the payment", w.pid())
	fresh, err := s.startWorker()
	if err != nil {
		s.fail(err)
		return
	}
	s.say.event("worker", "a new one starts, process %d; it gets the work once the dead one's heartbeat is missed (%s)", fresh.pid(), heartbeat)
}

// victim returns the worker to kill, once.
func (s *stage) victim() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.killed.IsZero() || s.leaving {
		return nil
	}
	s.killed = time.Now()
	return s.workers[0]
}

// killedAt returns when the worker was killed, the zero time if it never was.
func (s *stage) killedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

func (s *stage) repeated(string) {
	s.say.event("payments", "asked again under the same key: the same answer, no second entry")
}

func (s *stage) fail(err error) {
	select {
	case s.failed <- err:
	default: // the first failures are enough
	}
}

// leave ends every part, at once: nothing that they hold is needed any more. The folder with the logs stays when something failed and nobody interrupted.
func (s *stage) leave(ctx context.Context, failure error) error {
	s.mu.Lock()
	s.leaving = true
	workers, client := s.workers, s.client
	s.mu.Unlock()
	if client != nil {
		client.kill()
	}
	for _, w := range workers {
		w.kill()
	}
	var errs []error
	if s.temporal != nil {
		errs = append(errs, s.temporal.Stop())
	}
	if s.http != nil {
		errs = append(errs, s.http.Close())
	}
	if s.payments != nil {
		errs = append(errs, s.payments.Close())
	}
	if s.model != nil {
		errs = append(errs, s.model.Close())
	}
	if failure != nil && ctx.Err() == nil {
		s.say.plain("The logs of the workers are in %s", s.dir)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (s *stage) configPath() string  { return filepath.Join(s.dir, "holdfast.yaml") }
func (s *stage) profilePath() string { return filepath.Join(s.dir, "temporal.toml") }
func (s *stage) booksPath() string   { return filepath.Join(s.dir, "books.jsonl") }

// environ is the environment of worker and client: ours, without Temporal's variables and with an empty
// profile, because the demo's server is the only one meant.
func (s *stage) environ() []string {
	env := []string{"TEMPORAL_CONFIG_FILE=" + s.profilePath()}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEMPORAL_") {
			env = append(env, kv)
		}
	}
	return env
}
