package witness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A Source is where the story of one session is heard.
type Source struct {
	Client    client.Client
	Namespace string // empty is Temporal's default one
	Session   string // its workflow id
	Turns     int    // how many turns the session is to have had in the end; 0 if that is not known
	// Store is the URL, or the folder, of the workers' store. It is only read.
	Store string
	Books func() ([]Entry, error) // the destination's record, in order
	// Requests counts the requests that the destination had for each key; nil where it does not count.
	Requests func() map[string]int
	Charges  func() int // answers that the model server charged for
	// Patience bounds how long Collect waits for the session to come to rest; 0 is half a minute.
	Patience time.Duration
}

// Collect hears every witness of a run that is over. It waits until the session is at rest, for which a worker has to
// live, and says in Story.Stuck what did not come to rest. Shown, Unlisted, Damaged and Calm are the caller's to add.
func Collect(ctx context.Context, src Source) (Story, error) {
	var s Story
	var err error
	if s.Stuck, err = src.settle(ctx); err != nil {
		return s, err
	}
	err = src.hear(ctx, func(h *hearing) error {
		s.Turns, s.Unresolved, s.Queued, s.Replay = h.turns, h.session.Unresolved, h.session.Queued, h.replay()
		s.Stuck = append(s.Stuck, h.idle()...)
		err := h.records(ctx, &s)
		s.Gaps = h.gaps
		return err
	})
	if err != nil {
		return s, err
	}
	if s.Made, err = src.Books(); err != nil {
		return s, fmt.Errorf("the destination's books: %w", err)
	}
	if src.Requests != nil {
		s.Requests = src.Requests()
	}
	s.Charges = src.Charges()
	return s, nil
}

// Turns reads all turns as they stand from their histories and the store: no worker is needed. The turn of number n is
// at n-1; late compensations come last.
func Turns(ctx context.Context, src Source) (out []Turn, err error) {
	err = src.hear(ctx, func(h *hearing) error {
		out = h.turns
		return nil
	})
	return out, err
}

// hear reads what there is of the session and hands it over while the store is open.
func (src Source) hear(ctx context.Context, use func(*hearing) error) (err error) {
	s, err := src.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	h, err := newHearing(ctx, src, s)
	if err != nil {
		return err
	}
	return use(h)
}

// open opens the store, and makes none where there is none.
func (src Source) open(ctx context.Context) (*store.Store, error) {
	at := src.Store
	if !strings.Contains(at, "://") {
		if _, err := os.Stat(at); err != nil {
			return nil, fmt.Errorf("the workers' store: %w", err)
		}
		at = "file://" + at
	}
	return store.Open(ctx, store.Config{URL: at})
}

// records reads what the store has of the effects.
func (h *hearing) records(ctx context.Context, s *Story) error {
	names, err := h.space.List(ctx, store.KindDispatches, "")
	if err != nil {
		return fmt.Errorf("the records of dispatches: %w", err)
	}
	for _, key := range names {
		if _, ok := agent.ParseKey(key); !ok {
			continue // the place of an attempt after the first
		}
		d, err := h.space.Dispatch(ctx, key)
		switch {
		case errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrSeal):
			s.Unreadable = append(s.Unreadable, key)
		case err != nil:
			return fmt.Errorf("the record of the dispatch of %s: %w", key, err)
		default:
			s.Dispatches = append(s.Dispatches, d)
		}
	}
	return nil
}
