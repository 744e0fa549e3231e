package histories

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/workflows"
)

var today = replay.Replayer{Register: func(r worker.WorkflowRegistry) {
	workflows.Register(r, workflows.Options{Replay: true})
}}

func TestEveryRecordedHistoryReplays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, h *historypb.History) {
		if err := today.Replay(h); err != nil {
			t.Error(err)
		}
	})
}

// A deploy meets runs half way.
func TestEveryRecordedHistoryReplaysFromWhereverItStood(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, h *historypb.History) {
		for n := 1; n < len(h.GetEvents()); n++ {
			if replay.Asked(h.GetEvents()[n]) {
				continue // the server writes these at once
			}
			err := today.Replay(&historypb.History{Events: h.GetEvents()[:n]})
			if err != nil && !errors.Is(err, replay.ErrNotRun) {
				t.Fatalf("as it stood after event %d: %v", n, err)
			}
		}
	})
}

func TestThereIsAHistoryOfEveryKindOfRun(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, sc := range scenes() {
		for kind := range sc.kinds {
			known[kind] = true
			if len(filesOf(t, release, kind)) == 0 {
				t.Errorf("release %s has no history of kind %q; run: make histories", release, kind)
			}
		}
	}
	for _, file := range all(t) {
		kind, _, _ := strings.Cut(filepath.Base(file), ".")
		if filepath.Dir(file) == release && !known[kind] {
			t.Errorf("%s is of a kind that nothing records", file)
		}
	}
}

// all returns every recorded history of every release.
func all(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no histories; run: make histories")
	}
	return files
}

// each runs a test on every recorded history, read anew.
func each(t *testing.T, test func(*testing.T, *historypb.History)) {
	t.Helper()
	for _, file := range all(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			test(t, read(t, file))
		})
	}
}

func read(t *testing.T, file string) *historypb.History {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := replay.Read(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return h
}
