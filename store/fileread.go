package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gocloud.dev/blob/driver"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// As implements driver.Bucket: there is nothing to show.
func (b *fileBucket) As(any) bool { return false }

// ErrorAs implements driver.Bucket: there is nothing to show.
func (b *fileBucket) ErrorAs(error, any) bool { return false }

// Close implements driver.Bucket.
func (b *fileBucket) Close() error { return nil }

// open opens an object's file. A folder, or a file where a folder would have to be, is no object.
func (b *fileBucket) open(key string) (*os.File, fs.FileInfo, error) {
	if key == "" {
		return nil, nil, fmt.Errorf("an object needs a name: %w", fs.ErrInvalid)
	}
	path := b.path(key)
	f, err := os.Open(path)
	if errors.Is(err, syscall.ENOTDIR) {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Attributes implements driver.Bucket.
func (b *fileBucket) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	f, info, err := b.open(key)
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{
		ContentType: octets,
		ModTime:     info.ModTime(),
		Size:        info.Size(),
		ETag:        fmt.Sprintf("\"%x-%x\"", info.ModTime().UnixNano(), info.Size()),
	}, f.Close()
}

// fileReader reads a part of a file.
type fileReader struct {
	io.Reader
	f     *os.File
	attrs driver.ReaderAttributes
}

// Close implements driver.Reader.
func (r *fileReader) Close() error { return r.f.Close() }

// Attributes implements driver.Reader.
func (r *fileReader) Attributes() *driver.ReaderAttributes { return &r.attrs }

// As implements driver.Reader: there is nothing to show.
func (r *fileReader) As(any) bool { return false }

// NewRangeReader implements driver.Bucket.
func (b *fileBucket) NewRangeReader(_ context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	if err := failpoint.AtErr(failpoint.StoreBeforeRead); err != nil {
		return nil, &fs.PathError{Op: "open", Path: b.path(key), Err: err}
	}
	f, info, err := b.open(key)
	if err != nil {
		return nil, err
	}
	if opts.BeforeRead != nil {
		if err := opts.BeforeRead(func(any) bool { return false }); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if length < 0 {
		length = max(info.Size()-offset, 0)
	}
	return &fileReader{
		Reader: io.NewSectionReader(f, offset, length),
		f:      f,
		attrs:  driver.ReaderAttributes{ContentType: octets, ModTime: info.ModTime(), Size: info.Size()},
	}, nil
}

// Copy implements driver.Bucket.
func (b *fileBucket) Copy(ctx context.Context, dstKey, srcKey string, opts *driver.CopyOptions) error {
	f, _, err := b.open(srcKey)
	if err != nil {
		return err
	}
	// Only read from.
	defer func() { _ = f.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := b.NewTypedWriter(ctx, dstKey, octets, &driver.WriterOptions{BeforeWrite: opts.BeforeCopy})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, f); err != nil {
		cancel() // makes Close leave nothing
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// Delete implements driver.Bucket.
func (b *fileBucket) Delete(_ context.Context, key string, opts *driver.DeleteOptions) error {
	if opts.BeforeDelete != nil {
		if err := opts.BeforeDelete(func(any) bool { return false }); err != nil {
			return err
		}
	}
	f, _, err := b.open(key)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Remove(b.path(key))); err != nil {
		return err
	}
	return b.syncDir(filepath.Dir(b.path(key)))
}

// SignedURL implements driver.Bucket: a file has none.
func (b *fileBucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", fmt.Errorf("signed urls of files: %w", errors.ErrUnsupported)
}
