package transcript

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

var scope = agent.NewScope("s", "run")

// newStore returns a store in memory and the bucket below it.
func newStore(t testing.TB) (*store.Store, *blob.Bucket) {
	t.Helper()
	b := memblob.OpenBucket(nil)
	s, err := store.OpenBucket(context.Background(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, b
}

// say is the i-th segment of a test's conversation.
func say(i int) []Entry {
	return []Entry{
		{Role: agent.RoleAssistant, Text: fmt.Sprintf("step %d", i), Calls: []Call{{ID: fmt.Sprintf("c%d", i), Name: "pay", Args: `{"n":1e0}`}}},
		{Role: agent.RoleTool, Call: fmt.Sprintf("c%d", i), Text: fmt.Sprintf("result %d", i)},
	}
}

// grow appends n segments and returns all heads, beginning with the empty one, and all entries.
func grow(t testing.TB, l *Log, n int) ([]agent.Head, []Entry) {
	t.Helper()
	heads, all := []agent.Head{{}}, []Entry(nil)
	for i := 1; i <= n; i++ {
		h, err := l.Append(context.Background(), scope, heads[i-1], say(i))
		if err != nil {
			t.Fatal(err)
		}
		heads, all = append(heads, h), append(all, say(i)...)
	}
	return heads, all
}

func read(t testing.TB, l *Log, h agent.Head) Conversation {
	t.Helper()
	c, err := l.Read(context.Background(), scope, h)
	if err != nil {
		t.Fatalf("read head %d: %v", h.Seq, err)
	}
	return c
}

func TestEveryHeadReadsAllItsEntriesInOrderInFewObjects(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	heads, all := grow(t, New(s, 1<<20), 200)
	for n, h := range heads {
		before := s.Stats()
		c := read(t, New(s, 0), h)
		if !sameEntries(all[:2*n], c.Entries) || c.Gaps != nil {
			t.Fatalf("head %d: gaps %v, entries (-want +got):\n%s", n, c.Gaps, cmp.Diff(all[:2*n], c.Entries, cmpEmpty))
		}
		ones := 0
		for i := n; i > 0; i &= i - 1 {
			ones++
		}
		after := s.Stats()
		if got := after.Reads - before.Reads; got != int64(ones) || after.Lists != before.Lists || after.Writes != before.Writes {
			t.Errorf("head %d: %d reads, want %d (its set bits), and neither lists nor writes", n, got, ones)
		}
	}
}

func TestAnAppendToACachedHeadIsOneWriteAndNoRead(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 1<<20)
	head := agent.Head{}
	for i := 1; i <= 70; i++ {
		before := s.Stats()
		var err error
		if head, err = l.Append(context.Background(), scope, head, say(i)); err != nil {
			t.Fatal(err)
		}
		read(t, l, head)
		after := s.Stats()
		if after.Writes-before.Writes != 1 || after.Reads != before.Reads || after.Lists != before.Lists {
			t.Fatalf("segment %d: %+v after %+v", i, after, before)
		}
	}
}

func TestBytesAndLongTextsSurviveExactly(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	long := strings.Repeat("länge", MaxInline)
	in := []Entry{
		{Role: agent.RoleUser, Text: "a\x00\xff\xfeb<&>\u2028" + "\xed\xa0\x80"},
		{Role: agent.RoleAssistant, Refusal: "no\xc3", Calls: []Call{
			{ID: "\xff", Name: "p\xff", Args: "{\"n\": 1E400, \"n\":\n12345678901234567890\xfe}"},
			{ID: "b", Name: "pay", Args: long + "\xff"},
		}},
		{Role: agent.RoleTool, Text: long},
		{Role: agent.RoleTool, Text: strings.Repeat("x", MaxInline)},
	}
	warm := New(s, 1<<30)
	h, err := warm.Append(context.Background(), scope, agent.Head{}, in)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Log{"warm": warm, "cold": New(s, 1<<30), "uncached": New(s, 0)} {
		c := read(t, l, h)
		texts, lost, err := l.Texts(context.Background(), scope, c.Entries)
		if err != nil || lost != nil {
			t.Fatalf("%s: lost %v, %v", name, lost, err)
		}
		for i, e := range in {
			got := c.Entries[i]
			if texts[i] != e.Text || got.Refusal != e.Refusal {
				t.Errorf("%s: entry %d differs", name, i)
			}
			for j, call := range e.Calls {
				if g := got.Calls[j]; g.Args != call.Args || g.ID != call.ID || g.Name != call.Name {
					t.Errorf("%s: call %d of entry %d differs: %.80q", name, j, i, g.Args)
				}
			}
		}
		if c.Entries[3].Body != nil || c.Entries[2].Body == nil {
			t.Errorf("%s: a text of MaxInline is inline, a longer one is a body", name)
		}
	}
	if in[2].Text != long || in[1].Calls[1].Body != nil {
		t.Error("the caller's entries were changed")
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 1<<20)
	good, _ := grow(t, l, 1)
	more, err := l.Append(context.Background(), scope, good[1], say(2))
	if err != nil {
		t.Fatal(err)
	}
	if c := read(t, l, agent.Head{Seq: 1, Hash: more.Hash}); len(c.Gaps) == 0 {
		t.Error("a head with the hash of a later one was read from the cache")
	}
	hash := good[1].Hash
	for _, h := range []agent.Head{{Seq: -1, Hash: hash}, {Seq: 1}, {Hash: hash}, {Seq: 1, Hash: "x"}, {Seq: 1 << 40, Hash: hash}} {
		if _, err := l.Read(context.Background(), scope, h); err == nil {
			t.Errorf("head %+v was read", h)
		}
	}
	if c := read(t, l, agent.Head{Seq: 2, Hash: hash}); len(c.Gaps) != 1 || !c.Gaps[0].Unverified {
		t.Errorf("a head with another's hash: %+v", c.Gaps)
	}
	if _, err := l.Read(context.Background(), scope, agent.Head{Seq: maxSeq, Hash: agent.DigestOf(nil)}); err == nil {
		t.Error("a head far beyond what the store holds was read")
	}
	if _, err := l.Read(context.Background(), agent.Scope{Session: "../x", Life: "00000000"}, good[1]); err == nil {
		t.Error("a scope that is not valid was read")
	}
	body := &agent.Body{Digest: hash}
	if _, err := l.Append(context.Background(), scope, good[1], []Entry{{Body: body, Text: strings.Repeat("x", MaxInline+1)}}); err == nil {
		t.Error("a long text beside a body was taken")
	}
	if h, err := l.Append(context.Background(), scope, good[1], nil); err != nil || h != good[1] {
		t.Errorf("no entries: %v, %v", h, err)
	}
}
