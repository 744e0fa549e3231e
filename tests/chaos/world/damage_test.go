package world

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheNewestObjectOfItsKindIsDamaged has older and newer ones, of other kinds and sessions, and one half written.
func TestTheNewestObjectOfItsKindIsDamaged(t *testing.T) {
	t.Parallel()
	w := &World{Dir: t.TempDir(), Session: "s"}
	begin := time.Now().Add(-time.Hour)
	for i, name := range []string{"s~1/results/old", "s~1/results/new", "s~1/results/.tmp-x", "s~1/bodies/b", "t~1/results/c"} {
		path := filepath.Join(w.Store(), name)
		if err := writeFile(path, []byte("hf1 none - 00000000\nbytes")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, begin, begin.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	want := filepath.Join(w.Store(), "s~1/results/new")
	if got, err := w.Damage("results", "flipped"); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if b, err := os.ReadFile(want); err != nil || string(b) != "hf1 none - 00000000\nbyues" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := w.Damage("results", "truncated"); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(want); err != nil || string(b) != "hf1 none - 00000000\nby" {
		t.Errorf("%q, %v", b, err)
	}
}
