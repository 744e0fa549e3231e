// Command edits is the heart of "holdfast replay" by itself: it replays the histories below the folders that are named
// and prints, in that command's JSON form, which of them its own workflow code does not replay. The tests beside it
// build it from edited copies of that code, one for each edit, which the whole command would take too long to link for.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/workflows"
)

// A report is what is read of the command's, which has more.
type report struct {
	Failures []failure `json:"failures"`
	Total    int       `json:"total"`
}

// A failure is a history that the code does not replay.
type failure struct {
	Source   string           `json:"source"`
	Findings []replay.Finding `json:"findings"`
	// Temporal says that Temporal's own replay refuses it too. The command does not print it.
	Temporal bool `json:"temporal"`
}

func main() {
	r, err := replayAll(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

func replayAll(folders []string) (r report, err error) {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
				return err
			}
			r.Total++
			return r.replay(path)
		})
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// replay enters what became of one history. The error says that there was nothing to replay.
func (r *report) replay(path string) error {
	h, err := read(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	today := replay.Replayer{Register: func(r worker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) }}
	err = today.Replay(h)
	var m *replay.Mismatch
	switch {
	case errors.As(err, &m):
		r.Failures = append(r.Failures, failure{path, replay.Explain(m), m.Temporal != nil})
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func read(path string) (*historypb.History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return replay.Read(f)
}
