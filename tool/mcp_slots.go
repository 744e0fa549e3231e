package tool

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-run/holdfast/agent"
)

// mcpSlots bounds the calls that one server runs at once. A session gets at most half of them, so that one
// whose calls hang leaves room for the others.
type mcpSlots struct {
	all  *semaphore.Weighted
	half int64

	mu      sync.Mutex
	session map[agent.Scope]*sessionSlots
}

type sessionSlots struct {
	sem  *semaphore.Weighted
	uses int // calls that run or wait
}

func newMCPSlots(n int) *mcpSlots {
	return &mcpSlots{
		all:     semaphore.NewWeighted(int64(n)),
		half:    int64(max(1, n/2)),
		session: map[agent.Scope]*sessionSlots{},
	}
}

// take waits for a slot until ctx ends and returns the function that gives it back.
func (s *mcpSlots) take(ctx context.Context, scope agent.Scope) (func(), error) {
	own := s.enter(scope)
	if err := own.sem.Acquire(ctx, 1); err != nil {
		s.leave(scope)
		return nil, fmt.Errorf("this session's other calls to the server took all of the call's time: %w", err)
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		own.sem.Release(1)
		s.leave(scope)
		return nil, fmt.Errorf("other calls to the server took all of the call's time: %w", err)
	}
	return func() {
		s.all.Release(1)
		own.sem.Release(1)
		s.leave(scope)
	}, nil
}

func (s *mcpSlots) enter(scope agent.Scope) *sessionSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.session[scope]
	if !ok {
		own = &sessionSlots{sem: semaphore.NewWeighted(s.half)}
		s.session[scope] = own
	}
	own.uses++
	return own
}

func (s *mcpSlots) leave(scope agent.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.session[scope]
	if own.uses--; own.uses == 0 {
		delete(s.session, scope)
	}
}
