package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/holdfast-run/holdfast/agent"
)

// An Intent says which action was the n-th to claim an intent of the session and its forks: the same tool with the
// same identity. It is created before the action's dispatch record and never changed.
type Intent struct {
	Key string // of an action of this session, or of a fork's
}

// A storedIntent has one of the two. Releases before 0.3.0 look for the records of every claim among those of their own
// session. They do not know a fork's, and refuse such a claim as damaged, instead of missing what the fork has sent.
type storedIntent struct {
	Key  string `json:"key,omitempty"`
	Fork string `json:"fork,omitempty"` // the key of an action of another session
}

// CreateIntent claims the n-th place of an intent for a key, unless it is taken, and returns whose it is. A
// standing claim that cannot be read is ErrDamaged.
func (s *Space) CreateIntent(ctx context.Context, intent string, n int, key string) (standing Intent, err error) {
	if intent == "" || key == "" || n < 1 {
		return Intent{}, fmt.Errorf("intent %q of key %q: want both and a number from 1", intent, key)
	}
	claim := storedIntent{Key: key}
	if k, ok := agent.ParseKey(key); ok && k.Scope != s.scope {
		claim = storedIntent{Fork: key}
	}
	b, err := json.Marshal(claim)
	if err != nil {
		return Intent{}, err
	}
	created, existing, err := s.Create(ctx, KindIntents, IntentName(intent, n), b)
	switch {
	case err != nil:
		return Intent{}, err
	case created:
		return Intent{Key: key}, nil
	}
	return decodeIntent(existing, intent, n)
}

// Intent returns the n-th claim of an intent: ErrAbsent, ErrDamaged. Claims are made without gaps.
func (s *Space) Intent(ctx context.Context, intent string, n int) (Intent, error) {
	b, err := s.Get(ctx, KindIntents, IntentName(intent, n))
	if err != nil {
		return Intent{}, err
	}
	return decodeIntent(b, intent, n)
}

func decodeIntent(b []byte, intent string, n int) (Intent, error) {
	var v storedIntent
	if err := json.Unmarshal(b, &v); err != nil || (v.Key == "") == (v.Fork == "") {
		return Intent{}, fmt.Errorf("claim %d of intent %q names not one key: %w", n, intent, ErrDamaged)
	}
	return Intent{Key: v.Key + v.Fork}, nil
}

// IntentName returns the name of the n-th claim of an intent.
func IntentName(intent string, n int) string { return intent + "-" + strconv.Itoa(n) }
