package store

import (
	"context"
	"errors"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"

	"github.com/holdfast-run/holdfast/agent"
)

var scope = agent.NewScope("s", "run")

func openDir(t testing.TB, dir string) *Store {
	t.Helper()
	return openURL(t, Config{URL: "file://" + dir})
}

func openURL(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// faulty is a bucket that somebody interferes with.
type faulty struct {
	driver.Bucket
	// before may refuse a write or change its options.
	before func(key string, o *driver.WriterOptions) error
	// after may replace the answer to a write that was carried out.
	after func(key string, err error) error
}

func (f *faulty) NewTypedWriter(ctx context.Context, key, typ string, o *driver.WriterOptions) (driver.Writer, error) {
	if f.before != nil {
		if err := f.before(key, o); err != nil {
			return nil, err
		}
	}
	w, err := f.Bucket.NewTypedWriter(ctx, key, typ, o)
	return &faultyWriter{w, f, key}, err
}

type faultyWriter struct {
	driver.Writer
	f   *faulty
	key string
}

func (w *faultyWriter) Close() error {
	err := w.Writer.Close()
	if w.f.after != nil {
		err = w.f.after(w.key, err)
	}
	return err
}

// newFaulty returns a store over a bucket of files that the test can interfere with.
func newFaulty(t testing.TB) (*Store, *faulty) {
	t.Helper()
	b, err := openFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Bucket: b}
	s, err := OpenBucket(context.Background(), blob.NewBucket(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// usable fails the test when err says something about an object: then a caller would act on it.
func usable(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, ErrAbsent) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrSeal) {
		t.Errorf("want an error of the store itself, got %v", err)
	}
}
