package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds one build with its replay. Nothing waits for it when all goes well.
const patience = 10 * time.Minute

// A way is a program that replays.
type way struct{ name, pkg string }

func (w way) String() string { return w.name }

var (
	heart   = way{"the heart of holdfast replay", "./tests/edits"}
	command = way{"holdfast replay", "."}
)

// A workshop builds edited programs and runs them, two at a time: each build takes all of a processor.
type workshop struct{ places chan struct{} }

// newWorkshop wants the code as it is to replay everything. That also fills the build cache once.
func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{places: make(chan struct{}, 2)}
	r := w.replay(t, edit{Name: "none"}, heart)
	if r.Total == 0 || len(r.Failures) > 0 {
		t.Fatalf("the code as it is does not replay %d of %d histories; mend that first: go test ./%s\n%s", len(r.Failures), r.Total, histories, r)
	}
	return w
}

// replay builds a program from edited code and replays the recorded histories with it.
func (w workshop) replay(t *testing.T, e edit, how way) (r report) {
	t.Helper()
	w.places <- struct{}{}
	defer func() { <-w.places }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{histories}
	if how == command {
		args = []string{"replay", histories, "-o", "json"}
	}
	cmd := exec.CommandContext(ctx, build(ctx, t, e, how), args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	failed := how == command && errors.As(err, &exit) && exit.ExitCode() == 1
	if err != nil && !failed {
		t.Fatalf("%s: %v\n%s%s", how, err, out, stderr.String())
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%s printed no report: %v\n%s%s", how, err, out, stderr.String())
	}
	if how == command && failed != (len(r.Failures) > 0) {
		t.Errorf("%s does not replay %d histories and ended with: %v", how, len(r.Failures), err)
	}
	return r
}

// build compiles with edited files in the place of the real ones, which stay as they are.
func build(ctx context.Context, t *testing.T, e edit, how way) (binary string) {
	t.Helper()
	files, err := e.apply()
	if err != nil {
		t.Fatalf("edit %q: %v", e.Name, err)
	}
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		original, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		overlay.Replace[original] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		write(t, overlay.Replace[original], text)
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	listed := filepath.Join(dir, "overlay.json")
	write(t, listed, list)
	binary = filepath.Join(dir, "replay.bin")
	// Without what a debugger needs, a program is linked in half the time.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", listed, "-o", binary, how.pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("edit %q does not build: %v\n%s", e.Name, err, out)
	}
	return binary
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// open opens the files that only the go command and the programs would open: the test cache sees what this process
// opens.
func open(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".json" {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			return f.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
