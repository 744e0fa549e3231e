package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"golang.org/x/sys/unix"

	"github.com/holdfast-run/holdfast/agent"
)

// mount gives a small file system of its own. Without the right to mount, the tests with a limit on the size
// of files and with an injected error stand in.
func mount(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Geteuid() == 0 && os.Getenv("CI") != "" || !errors.Is(err, syscall.EPERM) {
			t.Fatal(err)
		}
		t.Skip("mounting is not allowed here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskLosesNothingAndGoesOnWhenThereIsSpace(t *testing.T) {
	t.Parallel()
	dir := mount(t, "512k")
	s := openDir(t, dir)
	space := s.Space(scope)
	ctx := context.Background()
	written := map[agent.Body][]byte{}
	var err error
	for i := 0; err == nil; i++ {
		if i > 1000 {
			t.Fatal("the disk does not fill up")
		}
		content := bytes.Repeat([]byte{byte(i)}, 10_000+i)
		var body agent.Body
		if body, err = space.PutBody(ctx, content, ""); err == nil {
			written[body] = content
		}
	}
	usable(t, err)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the store is full: free space") {
		t.Errorf("error %v", err)
	}
	check := func() {
		t.Helper()
		for body, content := range written {
			if got, err := space.Body(ctx, body); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("body %s: %v", body.Digest.Short(), err)
			}
		}
		if names, err := space.List(ctx, KindBodies, ""); err != nil || len(names) != len(written) {
			t.Fatalf("%d names for %d bodies, %v", len(names), len(written), err)
		}
	}
	check()
	for _, e := range leftovers(t, dir) {
		t.Errorf("left behind: %s", e)
	}
	for body := range written {
		if err := s.bucket.Delete(ctx, scope.String()+"/bodies/"+string(body.Digest)); err != nil {
			t.Fatal(err)
		}
		delete(written, body)
		if len(written) < 10 {
			break
		}
	}
	if body, err := space.PutBody(ctx, []byte("after"), ""); err != nil {
		t.Error(err)
	} else {
		written[body] = []byte("after")
	}
	check()
}

// leftovers returns temporary files.
func leftovers(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), tempPrefix) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAReadOnlyStoreIsReadAndRefusesWrites(t *testing.T) {
	t.Parallel()
	dir := mount(t, "1m")
	old := openDir(t, dir)
	ctx := context.Background()
	body, err := old.Space(scope).PutBody(ctx, []byte("kept"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1m"); err != nil {
		t.Fatal(err)
	}
	s := openDir(t, dir)
	if s.ID() != old.ID() {
		t.Errorf("identity %q, was %q", s.ID(), old.ID())
	}
	if got, err := s.Space(scope).Body(ctx, body); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	for name, st := range map[string]*Store{"new": s, "open before": old} {
		t.Run(name, func(t *testing.T) { refusesWrites(t, st) })
	}
	if _, err := Open(ctx, Config{URL: "file://" + filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a new store on a read-only disk: %v", err)
	}
}

func refusesWrites(t *testing.T, s *Store) {
	t.Helper()
	ctx, space := context.Background(), s.Space(scope)
	_, err1 := space.PutBody(ctx, []byte("new"), "")
	_, _, err2 := space.CreateDispatch(ctx, Dispatch{Key: "k", Token: "t"})
	_, _, err3 := space.CreateResult(ctx, Result{Key: "k", Tool: &agent.ToolResult{}})
	_, err4 := space.CreateClosing(ctx, ClosingName(1, 0), []byte("{}"))
	for i, err := range []error{err1, err2, err3, err4, s.Prove(ctx)} {
		usable(t, err)
		if !errors.Is(err, syscall.EROFS) || !strings.Contains(fmt.Sprint(err), "the store is read-only: mount it writable") {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

func TestAReadOnlyBucketGivesAClearError(t *testing.T) {
	t.Parallel()
	s, f := newFaulty(t)
	f.before = func(key string, _ *driver.WriterOptions) error {
		return &fs.PathError{Op: "open", Path: key, Err: syscall.EROFS}
	}
	refusesWrites(t, s)
	empty, err := openFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f.Bucket = empty
	_, err = OpenBucket(context.Background(), blob.NewBucket(f), nil)
	usable(t, err)
}

func TestWithoutPermissionTheErrorSaysSo(t *testing.T) {
	t.Parallel()
	s, f := newFaulty(t)
	f.before = func(key string, _ *driver.WriterOptions) error {
		return &fs.PathError{Op: "open", Path: key, Err: syscall.EACCES}
	}
	_, err := s.Space(scope).PutBody(context.Background(), []byte("new"), "")
	usable(t, err)
	if !strings.Contains(fmt.Sprint(err), "give the worker's user read and write access") {
		t.Errorf("error %v", err)
	}
}
