package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/worker"
)

// openStore opens the workers' store to read it: the one at the URL or, for "", the configuration's. One that is
// not there is not made.
func (a *App) openStore(ctx context.Context, at string) (*store.Store, error) {
	cfg := store.Config{URL: at}
	if at == "" {
		c, err := worker.LoadStore(a.config)
		if err != nil {
			return nil, err
		}
		cfg = store.Config{URL: c.Store.URL, Seal: []byte(c.Store.Seal.Reveal())}
	}
	if u, err := url.Parse(cfg.URL); err == nil && u.Scheme == "file" {
		dir := u.Path
		if u.Host == "." {
			dir = filepath.Join(".", u.Path)
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil, withHint(fmt.Errorf("there is no store at %s", dir), "name the workers' store with --store, or their configuration with --config")
		}
	}
	return store.Open(ctx, cfg)
}

// storeAtHand opens the store of the configuration here, for commands that can do without: nil when there is no
// configuration, and with a note when there is one whose store cannot be read. The caller closes it.
func (a *App) storeAtHand(ctx context.Context) *store.Store {
	if _, err := os.Stat(a.config); errors.Is(err, os.ErrNotExist) && a.config == defaultConfig {
		return nil
	}
	s, err := a.openStore(ctx, "")
	if err != nil {
		a.note("note: the store of %s is not read: %s", a.config, line(err.Error(), 2*lineLimit))
		return nil
	}
	return s
}

// closingRecord reads the closing record of a turn or of a late compensation.
func closingRecord(ctx context.Context, s *store.Store, scope agent.Scope, at address) (*activities.Closing, error) {
	b, err := s.Space(scope).Closing(ctx, store.ClosingName(at.turn, at.undo))
	if err != nil {
		return nil, err
	}
	var c activities.Closing
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("closing record of %s: %w", at, err)
	}
	return &c, nil
}

// storeOf returns the identity of the store that a turn's worker used, or "" when the history does not say.
func (c *conn) storeOf(ctx context.Context, at address) string {
	run, err := c.firstRun(ctx, at.workflow())
	if err != nil {
		return ""
	}
	log := newTurnLog(decoder{c.payloads}, at.turn)
	_ = c.read(ctx, reading{workflow: at.workflow(), run: run, each: func(ev *historypb.HistoryEvent) error {
		if log.add(ev); log.opened != nil {
			return errStop
		}
		return nil
	}}) // whatever was read until an error counts
	return log.store()
}
