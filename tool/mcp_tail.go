package tool

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode"
)

// tailSize is how much of a server's standard error is kept.
const tailSize = 4 << 10

// A tail keeps the last of what a server wrote to its standard error. The rest is dropped, so that a
// server that talks all day costs nothing.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.cut = true
	}
	return len(b), nil
}

// fill reads r to its end and closes it.
func (t *tail) fill(r io.ReadCloser) {
	defer r.Close()
	_, _ = io.Copy(t, r)
}

// String returns whole lines only: half of a secret would not be recognised as one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if t.cut {
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		} else {
			b = nil
		}
	}
	return strings.TrimSpace(printable(string(b)))
}

// printable replaces what a terminal or a log would act on. Line breaks and tabs stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		if r == '\r' {
			return -1
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
