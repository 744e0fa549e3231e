package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"google.golang.org/protobuf/proto"
)

// A tape is a long text that nobody holds: head, so many events, tail.
type tape struct {
	head, tail string
	events     int
	event      func(i int) string
	piece      []byte // of what was made last
	next, read int
	atEnd      func()
}

func (t *tape) Read(p []byte) (int, error) {
	for len(t.piece) == 0 {
		switch {
		case t.next == 0:
			t.piece = []byte(t.head)
		case t.next <= t.events:
			t.piece = []byte(t.event(t.next))
		case t.next == t.events+1:
			if t.atEnd != nil {
				t.atEnd()
			}
			t.piece = []byte(t.tail)
		default:
			return 0, io.EOF
		}
		t.next++
	}
	n := copy(p, t.piece)
	t.piece = t.piece[n:]
	t.read += n
	return n, nil
}

// filler is an event whose text is long and of which little is kept.
func filler(i int) string {
	if i == 1 {
		return started
	}
	return fmt.Sprintf(`,{"eventId":"%d","eventType":"EVENT_TYPE_WORKFLOW_TASK_SCHEDULED","workflowTaskScheduledEventAttributes":{},"ofANewerServer":%q}`,
		i, strings.Repeat("x", 4<<10))
}

// It runs alone: what others allocate meanwhile would count.
func TestReadHoldsTheTextOfOneEvent(t *testing.T) { //nolint:paralleltest // see above
	const events = 2000 // 8 MB of text
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var most int64
	text := &tape{head: `{"events":[`, tail: `]}`, events: events, event: filler, atEnd: func() { most = live() }}
	before := live()
	h, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(h.GetEvents()); n != events {
		t.Fatalf("%d events, want %d", n, events)
	}
	if grown := most - before; grown > int64(text.read)/4 {
		t.Errorf("at the end of %d bytes of text, %d more are in use: it was not read event by event", text.read, grown)
	}
	runtime.KeepAlive(h)
}

func TestABadEventIsToldWithoutReadingOn(t *testing.T) {
	t.Parallel()
	text := &tape{head: `{"events":[`, tail: `]}`, events: 8000, event: func(i int) string {
		if i == 2 {
			return strings.Replace(filler(i), `"2"`, `"7"`, 1)
		}
		return filler(i)
	}}
	_, err := Read(text)
	if err == nil || !strings.Contains(err.Error(), "its place has event 7") {
		t.Errorf("error %v", err)
	}
	if text.read > 1<<20 {
		t.Errorf("%d bytes were read to find the second event bad", text.read)
	}
}

func TestAnEndlessTextIsGivenUp(t *testing.T) {
	t.Parallel()
	_, err := read(io.MultiReader(strings.NewReader(`{"events":[`), endless(' ')), 1<<20)
	if err == nil || !strings.Contains(err.Error(), "no run leaves one like that") {
		t.Errorf("error %v", err)
	}
	whole := `{"events":[` + started + `]}`
	for limit, fits := range map[int64]bool{int64(len(whole)): true, int64(len(whole)) - 1: false} {
		if _, err := read(strings.NewReader(whole), limit); (err == nil) != fits {
			t.Errorf("%d bytes with a limit of %d: %v", len(whole), limit, err)
		}
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestASourceThatFailsIsNotCalledBadJSON(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	_, err := Read(io.MultiReader(strings.NewReader(`{"events":[`+started), failing{broken}))
	if !errors.Is(err, broken) || strings.Contains(err.Error(), "JSON") {
		t.Errorf("error %v, want one that says what the disk said", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Other members, in any place, are somebody else's.
func TestReadTakesAHistoryAmongOtherMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"events":[` + started + `],"after":{"events":[1,{"a":2}]}}`, ""},
		{`{"before":[{"events":0}],"events":[` + started + `]}  ` + "\n", ""},
		{`{"events":[` + started + `],"events":[` + started + `]}`, "events twice"},
		{`{"events":[` + started + `]} x`, "invalid character"},
		{`{"events":[` + started + `]}{}`, "something follows"},
		{`{"events":[` + started + `]`, "ends early"},
		{`{"events":{}}`, "where [ belongs"},
		{`{"events":[null]}`, "not the JSON of a history"},
	} {
		_, err := Read(strings.NewReader(c.text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

func TestReadReadsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	for _, file := range recordings(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole := &historypb.History{}
		if err := (temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, whole); err != nil {
			t.Fatal(err)
		}
		h, err := Read(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !proto.Equal(h, whole) {
			t.Errorf("%s: read event by event it is another history", file)
		}
	}
}

func recordings(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../tests/histories/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded history (%v); run: make histories", err)
	}
	return files
}

// BenchmarkRead says what reading costs for each byte of text: B/op over the text's length is how often it is copied.
func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		text := &tape{head: `{"events":[`, tail: `]}`, events: 2000, event: filler}
		if _, err := Read(text); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(text.read))
	}
}
