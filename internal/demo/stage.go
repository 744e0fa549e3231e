package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	asked  chan news  // requests that wait for approval

	temporal *devserver.Server
	model    *modeltest.Server
	payments *payments.Service
	http     *http.Server

	mu      sync.Mutex
	workers []*process // the last is the one that lives
	clients []*process
	leaving bool // no new process is started any more
	kills   []time.Time

	approving atomic.Bool   // an approval was given to the client
	approved  chan struct{} // closed when the turn has accepted one
	approve   sync.Once

	declined bool // by the person who was asked; that is an end, too
	finished time.Time
}

// build starts every part and says what each is.
func (s *stage) build(ctx context.Context) error {
	s.say.plain("A refund waits for an approval. The worker is killed after it, and again after the payment. It must be paid once.\n")
	p := places{
		Agent: agentName, Heartbeat: heartbeat, Store: "file://" + filepath.Join(s.dir, "store"),
		Limit: limit, Approver: s.approver(),
	}
	var err error
	if p.PublicKey, err = makeKey(s.keyPath()); err != nil {
		return err
	}
	if err := s.startModel(&p); err != nil {
		return err
	}
	if err := s.startPayments(ctx, &p); err != nil {
		return err
	}
	began := time.Now()
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
	s.say.part("policy", "refunds above %d.00 wait for an approval that %s signs", limit, s.approver())
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
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("payments service: %w", err))
		}
	}()
	p.Payments = "http://" + l.Addr().String()
	s.say.part("payments service", "%s, books in %s", p.Payments, s.booksPath())
	return nil
}

// serve is the payments service with an eye on the admission of the refund: when the worker has the approval,
// and looks at the order once more before it sends.
func (s *stage) serve(w http.ResponseWriter, r *http.Request) {
	if s.approving.Load() && strings.HasPrefix(r.URL.Path, "/orders/") {
		select {
		case <-s.approved:
			s.strike(1, "the approval is there, and nothing was sent")
		case <-r.Context().Done(): // the worker went away by itself
		}
	}
	s.payments.ServeHTTP(w, r)
}

// committed runs between the payments service's commit and its answer.
func (s *stage) committed(key string) {
	s.say.event("payments", "committed the refund, key %s", key)
	s.strike(2, "the money has moved, and nobody has heard of it")
}

// strike kills the worker and starts another one, if this is the n-th time.
func (s *stage) strike(n int, moment string) {
	w := s.victim(n)
	if w == nil {
		return
	}
	w.kill()
	s.say.shout("KILL", "SIGKILL to the worker, process %d: %s", w.pid(), moment)
	fresh, err := s.startWorker()
	if err != nil {
		s.fail(err)
		return
	}
	s.say.event("worker", "a new one starts, process %d; it gets the work once the dead one's heartbeat is missed (%s)", fresh.pid(), heartbeat)
}

// victim returns the worker to kill, once for each n.
func (s *stage) victim(n int) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kills) != n-1 || s.leaving {
		return nil
	}
	s.kills = append(s.kills, time.Now())
	return s.workers[len(s.workers)-1]
}

// killedAt returns when the worker was killed.
func (s *stage) killedAt() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kills)
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
	processes := slices.Concat(s.clients, s.workers)
	s.mu.Unlock()
	for _, p := range processes {
		p.kill()
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
func (s *stage) keyPath() string     { return filepath.Join(s.dir, "approver") }
func (s *stage) profilePath() string { return filepath.Join(s.dir, "temporal.toml") }
func (s *stage) booksPath() string   { return filepath.Join(s.dir, "books.jsonl") }

// environ is the environment of worker and clients: ours, without Temporal's variables and with an empty
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
