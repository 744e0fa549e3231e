package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// A Kind is a class of objects: the folder between the scope and the name.
type Kind string

// The kinds of objects that a session has.
const (
	KindSegments   Kind = "segments"   // of the transcript, named by sequence and head
	KindBodies     Kind = "bodies"     // named by the digest of their bytes
	KindDispatches Kind = "dispatches" // by idempotency key; sealed
	KindResults    Kind = "results"    // by idempotency key; sealed
	KindIntents    Kind = "intents"    // by intent digest and number
	KindClosings   Kind = "closings"   // by turn and by late compensation, and ForkName; sealed
)

// sealed says whether objects of this kind carry the store's seal.
func (k Kind) sealed() bool { return k == KindDispatches || k == KindResults || k == KindClosings }

// named says whether the name of an object of this kind follows from its content, so that one that is
// damaged may be replaced.
func (k Kind) named() bool { return k == KindSegments || k == KindBodies }

func (k Kind) known() bool { return k.sealed() || k.named() || k == KindIntents }

// A Space is the part of a store that belongs to one life of a session. It is safe for concurrent use.
type Space struct {
	store *Store
	scope agent.Scope
}

// Of returns the part of the same store that belongs to another life.
func (s *Space) Of(scope agent.Scope) *Space { return &Space{store: s.store, scope: scope} }

// MaxName is the length in bytes of the longest escaped name: a file system takes 255.
const MaxName = 240

// object returns the name in the bucket.
func (s *Space) object(kind Kind, name string) (string, error) {
	if !s.scope.Valid() {
		return "", fmt.Errorf("scope %q is not <session>~<8 hex digits>", s.scope)
	}
	if !kind.known() {
		return "", fmt.Errorf("kind %q is not one of the store's", kind)
	}
	esc := escapeName(name)
	if name == "" || len(esc) > MaxName {
		return "", fmt.Errorf("name %.80q of kind %q: want 1 to %d bytes", name, kind, MaxName)
	}
	return s.folder(kind) + esc, nil
}

func (s *Space) folder(kind Kind) string { return s.scope.String() + "/" + string(kind) + "/" }

// Create writes an object unless there is one of that name, which is returned then: its bytes, or
// ErrDamaged, or ErrSeal. Nothing is ever overwritten. When Create fails otherwise, the object may have
// been written or not.
func (s *Space) Create(ctx context.Context, kind Kind, name string, b []byte) (created bool, existing []byte, err error) {
	object, err := s.object(kind, name)
	if err != nil {
		return false, nil, err
	}
	created, err = s.store.create(ctx, object, s.store.sealFor(kind, object, b))
	if err != nil || created {
		return created, nil, err
	}
	existing, err = s.Get(ctx, kind, name)
	if errors.Is(err, ErrAbsent) {
		// Taken away between the two requests, or a list of conditions that the bucket does not
		// keep: no answer to build on.
		err = fmt.Errorf("object %q was there and is not: try again", object)
	}
	return false, existing, err
}

// Get returns an object's bytes: ErrAbsent, ErrSeal, or ErrDamaged together with what could be made out.
func (s *Space) Get(ctx context.Context, kind Kind, name string) ([]byte, error) {
	object, err := s.object(kind, name)
	if err != nil {
		return nil, err
	}
	b, err := s.store.read(ctx, object)
	if err != nil {
		return b, err
	}
	return s.store.unseal(kind, object, b)
}

// Mend replaces an object whose name follows from its content, a segment or a body, after it was found
// damaged.
func (s *Space) Mend(ctx context.Context, kind Kind, name string, b []byte) error {
	object, err := s.object(kind, name)
	if err != nil {
		return err
	}
	if !kind.named() {
		return fmt.Errorf("object %q: records of kind %q are never replaced", object, kind)
	}
	return s.store.replace(ctx, object, b)
}

// List returns the names of the objects of a kind that begin with prefix, in the order of their escaped
// form.
func (s *Space) List(ctx context.Context, kind Kind, prefix string) ([]string, error) {
	if _, err := s.object(kind, "x"); err != nil {
		return nil, err
	}
	folder := s.folder(kind)
	objects, err := s.store.list(ctx, folder+escapeName(prefix))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(objects))
	for _, o := range objects {
		if name, ok := unescapeName(strings.TrimPrefix(o, folder)); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
