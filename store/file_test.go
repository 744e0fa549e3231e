package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

func TestAnyNameIsOneSafePath(t *testing.T) {
	t.Parallel()
	names := []string{
		"a", "a/b", "/a", "a/", "//", "/", ".", "..", "../a", "../../etc/passwd", "a/../b", ".tmp-x", "%", "%2E", "%%",
		"a\x00b", "a\nb", "a\\b", "C:\\x", "a b", "ä", "..a", "a/.", "\x7f", "%25", ".",
	}
	seen := map[string]string{}
	for _, n := range names {
		p := keyPath(n)
		if !filepath.IsLocal(p) || strings.ContainsAny(p, "\x00\n\\") || strings.HasPrefix(filepath.Base(p), ".") {
			t.Errorf("%q becomes %q", n, p)
		}
		if other, ok := seen[p]; ok && other != n {
			t.Errorf("%q and %q are both %q", n, other, p)
		}
		seen[p] = n
	}
}

func FuzzKeyPath(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "%", "%2e", ".tmp-1", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" {
			return
		}
		p := keyPath(key)
		if !filepath.IsLocal(p) {
			t.Fatalf("%q leads out: %q", key, p)
		}
		parts := strings.Split(p, string(filepath.Separator))
		for i := range parts {
			part, ok := unescapePart(parts[i])
			if !ok {
				t.Fatalf("%q of %q is not undone", parts[i], key)
			}
			parts[i] = part
		}
		if got := strings.Join(parts, "/"); got != key {
			t.Fatalf("%q came back as %q", key, got)
		}
		if part, ok := unescapePart(key); ok && escapePart(part) != key {
			t.Fatalf("file name %q is taken for %q, which is written elsewhere", key, part)
		}
	})
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"s~0a:turn-1/2.3/ff", "=2F", ",", "ä", "../..", "\x00"} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, name, more string) {
		esc := escapeName(name)
		if got, ok := unescapeName(esc); !ok || got != name {
			t.Fatalf("%q -> %q -> %q", name, esc, got)
		}
		if strings.Contains(esc, "/") || !strings.HasPrefix(escapeName(name+more), esc) {
			t.Fatalf("%q -> %q", name, esc)
		}
		if back, ok := unescapeName(name); ok && escapeName(back) != name {
			t.Fatalf("%q is taken for %q", name, back)
		}
	})
}

func TestTemporaryFilesAreNoObjectsAndOldOnesGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	ctx := context.Background()
	if _, err := s.create(ctx, "x/object", []byte("here")); err != nil {
		t.Fatal(err)
	}
	young, old := filepath.Join(dir, "x", tempPrefix+"young"), filepath.Join(dir, "x", tempPrefix+"old")
	foreign := filepath.Join(dir, "x", "50%") // no name of ours looks like this
	for _, f := range []string{young, old, foreign} {
		if err := os.WriteFile(f, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * tempAge)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	names, err := s.list(ctx, "x/")
	if err != nil || !slices.Equal(names, []string{"x/object"}) {
		t.Errorf("listed %q, %v", names, err)
	}
	for f, want := range map[string]bool{young: true, old: false, foreign: true} {
		if _, err := os.Stat(f); (err == nil) != want {
			t.Errorf("%q is there: %v", f, err == nil)
		}
	}
}

func TestAFolderTakenAwayIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	for range 2 {
		if created, err := s.create(context.Background(), "a/b/c/d", []byte("x")); err != nil || !created {
			t.Fatal(created, err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.read(context.Background(), "a/b/c/d"); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}

func TestAnObjectCannotLieUnderAnother(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	ctx := context.Background()
	if _, err := s.create(ctx, "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	_, err := s.create(ctx, "a/b", []byte("x"))
	usable(t, err)
	if !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	if _, err := s.read(ctx, "a/b"); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	if names, err := s.list(ctx, "a/"); err != nil || names != nil {
		t.Error(names, err)
	}
	if _, err := s.create(ctx, "c/d", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(ctx, "c"); !errors.Is(err, ErrAbsent) {
		t.Errorf("a folder was read: %v", err)
	}
}

func TestAWriteThatIsCancelledOrRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := openFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := b.NewTypedWriter(ctx, "k", "", &driver.WriterOptions{IfNotExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := w.Close(); b.ErrorCode(err) != gcerrors.Canceled {
		t.Errorf("a cancelled write: %v", err)
	}
	if _, err := b.NewTypedWriter(context.Background(), "k", "", &driver.WriterOptions{Metadata: map[string]string{"a": "b"}}); b.ErrorCode(err) != gcerrors.Unimplemented {
		t.Errorf("metadata was taken: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("left %v, %v", files, err)
	}
}

// TestAnAcknowledgedWriteWasSyncedInOrder: the bytes before the object can be seen, its name before the
// write is acknowledged, and nothing more than these two.
func TestAnAcknowledgedWriteWasSyncedInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := openFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "a", "b")
	var synced []string
	var fail error
	b.sync = func(f *os.File) error {
		rel, err := filepath.Rel(dir, f.Name())
		if err != nil {
			return err
		}
		if strings.HasPrefix(filepath.Base(rel), tempPrefix) {
			rel = "temp"
		}
		if _, err := os.Stat(target); err == nil {
			rel += " with object"
		}
		synced = append(synced, rel)
		return fail
	}
	write := func() error {
		synced = nil
		w, err := b.NewTypedWriter(context.Background(), "a/b", "", &driver.WriterOptions{IfNotExist: true})
		if err != nil {
			return err
		}
		return w.Close()
	}
	for i, want := range [][]string{
		{".", "temp", "a with object"},        // the new folder first
		{"temp with object", "a with object"}, // the loser relies on what it found
		{"temp", "a with object"},             // removed before, see below
	} {
		if i == 2 {
			if err := os.Remove(target); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(); (err == nil) != (i != 1) || !slices.Equal(synced, want) {
			t.Errorf("write %d synced %q, want %q; %v", i, synced, want, err)
		}
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	fail = syscall.EIO
	if err := write(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a failed sync was acknowledged: %v", err)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "a")); err != nil || len(files) != 0 {
		t.Errorf("left %v, %v", files, err)
	}
}

func TestAnOverwriteIsWholeAtEveryMoment(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir())
	ctx := context.Background()
	a, b := strings.Repeat("a", 50_000), strings.Repeat("b", 70_000)
	if err := s.replace(ctx, "x", []byte(a)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 50 && err == nil; i++ {
			err = s.replace(ctx, "x", []byte([]string{a, b}[i%2]))
		}
		done <- err
	}()
	for {
		got, err := s.read(ctx, "x")
		if err != nil || string(got) != a && string(got) != b {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	space := openDir(b, b.TempDir()).Space(scope)
	for i := range b.N {
		if created, _, err := space.Create(context.Background(), KindIntents, time.Now().Format(time.RFC3339Nano)+string(rune('a'+i%26)), make([]byte, 600)); err != nil || !created {
			b.Fatal(created, err)
		}
	}
}
