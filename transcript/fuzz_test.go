package transcript

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/store"
)

// FuzzSegment puts any bytes in the place of a segment's object, as they are and with a good checksum: the
// conversation is read whole or with that segment as its gap, and nothing is made up.
func FuzzSegment(f *testing.F) {
	s, b := newStore(f)
	heads, all := grow(f, New(s, 1<<20), 6)
	object := objectOf(heads[4])
	good := get(f, b, object)
	f.Add(good)
	f.Add(good[:40])
	f.Add([]byte(`{"v":1,"seq":4,"digests":[]}` + "\n[]\n"))
	f.Add([]byte(`{"v":1,"seq":-9,"digests":["","","",""]}` + "\n\n\n"))
	f.Add([]byte(`{"v":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		put(t, b, object, raw)
		for range 2 {
			c, err := New(s, 0).Read(context.Background(), scope, heads[6])
			if err != nil {
				if seg := parseSegment(raw); seg.header.Version <= layoutVersion {
					t.Fatal(err)
				}
				return
			}
			want, gaps := wantWithout(6, 4)
			whole := cmp.Equal(all, c.Entries) && len(c.Gaps) == 0
			holed := cmp.Equal(want, c.Entries) && cmp.Equal(gaps, c.Gaps, ignoreWords)
			if !whole && !holed {
				t.Fatalf("made up: %+v", c)
			}
			name := link{seq: 4, hash: heads[4].Hash}.name()
			if err := s.Space(scope).Mend(context.Background(), store.KindSegments, name, raw); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzEntries: whatever decodes is the same after encoding and decoding again.
func FuzzEntries(f *testing.F) {
	line, err := encodeEntries(say(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`[{"role":"user","text":{"base64":"/w=="}}]`))
	f.Add([]byte(`[{"text":"\ud800","calls":[{"args":"{"}]},null]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		entries, err := decodeEntries(line)
		if err != nil {
			return
		}
		again, err := encodeEntries(entries)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEntries(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		for _, e := range entries { // the arguments of a body are not kept beside it
			for i := range e.Calls {
				if e.Calls[i].Body != nil {
					e.Calls[i].Args = ""
				}
			}
		}
		if diff := cmp.Diff(entries, got, cmpEmpty); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzText: any bytes come back.
func FuzzText(f *testing.F) {
	f.Add([]byte("\xff{\"base64\""))
	f.Add([]byte("\u2028<\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := text(b).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got text
		if err := got.UnmarshalJSON(raw); err != nil || string(got) != string(b) {
			t.Fatalf("%q -> %s -> %q, %v", b, raw, got, err)
		}
	})
}
