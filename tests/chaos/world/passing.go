package world

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Passing is one time that a worker came to a place of package failpoint.
type Passing struct {
	Name string
	N    int       // counted by the worker, from 1
	At   time.Time // by the right clock, also when the workers' is off
	PID  int
}

// Acted returns the passings at which a rule did something, in the order in which they were written down.
func (w *World) Acted() ([]Passing, error) { return w.passings(w.actedFile()) }

// Trace returns all passings.
func (w *World) Trace() ([]Passing, error) { return w.passings(w.traceFile()) }

func (w *World) actedFile() string { return filepath.Join(w.Dir, "acted") }

func (w *World) traceFile() string { return filepath.Join(w.Dir, "trace") }

func (w *World) passings(path string) (all []Passing, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var p Passing
		var at int64
		if _, err := fmt.Sscanf(line, "%s %d %d %d\n", &p.Name, &p.N, &at, &p.PID); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		p.At = time.Unix(0, at).Add(-w.cfg.Clock)
		all = append(all, p)
	}
	return all, nil
}
