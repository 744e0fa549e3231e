package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
)

// PutBody stores b under its digest and returns its name. Storing the same bytes again is success, and
// mends them when what stands there is damaged.
func (s *Space) PutBody(ctx context.Context, b []byte, mediaType string) (agent.Body, error) {
	body := agent.Body{Digest: agent.DigestOf(b), Size: int64(len(b)), Type: mediaType}
	created, existing, err := s.Create(ctx, KindBodies, string(body.Digest), b)
	if created {
		return body, nil
	}
	if errors.Is(err, ErrDamaged) || err == nil && agent.DigestOf(existing) != body.Digest {
		err = s.Mend(ctx, KindBodies, string(body.Digest), b)
	}
	if err != nil {
		return agent.Body{}, err
	}
	return body, nil
}

// Body returns the bytes that body names after it has checked their digest: ErrAbsent, ErrDamaged.
func (s *Space) Body(ctx context.Context, body agent.Body) ([]byte, error) {
	if !body.Digest.Valid() {
		return nil, fmt.Errorf("body %q: not a digest: %w", body.Digest, ErrAbsent)
	}
	b, err := s.Get(ctx, KindBodies, string(body.Digest))
	if err != nil {
		return nil, err
	}
	if agent.DigestOf(b) != body.Digest {
		return nil, fmt.Errorf("store %q: body %q of %s: %w", s.store.url, body.Digest, s.scope, ErrDamaged)
	}
	return b, nil
}
