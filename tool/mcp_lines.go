package tool

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errLineTooLong comes with the id that the message has, empty if it has none.
var errLineTooLong = errors.New("the message is larger than the limit")

// lines reads messages, one a line, of at most max bytes. A longer one is skipped without being kept, and
// only its id is found out, so that one huge answer costs its own call and nobody else's.
type lines struct {
	r   *bufio.Reader
	max int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// next returns the next line that is not blank, without its end. With errLineTooLong the line is the id.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			return line, err
		}
	}
}

func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > l.max {
			return l.skip(line, part, err)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && len(line) > 0:
			return line, nil // the last line, not ended
		default:
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

func (l *lines) skip(line, part []byte, err error) ([]byte, error) {
	var ids idFinder
	ids.feed(line)
	ids.feed(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.r.ReadSlice('\n')
		ids.feed(part)
	}
	return ids.id, errLineTooLong
}

// An idFinder finds the value of the member "id" of a JSON object that is fed to it in pieces. It knows
// just enough JSON not to be fooled by an "id" further inside or in a text.
type idFinder struct {
	depth         int
	inText, slash bool
	inID, done    bool
	text          []byte // the latest text at depth 1, as far as it matters
	id            []byte
}

const maxID = 32

func (f *idFinder) feed(b []byte) {
	for _, c := range b {
		switch {
		case f.done:
			return
		case f.inText:
			f.inside(c)
		case c == '"':
			f.inText = true
			f.text = f.text[:0]
			f.keep(c)
		case c == '{', c == '[':
			f.depth++
		case c == '}', c == ']':
			f.depth--
			f.done = f.inID || f.depth <= 0
		case c == ':' && f.depth == 1:
			f.inID = string(f.text) == "id"
		case c == ',' && f.depth == 1:
			f.done = f.inID
		case c > ' ':
			f.keep(c)
		}
	}
}

func (f *idFinder) inside(c byte) {
	switch {
	case f.slash:
		f.slash = false
	case c == '\\':
		f.slash = true
	case c == '"':
		f.inText = false
		f.keep(c)
		return
	}
	if f.depth == 1 && len(f.text) < maxID {
		f.text = append(f.text, c)
	}
	f.keep(c)
}

func (f *idFinder) keep(c byte) {
	if f.inID && f.depth == 1 && len(f.id) < maxID {
		f.id = append(f.id, c)
	}
}
