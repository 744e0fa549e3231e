package tool

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesAreSkippedWhenTooLongAndTheirIDIsFound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	in := "\n\r\n{\"a\":1}\r\n" +
		`{"result":{"id":1,"t":"\"id\":2,` + long + `"},"id":37}` + "\n" +
		`{"id" : "s\"x" ,"result":"` + long + `"}` + "\n" +
		`{"nid":3,"x":"id","result":[{"id":4}],"y":"` + long + `"}` + "\n" +
		long + "\n" + `{"b":2}`
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in))} {
		l := newLines(r, 100<<10)
		for i, want := range []struct {
			line string
			err  error
		}{
			{`{"a":1}`, nil}, {"37", errLineTooLong}, {`"s\"x"`, errLineTooLong}, {"", errLineTooLong}, {"", errLineTooLong}, {`{"b":2}`, nil}, {"", io.EOF},
		} {
			line, err := l.next()
			if string(line) != want.line || !errors.Is(err, want.err) {
				t.Errorf("%s %d: got %.40q, %v; want %q, %v", name, i, line, err, want.line, want.err)
			}
		}
	}
}

func TestTailKeepsTheLastWholeLines(t *testing.T) {
	t.Parallel()
	var l tail
	for range 1000 {
		_, _ = l.Write([]byte("a line of no interest\n"))
	}
	_, _ = l.Write([]byte("\x1b[31mthe reason\x1b[0m \xff\r\nand more\n"))
	s := l.String()
	if len(s) > tailSize+20 || !strings.HasPrefix(s, "a line of no interest\n") || !strings.HasSuffix(s, "\uFFFD[31mthe reason\uFFFD[0m \uFFFD\nand more") {
		t.Errorf("%d bytes, %q ... %q", len(s), s[:40], s[max(0, len(s)-60):])
	}
}

// The finder agrees with a JSON parser about every object.
func FuzzMCPMessageID(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":12,"result":{"id":5}}`))
	f.Add([]byte(`{"result":"\\\"id\":1","id":"a\"b"}`))
	f.Add([]byte(`{"a":[{"id":1}],"id":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for i := range b {
			var halves idFinder
			halves.feed(b[:i])
			halves.feed(b[i:])
			var whole idFinder
			whole.feed(b)
			if string(halves.id) != string(whole.id) {
				t.Fatalf("%q and %q", halves.id, whole.id)
			}
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(b, &members) != nil || members == nil {
			return
		}
		want, ok := members["id"]
		if !ok || len(want) > maxID || strings.Count(string(b), `"id"`) > 1 || want[0] == '{' || want[0] == '[' || strings.Contains(string(b), `\`) {
			return
		}
		var got idFinder
		got.feed(b)
		if string(got.id) != string(want) {
			t.Errorf("%q: got %q, want %q", b, got.id, want)
		}
	})
}

func FuzzMCPEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"))
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\ndata:\"id\":1,\"error\":{}}\r\n\r\n: c\nevent: x\ndata: y\n\n"))
	f.Add([]byte("retry: 1\n\ndata"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, fl, done := newFlight(t.Context())
		defer done()
		out, err := io.ReadAll(newEventFilter(io.NopCloser(strings.NewReader(string(b))), 1<<10, fl))
		if err != nil && ctx.Err() == nil {
			t.Errorf("%v without the call's end", err)
		}
		for line := range strings.SplitSeq(string(out), "\n") {
			if line != "" && !strings.Contains(line, ":") {
				t.Errorf("a line that the SDK does not take: %q", line)
			}
		}
	})
}
