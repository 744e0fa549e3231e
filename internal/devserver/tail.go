package devserver

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// tail passes on what the server prints and remembers the last lines, to say why it died. The reason of a
// panic stands before its stack, which is longer than what is kept, so that line is remembered too.
type tail struct {
	mu    sync.Mutex
	to    io.Writer // may be nil
	panic string
	lines []string
	part  []byte
}

const (
	tailLines = 12
	tailWidth = 500
)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(b) // a full log must not stop the server
	}
	for line := range bytes.Lines(b) {
		t.part = append(t.part, line[:min(len(line), tailWidth)]...)
		if bytes.HasSuffix(line, []byte("\n")) || len(t.part) > tailWidth {
			t.keep()
		}
	}
	return len(b), nil
}

func (t *tail) keep() {
	if line := strings.TrimSpace(string(t.part[:min(len(t.part), tailWidth)])); line != "" {
		if t.panic == "" && strings.HasPrefix(line, "panic: ") {
			t.panic = line
		}
		t.lines = append(t.lines, line)
		t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	}
	t.part = t.part[:0]
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep()
	lines := t.lines
	if t.panic != "" && !slices.Contains(lines, t.panic) {
		lines = append([]string{t.panic}, lines...)
	}
	return strings.Join(lines, "\n")
}
