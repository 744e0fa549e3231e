package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob/driver"
)

const defaultPage = 1000

// ListPaged implements driver.Bucket. The page token is the last key of the page before. Only names are
// read to find a page; the files in it are looked at.
func (b *fileBucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	keys, err := b.keys(ctx, opts.Prefix)
	if err != nil {
		return nil, err
	}
	size := opts.PageSize
	if size == 0 {
		size = defaultPage
	}
	var page driver.ListPage
	last := ""
	for _, key := range keys {
		shown, isDir := collapse(key, opts.Prefix, opts.Delimiter)
		if shown <= string(opts.PageToken) || isDir && shown == last {
			continue
		}
		if len(page.Objects) == size {
			page.NextPageToken = []byte(last)
			return &page, nil
		}
		o := &driver.ListObject{Key: shown, IsDir: isDir}
		if !isDir {
			info, err := os.Stat(b.path(key))
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			o.ModTime, o.Size = info.ModTime(), info.Size()
		}
		page.Objects = append(page.Objects, o)
		last = shown
	}
	return &page, nil
}

// collapse returns what a listing shows for a key: the key, or the "folder" that the delimiter makes of it.
func collapse(key, prefix, delimiter string) (shown string, isDir bool) {
	if delimiter == "" {
		return key, false
	}
	at := strings.Index(key[len(prefix):], delimiter)
	if at < 0 {
		return key, false
	}
	return key[:len(prefix)+at+len(delimiter)], true
}

// keys returns the keys that begin with prefix, sorted.
func (b *fileBucket) keys(ctx context.Context, prefix string) ([]string, error) {
	above, dir := "", b.dir
	if at := strings.LastIndexByte(prefix, '/'); at >= 0 {
		above, dir = prefix[:at+1], filepath.Join(b.dir, keyPath(prefix[:at]))
	}
	keys, err := walk(ctx, nil, dir, above, prefix)
	slices.Sort(keys)
	return keys, err
}

// walk adds the keys of the files below dir, whose key is above. Temporary files are no objects.
func walk(ctx context.Context, keys []string, dir, above, prefix string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return keys, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			removeOld(dir, e)
		}
		part, ok := unescapePart(e.Name())
		key := above + part
		switch {
		case !ok:
		case e.IsDir() && (strings.HasPrefix(key+"/", prefix) || strings.HasPrefix(prefix, key+"/")):
			if keys, err = walk(ctx, keys, filepath.Join(dir, e.Name()), key+"/", prefix); err != nil {
				return nil, err
			}
		case e.Type().IsRegular() && strings.HasPrefix(key, prefix):
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// removeOld removes what a process that died has left. Failing to is no harm.
func removeOld(dir string, e fs.DirEntry) {
	info, err := e.Info()
	if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > tempAge {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
}
