package transcript

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// memory is a bucket in memory that can be full, read-only or out of reach.
type memory struct {
	driver.Bucket // what is not written here is not called
	mu            sync.Mutex
	objects       map[string][]byte
	write, read   atomic.Pointer[error]
}

func (m *memory) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gcerrors.NotFound
	case errors.Is(err, fs.ErrExist):
		return gcerrors.FailedPrecondition
	}
	return gcerrors.Unknown
}

func (m *memory) ErrorAs(error, any) bool { return false }

func (m *memory) Close() error { return nil }

type memoryWriter struct {
	m        *memory
	key      string
	ifAbsent bool
	b        []byte
}

func (m *memory) NewTypedWriter(_ context.Context, key, _ string, o *driver.WriterOptions) (driver.Writer, error) {
	return &memoryWriter{m: m, key: key, ifAbsent: o.IfNotExist}, nil
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

func (w *memoryWriter) Close() error {
	if err := w.m.write.Load(); err != nil {
		return *err
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if _, ok := w.m.objects[w.key]; ok && w.ifAbsent {
		return fs.ErrExist
	}
	w.m.objects[w.key] = w.b
	return nil
}

type memoryReader struct {
	*strings.Reader
	attrs driver.ReaderAttributes
}

func (memoryReader) Close() error                           { return nil }
func (memoryReader) As(any) bool                            { return false }
func (r memoryReader) Attributes() *driver.ReaderAttributes { return &r.attrs }

func (m *memory) NewRangeReader(_ context.Context, key string, _, _ int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if err := m.read.Load(); err != nil {
		return nil, *err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.objects[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memoryReader{strings.NewReader(string(b)), driver.ReaderAttributes{Size: int64(len(b))}}, nil
}

func (m *memory) ListPaged(_ context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	page := &driver.ListPage{}
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if strings.HasPrefix(key, o.Prefix) {
			page.Objects = append(page.Objects, &driver.ListObject{Key: key})
		}
	}
	return page, nil
}

func TestAStoreThatCannotBeUsedIsAnErrorAndNeverAGap(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := &memory{objects: map[string][]byte{}}
	s, err := store.OpenBucket(ctx, blob.NewBucket(m), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := New(s, 1<<20)
	heads, all := grow(t, l, 7)
	for name, fault := range map[string]error{"full": syscall.ENOSPC, "read-only": syscall.EROFS, "out of reach": errors.New("connection refused")} {
		m.write.Store(&fault)
		for _, long := range []string{"", strings.Repeat("x", MaxInline+1)} {
			h, err := l.Append(ctx, scope, heads[7], []Entry{{Role: agent.RoleUser, Text: name + long}})
			if !errors.Is(err, fault) || damaged(err) || h != heads[7] {
				t.Errorf("%s: append gave %d, %v", name, h.Seq, err)
			}
		}
		if c := read(t, New(s, 0), heads[7]); !sameEntries(all, c.Entries) || c.Gaps != nil {
			t.Errorf("%s: reading gave %d entries, gaps %v", name, len(c.Entries), c.Gaps)
		}
		m.write.Store(nil)
		m.read.Store(&fault)
		if c, err := New(s, 0).Read(ctx, scope, heads[7]); !errors.Is(err, fault) || c.Gaps != nil {
			t.Errorf("%s: %+v, %v", name, c.Gaps, err)
		}
		if _, err := New(s, 0).Verify(ctx, scope, heads[7]); !errors.Is(err, fault) {
			t.Errorf("%s: verified: %v", name, err)
		}
		if c := read(t, l, heads[7]); !sameEntries(all, c.Entries) {
			t.Errorf("%s: the cache gave %d entries", name, len(c.Entries))
		}
		m.read.Store(nil)
		if h, err := l.Append(ctx, scope, heads[7], []Entry{{Role: agent.RoleUser, Text: name}}); err != nil || h.Seq != 8 {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

func TestATranscriptInFilesOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *store.Store {
		s, err := store.Open(context.Background(), store.Config{URL: "file://" + dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	heads, all := grow(t, New(open(), 1<<20), 21)
	s := open()
	if c := read(t, New(s, 1<<20), heads[21]); !sameEntries(all, c.Entries) {
		t.Errorf("%d entries", len(c.Entries))
	}
	if r := verify(t, s, heads[21]); !r.OK() || r.Objects != 21 {
		t.Errorf("%+v", r)
	}
	segment := dir + "/" + objectOf(heads[16])
	if err := os.Truncate(segment, 100); err != nil {
		t.Fatal(err)
	}
	checkRead(t, s, heads[21], 16)
}
