package activities

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/holdfast-run/holdfast/store"
)

// A fault is what goes wrong with one request to an unsteady bucket. The zero value is nothing.
type fault struct {
	before time.Duration // how long the request takes to arrive
	after  time.Duration // and its answer to come back
	lost   bool          // it never arrives
	unsaid bool          // it arrives, and its answer is an error
	torn   bool          // what is read, or written, is damaged
	then   func()        // what happens to whoever asked, when the request has been carried out
}

// An unsteady bucket is in memory. Each request asks what goes wrong with it: op is "create", "read" or "list".
type unsteady struct {
	fault func(ctx context.Context, op, name string) fault

	mu      sync.Mutex
	objects map[string][]byte
}

var (
	errTaken  = errors.New("there is one already")
	errBucket = errors.New("the bucket is in trouble")
)

func newUnsteady(t *testing.T, f func(ctx context.Context, op, name string) fault) *store.Store {
	t.Helper()
	b := &unsteady{objects: map[string][]byte{}, fault: func(context.Context, string, string) fault { return fault{} }}
	s, err := store.OpenBucket(t.Context(), blob.NewBucket(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b.fault = f
	return s
}

// do carries a request out as its fault has it.
func (b *unsteady) do(ctx context.Context, op, name string, f func(torn bool) error) (fault, error) {
	x := b.fault(ctx, op, name)
	time.Sleep(x.before)
	if x.lost {
		return x, errBucket
	}
	b.mu.Lock()
	err := f(x.torn)
	b.mu.Unlock()
	time.Sleep(x.after)
	if x.then != nil {
		x.then()
	}
	if x.unsaid {
		err = errBucket
	}
	return x, err
}

func (b *unsteady) NewTypedWriter(ctx context.Context, key, _ string, o *driver.WriterOptions) (driver.Writer, error) {
	return &unsteadyWriter{bucket: b, ctx: ctx, key: key, ifAbsent: o.IfNotExist}, nil
}

type unsteadyWriter struct {
	bytes.Buffer
	bucket   *unsteady
	ctx      context.Context //nolint:containedctx // that of the request
	key      string
	ifAbsent bool
}

func (w *unsteadyWriter) Close() error {
	_, err := w.bucket.do(w.ctx, "create", w.key, func(torn bool) error {
		if _, ok := w.bucket.objects[w.key]; ok && w.ifAbsent {
			return errTaken
		}
		w.bucket.objects[w.key] = slices.Clone(w.Bytes())
		if torn {
			w.bucket.objects[w.key] = slices.Clone(w.Bytes()[:w.Len()/2])
		}
		return nil
	})
	return err
}

func (b *unsteady) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	var data []byte
	x, err := b.do(ctx, "read", key, func(bool) error {
		o, ok := b.objects[key]
		if !ok {
			return fs.ErrNotExist
		}
		data = slices.Clone(o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if x.torn {
		data = data[:len(data)/2]
	}
	size := int64(len(data))
	if data = data[min(offset, size):]; length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return &unsteadyReader{Reader: bytes.NewReader(data), size: size}, nil
}

type unsteadyReader struct {
	*bytes.Reader
	size int64
}

func (r *unsteadyReader) Close() error { return nil }
func (r *unsteadyReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.size}
}
func (r *unsteadyReader) As(any) bool { return false }

func (b *unsteady) ListPaged(ctx context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	page := &driver.ListPage{}
	_, err := b.do(ctx, "list", o.Prefix, func(bool) error {
		for key := range b.objects {
			if strings.HasPrefix(key, o.Prefix) {
				page.Objects = append(page.Objects, &driver.ListObject{Key: key})
			}
		}
		slices.SortFunc(page.Objects, func(a, b *driver.ListObject) int { return strings.Compare(a.Key, b.Key) })
		return nil
	})
	return page, err
}

func (b *unsteady) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errTaken):
		return gcerrors.FailedPrecondition
	case errors.Is(err, fs.ErrNotExist):
		return gcerrors.NotFound
	}
	return gcerrors.Unknown
}

func (b *unsteady) As(any) bool             { return false }
func (b *unsteady) ErrorAs(error, any) bool { return false }
func (b *unsteady) Close() error            { return nil }
func (b *unsteady) Attributes(context.Context, string) (*driver.Attributes, error) {
	return nil, errors.ErrUnsupported
}

func (b *unsteady) Copy(context.Context, string, string, *driver.CopyOptions) error {
	return errors.ErrUnsupported
}

func (b *unsteady) Delete(context.Context, string, *driver.DeleteOptions) error {
	return errors.ErrUnsupported
}

func (b *unsteady) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errors.ErrUnsupported
}

var _ io.Reader = (*unsteadyReader)(nil)
