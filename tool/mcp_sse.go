package tool

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// An eventFilter passes on the event stream that answers one request, event by event, each of at most max
// bytes and holding a message that can be read.
type eventFilter struct {
	body   io.ReadCloser
	r      *bufio.Reader
	max    int
	flight *flight

	ready bytes.Buffer // what Read hands out
	err   error
}

func newEventFilter(body io.ReadCloser, limit int, f *flight) *eventFilter {
	return &eventFilter{body: body, r: bufio.NewReaderSize(body, 64<<10), max: limit, flight: f}
}

func (e *eventFilter) Close() error { return e.body.Close() }

func (e *eventFilter) Read(p []byte) (int, error) {
	for e.ready.Len() == 0 && e.err == nil {
		e.err = e.event()
	}
	if e.ready.Len() > 0 {
		return e.ready.Read(p)
	}
	return 0, e.err
}

// event reads one event and puts what the SDK is to see of it into ready.
func (e *eventFilter) event() error {
	var ev event
	for {
		line, err := e.line(ev.size())
		if errors.Is(err, errAnswerTooLarge) {
			e.flight.fail(err)
			return err
		}
		if len(line) > 0 {
			ev.field(line)
		}
		if len(line) == 0 || err != nil {
			if err := e.pass(ev); err != nil {
				e.flight.fail(err)
				return err
			}
			return err
		}
	}
}

// An event is what has been read of one.
type event struct {
	data   []byte // the message
	others []byte // the other fields, as they are
	named  bool   // it is no message
}

func (ev *event) size() int { return len(ev.data) + len(ev.others) }

func (ev *event) field(line []byte) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case !ok, len(name) == 0: // a comment, or a line that the SDK would end the connection over
		return
	case string(name) == "data":
		if ev.data != nil {
			ev.data = append(ev.data, '\n')
		}
		ev.data = append(ev.data, value...)
		return
	case string(name) == "event":
		ev.named = len(value) > 0 && string(value) != "message"
	}
	ev.others = append(append(ev.others, line...), '\n')
}

func (e *eventFilter) pass(ev event) error {
	if len(ev.data) > 0 && !ev.named {
		msg, err := e.flight.screen(ev.data)
		if err != nil {
			return err
		}
		if msg != nil {
			ev.others = append(append(append(ev.others, "data: "...), msg...), '\n')
		}
	}
	if len(ev.others) > 0 {
		e.ready.Write(ev.others)
		e.ready.WriteByte('\n')
	}
	return nil
}

// line reads a line of what may still come of an event of which have bytes are here.
func (e *eventFilter) line(have int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if have+len(line)+len(part) > e.max {
			return nil, errAnswerTooLarge
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}
