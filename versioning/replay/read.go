package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
)

// MaxHistory is the largest history in bytes of JSON that [Read] takes. Temporal itself ends a run at 50 MiB,
// which base64 and field names make longer.
const MaxHistory = 256 << 20

// errTooLong ends a reading at [MaxHistory].
var errTooLong = fmt.Errorf("history is longer than %d bytes; no run leaves one like that", MaxHistory)

// Read decodes a history from JSON, as "temporal workflow show -o json" prints it, and checks that it can be
// one. Fields that this build does not know are ignored. It decodes event by event: beside the history, it holds the
// text of one event.
func Read(r io.Reader) (*historypb.History, error) { return read(r, MaxHistory) }

func read(r io.Reader, limit int64) (*historypb.History, error) {
	d := json.NewDecoder(&bounded{r: r, left: limit})
	h := &historypb.History{}
	if err := readHistory(d, h); err != nil {
		return nil, err
	}
	if err := check(h); err != nil {
		return nil, err
	}
	return h, nil
}

// notJSON says why text is no history. What ends early is told apart from what was never one.
func notJSON(err error) error {
	switch {
	case errors.Is(err, errTooLong):
		return err
	case errors.As(err, new(*sourceError)):
		return fmt.Errorf("history cannot be read: %w", err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it ends early")
	}
	return fmt.Errorf("not the JSON of a history: %w; record it with: temporal workflow show -o json", err)
}

// readHistory reads one object whose member "events" is the history, and nothing behind it.
func readHistory(d *json.Decoder, h *historypb.History) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		if name != "events" {
			if err := d.Decode(new(skipped)); err != nil {
				return notJSON(err)
			}
			continue
		}
		if h.Events != nil {
			return notJSON(errors.New("it has its events twice"))
		}
		if err := readEvents(d, h); err != nil {
			return err
		}
	}
	if err := expect(d, '}'); err != nil {
		return err
	}
	switch _, err := d.Token(); {
	case err == nil:
		return notJSON(errors.New("something follows it"))
	case !errors.Is(err, io.EOF):
		return notJSON(err)
	}
	return nil
}

func readEvents(d *json.Decoder, h *historypb.History) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	h.Events = []*historypb.HistoryEvent{}
	opts := temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}
	var text json.RawMessage // its memory is used again for each event
	for d.More() {
		if err := d.Decode(&text); err != nil {
			return notJSON(err)
		}
		e := &historypb.HistoryEvent{}
		if err := opts.Unmarshal(text, e); err != nil {
			return notJSON(err)
		}
		if err := checkEvent(e, int64(len(h.GetEvents()))+1); err != nil {
			return err
		}
		h.Events = append(h.Events, e)
	}
	return expect(d, ']')
}

// expect takes one delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	switch {
	case err != nil:
		return notJSON(err)
	case got != want:
		return notJSON(fmt.Errorf("%.20v where %v belongs", got, want))
	}
	return nil
}

// skipped is a value that nobody looks at.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// bounded reads so many bytes and fails when there are more.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	// One more than there may be, to tell the end from a beginning.
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLong
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &sourceError{err}
	}
	return n, err
}

// A sourceError is one of where the text comes from, and not of the text.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }
