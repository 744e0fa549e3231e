package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

// Config says what a world is like.
type Config struct {
	Name        string // unique in the lab; session, task queue and folder are named after it
	Scenario    cell.Scenario
	Destination cell.Destination
	Renew       bool          // each step continues as new
	Cold        bool          // workers keep no workflow in memory
	Clock       time.Duration // by which the wall clock of workers is off, in whole seconds
	Expires     time.Duration // of what a person is asked; 0 is the product's default
	Model       modeltest.Func
	Server      *Server // nil is one that worlds share
}

// A World is what one run happens in. Workers reach the model, the destination and Temporal through its links, which
// are transparent until told otherwise. It is safe for concurrent use.
type World struct {
	Dir, Session, Queue string
	Server              *Server
	Model               *modeltest.Server
	Pay                 *payments.Service // nil where the destination is the bank
	BankBooks           string            // file of the bank's books; empty where the destination is Pay

	// DestinationLink leads to the payments service, which a world with a bank has too, for its orders.
	DestinationLink, ModelLink, ServerLink *link.Link

	lab      *Lab
	cfg      Config
	kind     destinationKind
	program  string // of its workers
	approver person
	closers  []func() error // of what is around the workers, in the order in which it was opened

	mu      sync.Mutex
	builds  []build
	serial  int // that was given out last
	workers []*Worker
	closed  bool
}

// New makes a world without any worker.
func (l *Lab) New(ctx context.Context, c Config) (_ *World, err error) {
	kind, err := kindOf(c.Destination)
	if err != nil {
		return nil, err
	}
	w := &World{lab: l, cfg: c, kind: kind, Server: c.Server, program: l.worker()}
	if c.Clock != 0 {
		if w.program, err = l.shifted(ctx, c.Clock); err != nil {
			return nil, err
		}
	}
	if err := w.name(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.Server == nil {
		if w.Server, err = l.share(ctx); err != nil {
			return nil, err
		}
		w.closers = append(w.closers, func() error { return l.unshare(w.Server) })
	}
	if w.approver, err = newPerson("alice"); err != nil {
		return nil, err
	}
	if err := w.surround(ctx); err != nil {
		return nil, err
	}
	return w, w.configure()
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9]+`)

// name derives all names from the configuration's and notes the world as open.
func (w *World) name() error {
	plain := unnamed.ReplaceAllString(w.cfg.Name, "-")
	w.Session = "c" + plain[:min(len(plain), 40)] + "-" + string(agent.DigestOf([]byte(w.cfg.Name))[:8])
	w.Queue = w.Session
	w.Dir = filepath.Join(w.lab.dir, "worlds", w.Session)
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	if w.lab.names[w.Session] {
		return fmt.Errorf("there has been a world %q: its session and its task queue may not be used again", w.cfg.Name)
	}
	w.lab.names[w.Session], w.lab.worlds[w.Session] = true, w
	return os.MkdirAll(w.Dir, 0o700)
}

// ToolName is what the model calls to pay.
func (c Config) ToolName() string {
	k, _ := kindOf(c.Destination) // one that there is not has no tool, and no world
	return k.tool
}

// Store is the folder of the workers' store.
func (w *World) Store() string { return filepath.Join(w.Dir, "store") }

// Close ends the world's processes and what they talked to, and waits for them. Files stay.
func (w *World) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	workers := w.workers
	w.mu.Unlock()
	for _, p := range workers {
		p.Kill()
	}
	all := []error{w.measure()}
	for i := len(w.closers) - 1; i >= 0; i-- {
		all = append(all, w.closers[i]())
	}
	w.lab.mu.Lock()
	delete(w.lab.worlds, w.Session)
	w.lab.mu.Unlock()
	return errors.Join(all...)
}
