package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// events is the body of a streamed answer on its way to go-openai, one clean "data:" line at a time.
//
// go-openai's reader gives up after 300 lines without data, never bounds a line, loses a last line without
// a line break, and collects comments into the JSON of an error that it then cannot decode. It takes a
// plain JSON answer or a page of HTML for an empty stream that ended well. So comments and the like end
// here, an error or an answer that is no stream is kept in the exchange, and go-openai sees the stream end.
type events struct {
	x     *exchange
	src   io.Closer
	r     *bufio.Reader
	begun bool
	event string // name of the event that the next data belongs to
	out   []byte
	err   error
}

func newEvents(x *exchange, src io.ReadCloser) *events {
	return &events{x: x, src: src, r: bufio.NewReaderSize(meter{x, src}, 16<<10)}
}

// Read returns the next clean bytes.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.next()
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// Close leaves the connection to the next request if the server ends the stream right after [DONE].
func (e *events) Close() error {
	if e.x.done {
		t := time.AfterFunc(50*time.Millisecond, func() { e.x.cancel(errOver) })
		_, _ = io.CopyN(io.Discard, e.r, 4<<10)
		t.Stop()
	}
	return e.src.Close()
}

func (e *events) next() {
	if !e.begun {
		e.begun = true
		if e.notAStream() {
			return
		}
	}
	line, err := e.line()
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err // what came of the line is half of it
		return
	}
	e.x.torn = err != nil && len(line) > 0
	e.take(bytes.TrimSpace(line))
	if e.err == nil {
		e.err = err
	}
}

// notAStream keeps a body that begins like JSON or HTML, whatever its content type says.
func (e *events) notAStream() bool {
	if bom, _ := e.r.Peek(3); string(bom) == "\xef\xbb\xbf" {
		_, _ = e.r.Discard(3)
	}
	for {
		first, err := e.r.Peek(1)
		if err != nil {
			e.err = err
			return true
		}
		switch first[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = e.r.Discard(1)
		case '{', '[', '<':
			e.x.raw, e.err = io.ReadAll(e.r)
			if e.err == nil {
				e.x.whole, e.err = true, io.EOF
			}
			return true
		default:
			return false
		}
	}
}

// line returns the next line; with io.EOF it is the last.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > e.x.cfg.MaxLine {
			e.x.failure = badAnswer("a line of the stream is longer than %d bytes", e.x.cfg.MaxLine)
			return nil, errTooBig
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take hands the data in a line on; see the HTML standard's section on server-sent events.
func (e *events) take(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch string(name) {
	case "":
		if len(line) == 0 {
			e.event = ""
		}
	case "data":
		e.data(value)
	case "event":
		e.event = string(value)
	case "id", "retry":
	default:
		if isError(line) {
			e.fail(line)
		} else if e.x.junk == nil {
			e.x.junk = e.x.cfg.hide(line)
		}
	}
}

func (e *events) data(value []byte) {
	switch {
	case len(value) == 0:
	case string(value) == "[DONE]":
		e.x.done, e.err = true, io.EOF
	case e.event == "error" || isError(value):
		e.fail(value)
	case bytes.HasPrefix(value, []byte(`{"error":`)):
		// "error":null, which go-openai's reader would take for one by its first letters.
		e.out = concat("data: { ", value[1:], "\n")
	default:
		e.out = concat("data: ", value, "\n")
	}
}

// fail ends the stream at once: some servers leave it open after an error.
func (e *events) fail(object []byte) {
	e.x.trouble, e.err = e.x.cfg.hide(object), io.EOF
}

func concat(before string, b []byte, after string) []byte {
	out := make([]byte, 0, len(before)+len(b)+len(after))
	return append(append(append(out, before...), b...), after...)
}

// isError says whether b is an object with an error in it.
func isError(b []byte) bool {
	if !bytes.Contains(b, []byte(`"error"`)) {
		return false
	}
	var v struct{ Error json.RawMessage }
	return json.Unmarshal(b, &v) == nil && isSet(v.Error)
}

// isSet says whether a member was there and was not null, false or empty.
func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}
