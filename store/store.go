package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"

	"github.com/holdfast-run/holdfast/agent"
)

// Config says where a store is.
type Config struct {
	// URL is file:///absolute/path, file://./relative/path, mem://, or a bucket URL of gocloud.dev
	// with the scheme s3, gs or azblob.
	URL string
	// Seal is the key of the HMAC on dispatch, result and closing records; empty means none. Every
	// worker of a store needs the same.
	Seal []byte
}

// A Store is an open bucket. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	url    string // without query and user, for messages
	id     string
	seal   []byte
	stats  counters
}

// identity names the object that holds the identity of the store.
const identity = "holdfast-store"

// Open opens the store and reads its identity, which it creates in a new store. A folder that does not
// exist is made. A store that has an identity can be opened read-only.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("store url %q: %w: write it as file:///path or s3://bucket", cfg.URL, err)
	}
	bucket, err := openBucket(ctx, u)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, bucket, redact(u), cfg.Seal)
	if err != nil {
		return nil, errors.Join(err, bucket.Close())
	}
	return s, nil
}

// OpenBucket makes a store of a bucket that the caller has opened; Close closes it.
func OpenBucket(ctx context.Context, bucket *blob.Bucket, seal []byte) (*Store, error) {
	return open(ctx, bucket, "bucket", seal)
}

func openBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	switch u.Scheme {
	case "file":
		dir, err := filePath(u)
		if err != nil {
			return nil, err
		}
		d, err := openFile(dir)
		if err != nil {
			return nil, fmt.Errorf("store %q: %w", redact(u), explain(err))
		}
		return blob.NewBucket(d), nil
	case "mem", "s3", "gs", "azblob":
		b, err := blob.OpenBucket(ctx, u.String())
		if err != nil {
			return nil, fmt.Errorf("store %q: %w: check the bucket's name and the worker's credentials", redact(u), err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("store url %q: scheme %q is not known: use file, s3, gs, azblob or mem", redact(u), u.Scheme)
}

// filePath returns the folder that a file:// URL names.
func filePath(u *url.URL) (string, error) {
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("store url %q: a file url takes a path only: file:///path or file://./path", redact(u))
	}
	switch {
	case u.Host == "." && strings.Trim(u.Path, "/") != "":
		return filepath.FromSlash(strings.TrimPrefix(u.Path, "/")), nil
	case u.Host == "" && len(u.Path) > 1:
		return filepath.FromSlash(u.Path), nil
	}
	return "", fmt.Errorf("store url %q: want file:///absolute/path or file://./relative/path", redact(u))
}

// redact drops what may hold a secret.
func redact(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func open(ctx context.Context, bucket *blob.Bucket, name string, seal []byte) (*Store, error) {
	s := &Store{bucket: bucket, url: name, seal: seal}
	b, err := s.read(ctx, identity)
	if errors.Is(err, ErrAbsent) {
		b, err = s.identify(ctx)
	}
	if err != nil {
		return nil, err
	}
	id := strings.TrimSpace(string(b))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 6 || id != strings.ToLower(id) {
		return nil, fmt.Errorf("store %q: object %q holds %.40q, not 12 hex digits: restore it from a backup: %w",
			name, identity, id, ErrDamaged)
	}
	s.id = id
	return s, nil
}

// identify creates the identity; of several workers that open a new store at once one wins.
func (s *Store) identify(ctx context.Context) ([]byte, error) {
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails
	id := []byte(hex.EncodeToString(raw[:]) + "\n")
	created, err := s.create(ctx, identity, id)
	if err != nil || created {
		return id, err
	}
	return s.read(ctx, identity)
}

// ID returns the identity of the store: 12 hex digits, drawn when it was first opened. A copy of a bucket
// has the same.
func (s *Store) ID() string { return s.id }

// Close closes the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Space returns the part of the store that belongs to one life of a session. Operations of a scope that is
// not valid fail.
func (s *Store) Space(scope agent.Scope) *Space { return &Space{store: s, scope: scope} }
