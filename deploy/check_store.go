package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A shelf reads old definitions from the store. It is safe for concurrent use.
type shelf struct {
	store *store.Store

	mu      sync.Mutex
	known   map[agent.Digest]*agent.Definition // few: many sessions have the same
	trouble error                              // the first of the store itself
	times   int                                // that it had trouble
}

func newShelf(s *store.Store) *shelf {
	return &shelf{store: s, known: map[agent.Digest]*agent.Definition{}}
}

// definition reads the one that a run was made with from its session's space. That another session has it says
// nothing about this one.
func (s *shelf) definition(ctx context.Context, m made) found {
	digest := m.by.Definition
	b, err := s.store.Space(m.scope).Body(ctx, agent.Body{Digest: digest})
	switch {
	case errors.Is(err, store.ErrAbsent):
		return found{why: "the store does not have it"}
	case errors.Is(err, store.ErrDamaged):
		return found{why: "it is damaged in the store"}
	case err != nil:
		s.failed(err)
		return found{why: "the store does not answer"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[digest] == nil {
		var def agent.Definition
		_ = json.Unmarshal(b, &def) // what is no definition has no name
		s.known[digest] = &def
	}
	def := s.known[digest]
	if def.Name != m.agent {
		return found{why: "it has no form that this build knows, or is another agent's"}
	}
	return found{def: def}
}

// last returns what a session's last turn was made with, for a session that does not keep it: the turn's closing
// record says it. It is empty where there is none to be read: then nobody knows.
func (s *shelf) last(ctx context.Context, m made) agent.Identity {
	var closing struct {
		Definition agent.Digest `json:"definition"`
		Build      string       `json:"build"`
		Result     struct {
			By *agent.Identity `json:"by"`
		} `json:"result"`
	}
	b, err := s.store.Space(m.scope).Closing(ctx, store.ClosingName(m.turns, 0))
	if err != nil && !errors.Is(err, store.ErrAbsent) && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrSeal) {
		s.failed(err)
	}
	if err != nil || json.Unmarshal(b, &closing) != nil {
		return agent.Identity{}
	}
	if closing.Result.By != nil {
		return *closing.Result.By
	}
	return agent.Identity{Definition: closing.Definition, Build: closing.Build}
}

func (s *shelf) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	if s.trouble == nil {
		s.trouble = err
	}
}

// problems says that the store could not be asked, once.
func (s *shelf) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil {
		return nil
	}
	return []string{fmt.Sprintf("the store could not be read %d times, first: %v", s.times, s.trouble)}
}
