package world

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPassingsAreReadAsFarAsTheyAreWritten reads a file to which a worker appends.
func TestPassingsAreReadAsFarAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	w := &World{Dir: t.TempDir(), cfg: Config{Clock: time.Hour}}
	if got, err := w.Acted(); got != nil || err != nil {
		t.Errorf("before any: %+v, %v", got, err)
	}
	write := func(text string) {
		if err := os.WriteFile(w.actedFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tool.after_commit 2 3600000000007 41\nstore.before_read 1 36000")
	got, err := w.Acted()
	want := []Passing{{"tool.after_commit", 2, time.Unix(0, 7), 41}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	write("tool.after_commit 2\n")
	if got, err := w.Acted(); err == nil {
		t.Errorf("a line without a time is %+v", got)
	}
}

// TestWidthsAreReadFromWhatWorkersHaveMeasured reads those of two worlds, one of which has sent nothing.
func TestWidthsAreReadFromWhatWorkersHaveMeasured(t *testing.T) {
	t.Parallel()
	l := &Lab{}
	w, idle := &World{lab: l, Dir: t.TempDir()}, &World{lab: l, Dir: t.TempDir()}
	if err := os.WriteFile(w.widthFile(), []byte("1300\n33000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.measure(), idle.measure()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{1300, 33000}, l.Widths()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.WriteFile(w.widthFile(), []byte("soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.measure(); err == nil {
		t.Error("a width that is no number is read")
	}
}
