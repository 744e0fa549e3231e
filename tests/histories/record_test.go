package histories

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"github.com/holdfast-run/holdfast/internal/devserver"
)

var record = flag.Bool("record", false, "record the histories that this release lacks, on a real server")

// TestRecord records; make histories runs it. It leaves every file alone that is there.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("make histories records")
	}
	if err := os.MkdirAll(release, 0o755); err != nil {
		t.Fatal(err)
	}
	var missing []scene
	for _, sc := range scenes() {
		for _, kind := range slices.Sorted(maps.Keys(sc.kinds)) {
			files := filesOf(t, release, kind)
			if len(files) > 0 {
				t.Logf("kept: %v", files)
				delete(sc.kinds, kind)
			}
		}
		if len(sc.kinds) > 0 {
			missing = append(missing, sc)
		}
	}
	if len(missing) == 0 {
		t.Logf("release %s has a history of every kind; nothing to record", release)
		return
	}
	binary, usual, short := realParts(t)
	for _, sc := range missing {
		addr := usual
		if sc.short {
			addr = short
		}
		t.Run(sc.session, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, sc, binary, addr)
			s.perform()
			for kind, turn := range sc.kinds {
				save(t, kind, s.runs(s.id(turn)))
			}
		})
	}
}

// realParts builds the worker with failpoints and starts the Temporal servers.
func realParts(t *testing.T) (binary, usual, short string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", "-tags", "failpoint", "-o", binary, "github.com/holdfast-run/holdfast")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the worker does not build: %v\n%s", err, out)
	}
	return binary, serve(t), serve(t, "limit.historyCount.suggestContinueAsNew=40")
}

// serve starts a Temporal server with further settings.
func serve(t *testing.T, dynamic ...string) (addr string) {
	t.Helper()
	server, err := devserver.Start(t.Context(), devserver.Options{Headless: true, Dynamic: dynamic})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server.Address()
}

// save writes the runs of a kind into new files.
func save(t *testing.T, kind string, runs []*historypb.History) {
	t.Helper()
	for i, h := range runs {
		scrub(h)
		name := kind + ".json"
		if len(runs) > 1 {
			name = fmt.Sprintf("%s.%d.json", kind, i+1)
		}
		f, err := os.OpenFile(filepath.Join(release, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			t.Fatalf("%s appeared meanwhile; it is left alone", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(format(t, h)); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("recorded: %s, %d events", f.Name(), len(h.GetEvents()))
	}
}

// format returns what "temporal workflow show -o json" prints, with white space that is always the same: the
// encoder's own changes from build to build, on purpose.
func format(t *testing.T, h *historypb.History) []byte {
	t.Helper()
	b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", " "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// filesOf returns the files of a kind in a release's folder, in the order of its runs.
func filesOf(t *testing.T, folder, kind string) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{kind + ".json", kind + ".[0-9]*.json"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}
