package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// fileBucket is a bucket in a folder. An object that was acknowledged is whole and survives the death of
// the process and of the machine; "if absent" holds between processes, because it is link(2) that decides.
// It needs a file system with hard links that tells upper from lower case. An object cannot lie under
// another's name ("a" and "a/b"). Content types and metadata are not kept: metadata is refused.
type fileBucket struct {
	dir  string
	sync func(*os.File) error // fsync; tests watch it

	mu     sync.Mutex
	synced map[string]bool // folders whose entry in their parent is known to be on disk
}

// maxSynced bounds what a bucket remembers; forgetting costs a sync.
const maxSynced = 10_000

// errExists is what a create finds when the object is there.
var errExists = errors.New("the object exists")

func openFile(dir string) (*fileBucket, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b := &fileBucket{dir: abs, sync: (*os.File).Sync, synced: map[string]bool{}}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return b, b.makeDir(abs)
	}
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: abs, Err: syscall.ENOTDIR}
	}
	// What is above a folder that was there may not be ours to read.
	b.setSynced(abs)
	return b, err
}

// makeDir makes a folder and those above it and syncs each one's parent. A folder that another process has
// just made is synced too: its entry may not be on disk yet.
func (b *fileBucket) makeDir(dir string) error {
	if b.isSynced(dir) {
		if _, err := os.Stat(dir); err == nil {
			return nil
		}
	}
	parent := filepath.Dir(dir)
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := b.makeDir(parent); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o777)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if len(dir) > len(b.dir) { // a folder of ours, so its parents may be new as well
		if err := b.makeDir(parent); err != nil {
			return err
		}
	}
	if err := b.syncDir(parent); err != nil {
		return err
	}
	b.setSynced(dir)
	return nil
}

func (b *fileBucket) isSynced(dir string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.synced[dir]
}

func (b *fileBucket) setSynced(dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.synced) >= maxSynced {
		clear(b.synced)
	}
	b.synced[dir] = true
}

func (b *fileBucket) syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(b.sync(d), d.Close())
}

func (b *fileBucket) path(key string) string { return filepath.Join(b.dir, keyPath(key)) }

// NewTypedWriter implements driver.Bucket.
func (b *fileBucket) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	if key == "" {
		return nil, fmt.Errorf("an object needs a name: %w", fs.ErrInvalid)
	}
	if len(opts.Metadata) > 0 {
		return nil, fmt.Errorf("metadata is not kept in files: %w", errors.ErrUnsupported)
	}
	if opts.BeforeWrite != nil {
		if err := opts.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	path := b.path(key)
	if err := failpoint.AtErr(failpoint.StoreBeforeWrite); err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if dir := filepath.Dir(path); !b.isSynced(dir) {
		if err := b.makeDir(dir); err != nil {
			return nil, err
		}
	}
	f, err := createTemp(path)
	if errors.Is(err, fs.ErrNotExist) { // somebody has taken the folder away
		if err = b.makeDir(filepath.Dir(path)); err == nil {
			f, err = createTemp(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return &fileWriter{ctx: ctx, bucket: b, f: f, path: path, ifAbsent: opts.IfNotExist}, nil
}

// tempPrefix begins the names of temporary files. No object's file begins with a dot: see keyPath.
const tempPrefix = ".tmp-"

// tempAge is after which a temporary file is taken for the leftover of a process that died.
const tempAge = 24 * time.Hour

func createTemp(path string) (*os.File, error) {
	name := filepath.Join(filepath.Dir(path), tempPrefix+rand.Text())
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// fileWriter writes a temporary file beside the target, which Close gives its name.
type fileWriter struct {
	ctx      context.Context
	bucket   *fileBucket
	f        *os.File
	path     string
	ifAbsent bool
	failed   bool
}

func (w *fileWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.failed = w.failed || err != nil
	return n, err
}

// Close makes the object visible and durable, or leaves nothing.
func (w *fileWriter) Close() error {
	temp := w.f.Name()
	err := w.ctx.Err()
	if err == nil && w.failed {
		err = fmt.Errorf("an earlier write failed: %w", io.ErrShortWrite)
	}
	if err == nil {
		err = w.bucket.sync(w.f)
	}
	if e := w.f.Close(); err == nil {
		err = e
	}
	if err == nil && w.ifAbsent {
		err = link(temp, w.path)
	} else if err == nil {
		err = os.Rename(temp, w.path)
	}
	if err != nil || w.ifAbsent {
		// What cannot be removed now is ignored by readers and removed when it is old.
		_ = os.Remove(temp)
	}
	if err != nil && !errors.Is(err, errExists) {
		return err
	}
	// Also when the object exists: whoever relies on what another process has just linked must not
	// lose it with the machine.
	if e := w.bucket.syncDir(filepath.Dir(w.path)); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	return failpoint.AtErr(failpoint.StoreAfterWrite)
}

// link gives temp its name unless the name is taken.
func link(temp, path string) error {
	err := os.Link(temp, path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// A network file system may repeat a link that has succeeded and report the second.
	t, err1 := os.Stat(temp)
	p, err2 := os.Stat(path)
	if err1 == nil && err2 == nil && os.SameFile(t, p) {
		return nil
	}
	return errExists
}

// ErrorCode implements driver.Bucket.
func (b *fileBucket) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errExists):
		return gcerrors.FailedPrecondition
	case errors.Is(err, fs.ErrNotExist):
		return gcerrors.NotFound
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return gcerrors.PermissionDenied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return gcerrors.ResourceExhausted
	case errors.Is(err, errors.ErrUnsupported):
		return gcerrors.Unimplemented
	case errors.Is(err, fs.ErrInvalid):
		return gcerrors.InvalidArgument
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	}
	return gcerrors.Unknown
}
