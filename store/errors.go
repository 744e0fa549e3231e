package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"gocloud.dev/gcerrors"
)

// Errors that say something about an object. They are tested with errors.Is.
var (
	// ErrAbsent means that there is no such object.
	ErrAbsent = errors.New("not in the store")
	// ErrDamaged means that the object's bytes are not those that were written.
	ErrDamaged = errors.New("damaged in the store")
	// ErrSeal means that a record has no seal or a wrong one although the configuration wants one:
	// it was not written by a worker of this store and is never adopted.
	ErrSeal = errors.New("seal missing or wrong")
)

// fail adds to an error of the bucket what was done to what, and what to do about it.
func (s *Store) fail(op, name string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("store %q: %s %q: %w", s.url, op, name, ErrAbsent)
	}
	return fmt.Errorf("store %q: %s %q: %w", s.url, op, name, explain(err))
}

// failWrite is fail for what is not there yet anyway: "not found" is then the bucket itself, which may come
// back, and nothing that could be said of the object.
func (s *Store) failWrite(op, name string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = fmt.Errorf("the bucket is not there: %w", err)
	}
	return fmt.Errorf("store %q: %s %q: %w", s.url, op, name, explain(err))
}

// explain puts words for a person before the error of a file system. The error stays in the chain.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the store is read-only: mount it writable or name another in store.url: %w", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("the store is full: free space or raise the quota: %w", err)
	case errors.Is(err, fs.ErrPermission), gcerrors.Code(err) == gcerrors.PermissionDenied:
		return fmt.Errorf("no permission: give the worker's user read and write access: %w", err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("a file stands where a folder is needed: move it away: %w", err)
	}
	return err
}
