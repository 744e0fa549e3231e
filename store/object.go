package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// MaxObject is the size in bytes of the largest object; a larger one is refused on both ways.
const MaxObject = 512 << 20

const octets = "application/octet-stream"

type counters struct{ reads, writes, lists, bytesRead, bytesWritten atomic.Int64 }

// Stats counts the requests to the bucket since the store was opened.
type Stats struct {
	Reads, Writes, Lists    int64
	BytesRead, BytesWritten int64 // of objects in their stored form
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{
		Reads: s.stats.reads.Load(), Writes: s.stats.writes.Load(), Lists: s.stats.lists.Load(),
		BytesRead: s.stats.bytesRead.Load(), BytesWritten: s.stats.bytesWritten.Load(),
	}
}

// create writes an object unless there is one of that name; false means that there was.
func (s *Store) create(ctx context.Context, name string, b []byte) (bool, error) {
	err := s.write(ctx, name, b, true)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return false, nil
	}
	if err != nil {
		return false, s.failWrite("create", name, err)
	}
	return true, nil
}

// replace writes an object whatever stands there.
func (s *Store) replace(ctx context.Context, name string, b []byte) error {
	if err := s.write(ctx, name, b, false); err != nil {
		return s.failWrite("replace", name, err)
	}
	return nil
}

func (s *Store) write(ctx context.Context, name string, b []byte, ifAbsent bool) error {
	if len(b) > MaxObject {
		return fmt.Errorf("%d bytes are more than the %d that an object may have", len(b), MaxObject)
	}
	// The content type is given so that nothing is sniffed out of what may be a secret.
	w, err := s.bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: octets, IfNotExist: ifAbsent})
	if err != nil {
		return err
	}
	stored := wrap(b)
	s.stats.writes.Add(1)
	s.stats.bytesWritten.Add(int64(len(stored)))
	if _, err := w.Write(stored); err != nil {
		// Close aborts a write that failed; its error is the same one or says less.
		_ = w.Close()
		return err
	}
	return w.Close()
}

// read returns an object's bytes: with ErrDamaged what could be made out of them, with ErrAbsent none.
func (s *Store) read(ctx context.Context, name string) ([]byte, error) {
	s.stats.reads.Add(1)
	r, err := s.bucket.NewReader(ctx, name, nil)
	if err != nil {
		return nil, s.fail("read", name, err)
	}
	if r.Size() > MaxObject {
		return nil, errors.Join(s.fail("read", name, fmt.Errorf("%d bytes: %w", r.Size(), ErrDamaged)), r.Close())
	}
	stored := make([]byte, r.Size())
	n, err := io.ReadFull(r, stored)
	s.stats.bytesRead.Add(int64(n))
	// A read that ends early has nothing more to say when it is closed.
	_ = r.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.fail("read", name, err)
	}
	b, err := unwrap(stored)
	if err != nil {
		return b, fmt.Errorf("store %q: read %q: %w", s.url, name, err)
	}
	return b, nil
}

// list returns the names of all objects that begin with prefix, in order.
func (s *Store) list(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	it := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	s.stats.lists.Add(1)
	for {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, s.fail("list", prefix, err)
		}
		names = append(names, o.Key)
	}
}
