package world

import (
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

// TestAWidthIsFromTheLastLookToTheSendThatFollows has two processes, one of which is held between the two.
func TestAWidthIsFromTheLastLookToTheSendThatFollows(t *testing.T) {
	t.Parallel()
	at := func(name string, ms, pid int) Passing {
		return Passing{Name: name, N: 1, At: time.Unix(0, int64(ms)*int64(time.Millisecond)), PID: pid}
	}
	held := at("tool.last_check", 20, 1)
	got := widths([]Passing{
		at("tool.after_send", 1, 1), // of what has no such look
		at("tool.last_check", 2, 1),
		at("tool.last_check", 4, 1),
		at("tool.last_check", 5, 2),
		at("tool.after_send", 9, 1),
		at("tool.after_send", 11, 2),
		held,
		at("tool.after_send", 7020, 1),
		at("tool.last_check", 7030, 1),
	}, []Passing{held})
	if diff := cmp.Diff([]time.Duration{5 * time.Millisecond, 6 * time.Millisecond}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
