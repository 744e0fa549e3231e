package activities

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// slots bounds the requests that are open at each model at a time. Bounds are kept by name and size, so
// that a configuration read anew with the same bound goes on with it.
type slots struct {
	mu sync.Mutex
	by map[slotKey]*semaphore.Weighted
}

type slotKey struct {
	model string
	n     int
}

// take waits for a slot until ctx ends and returns how to give it back.
func (s *slots) take(ctx context.Context, model string, n int) (func(), error) {
	if n <= 0 {
		return func() {}, nil
	}
	s.mu.Lock()
	key := slotKey{model, n}
	sem := s.by[key]
	if sem == nil {
		if s.by == nil {
			s.by = map[slotKey]*semaphore.Weighted{}
		}
		sem = semaphore.NewWeighted(int64(n))
		s.by[key] = sem
	}
	s.mu.Unlock()
	if err := sem.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { sem.Release(1) }, nil
}
