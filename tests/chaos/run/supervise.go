package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// glance is how often the harness looks whether a failpoint has acted.
const glance = 30 * time.Millisecond

// prepare starts the first worker, and behind it the one that takes over from it as a warm spare: connected, and waiting
// at worker.ready. One after the other, because whoever is first on a new store writes more.
func (r *run) prepare(ctx context.Context) error {
	r.workers = make([]*world.Worker, len(r.plan))
	if err := r.start(ctx, 0); err != nil {
		return err
	}
	if err := r.workers[0].Ready(ctx); err != nil {
		return err
	}
	return r.spare(ctx, 1)
}

// spare starts the worker of a generation ahead of its time, if there is one. What takes over from a worker that saw another
// policy begins with that, and so later.
func (r *run) spare(ctx context.Context, g int) error {
	if g >= len(r.plan) || slices.ContainsFunc(r.plan[g-1].held, func(h held) bool { return h.fault.Kind == cell.Revoke }) {
		return nil
	}
	return r.start(ctx, g)
}

// start starts the worker of a generation.
func (r *run) start(ctx context.Context, g int) (err error) {
	rules := r.plan[g].rules
	if g > 0 {
		rules = append([]string{failpoint.WorkerReady + "=file:" + r.gate(g)}, rules...)
	}
	start := r.world.Start
	if g > 0 && r.plan[g-1].ends.Kind == cell.Rebuild {
		start = r.world.StartOther
	}
	r.workers[g], err = start(ctx, strings.Join(rules, ","))
	return err
}

// takeOver lets the worker of a generation in.
func (r *run) takeOver(ctx context.Context, g int) error {
	if err := os.WriteFile(r.gate(g), nil, 0o600); err != nil {
		return err
	}
	if w := r.workers[g]; w != nil && !w.Ended() {
		return nil
	}
	return r.start(ctx, g) // it was to begin now, or the server was away when it began
}

// gate is the file for which the spare of a generation waits.
func (r *run) gate(g int) string { return filepath.Join(r.world.Dir, fmt.Sprintf("gate-%d", g)) }

// supervise watches one worker after the other, does what is to be done while it is held, and lets the next one in
// when its time is over.
func (r *run) supervise(ctx context.Context) error {
	for g := range r.plan {
		if g > 0 {
			if err := errors.Join(r.takeOver(ctx, g), r.spare(ctx, g+1)); err != nil {
				return err
			}
		}
		err := r.attend(ctx, g)
		if err == nil && ctx.Err() == nil {
			err = r.leave(g)
		}
		if err != nil {
			return fmt.Errorf("worker %d: %w", g+1, err)
		}
	}
	return nil
}

// attend watches the worker of a generation until its time is over.
func (r *run) attend(ctx context.Context, g int) error {
	gen, worker := r.plan[g], r.workers[g]
	done := make([]bool, len(gen.held))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-worker.Done():
			if gen.ends != nil && gen.ends.Kind == cell.Kill && worker.Killed() {
				return nil
			}
			r.blame("worker %d ended by itself", g+1)
			return nil
		case <-time.After(glance):
		}
		acted, err := r.world.Acted()
		if err != nil {
			return err
		}
		for i, h := range gen.held {
			if done[i] || !struck(acted, worker, h.fault) {
				continue
			}
			done[i] = true
			if err := r.strike(ctx, h, worker); err != nil {
				return fmt.Errorf("%s: %w", h.fault.Kind, err)
			}
			if ends(h.fault) {
				return nil
			}
		}
		if gen.ends != nil && gen.ends.Kind == cell.Freeze && struck(acted, worker, *gen.ends) {
			r.mu.Lock()
			r.frozen = append(r.frozen, frozen{worker, time.Now().Add(cell.Frozen)})
			r.mu.Unlock()
			return nil
		}
	}
}

// leave opens every door of a worker whose time is over: one that wakes may come to a place where nobody waits for it any
// more.
func (r *run) leave(g int) (err error) {
	for _, h := range r.plan[g].held {
		if h.door != "" {
			err = errors.Join(err, openDoor(h.door))
		}
	}
	return err
}

// struck says whether a fault has come to a worker.
func struck(acted []world.Passing, w *world.Worker, f cell.Fault) bool {
	for _, p := range acted {
		if p.PID == w.PID() && p.Name == f.At && (f.Nth == 0 || p.N == f.Nth) {
			return true
		}
	}
	return false
}

// strike does what happens while a worker is held at a place.
func (r *run) strike(ctx context.Context, h held, w *world.Worker) error {
	switch h.fault.Kind {
	case cell.Crash:
		r.world.Server.Crash()
		if err := openDoor(h.door); err != nil {
			return err
		}
		// The worker goes on for a moment without a server.
		if err := rest(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		return r.world.Server.Restart(ctx)
	case cell.Link:
		if err := r.world.Disturb(h.fault); err != nil {
			return err
		}
		return openDoor(h.door)
	case cell.Revoke:
		r.change()
		if err := r.world.Deny(ctx); err != nil {
			return err
		}
		r.denied = time.Now()
		return openDoor(h.door)
	case cell.Rebuild:
		r.change()
	case cell.Damage:
		kind, how, _ := strings.Cut(h.fault.Arg, " ")
		if _, err := r.world.Damage(kind, how); err != nil {
			return err
		}
	}
	w.Kill()
	return nil
}

func openDoor(path string) error { return os.WriteFile(path, nil, 0o600) }

// change notes that policy or agent are not those of the undisturbed run any more.
func (r *run) change() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = true
}
