package world

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Widths are how long the window stood open that cannot be closed, in all worlds that are closed by now: from an
// attempt's last look at the clock to the call of the operating system that sends. What a failpoint took in between is
// not counted.
func (l *Lab) Widths() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.widths)
}

func (w *World) widthFile() string { return filepath.Join(w.Dir, "widths") }

// measure adds the widths of a world whose workers are gone.
func (w *World) measure() error {
	b, err := os.ReadFile(w.widthFile())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was sent
		}
		return err
	}
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	for line := range strings.Lines(string(b)) {
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", w.widthFile(), err)
		}
		w.lab.widths = append(w.lab.widths, time.Duration(n))
	}
	return nil
}
