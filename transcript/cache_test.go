package transcript

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestForksOfACachedHeadDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 1<<20)
	heads, all := grow(t, l, 9)
	old := read(t, l, heads[9])
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			// Two each of four forks, so that equal appends meet too.
			mine := []Entry{{Role: agent.RoleUser, Text: fmt.Sprintf("fork %d", i/2)}}
			h := heads[9]
			for range 20 {
				var err error
				if h, err = l.Append(context.Background(), scope, h, mine); err != nil {
					t.Error(err)
					return
				}
			}
			want := all[:len(all):len(all)]
			for range 20 {
				want = append(want, mine...)
			}
			for name, got := range map[string]Conversation{"cached": read(t, l, h), "cold": read(t, New(s, 0), h)} {
				if !cmp.Equal(want, got.Entries) {
					t.Errorf("fork %d, %s: other entries", i/2, name)
				}
			}
		})
	}
	wg.Wait()
	before := s.Stats()
	h, err := l.Append(context.Background(), scope, heads[5], []Entry{{Text: "another fork"}})
	if err != nil {
		t.Fatal(err)
	}
	read(t, l, h)
	if s.Stats().Reads != before.Reads {
		t.Error("a fork of a cached head was not cached")
	}
	if !cmp.Equal(all, old.Entries) || !cmp.Equal(all, read(t, l, heads[9]).Entries) {
		t.Error("a conversation changed under its reader")
	}
}

func TestExtendingDoesNotCopyTheConversation(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 1<<30)
	heads, _ := grow(t, l, 300)
	before, after := read(t, l, heads[299]), read(t, l, heads[300])
	if &before.Entries[0] != &after.Entries[0] {
		t.Error("the entries were copied from one head to the next")
	}
	if got := append(before.Entries, Entry{Text: "x"}); after.Entries[len(got)-1].Text == "x" {
		t.Error("a caller's append reached a longer conversation")
	}
}

func TestTheCacheStaysWithinItsBytesAndForgetsTheOldest(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	const most = 100_000
	l := New(s, most)
	var heads []agent.Head
	for i := range 20 {
		h, err := l.Append(context.Background(), scope, agent.Head{}, []Entry{
			{Text: strings.Repeat("i", 4000) + fmt.Sprint(i)},
			{Text: strings.Repeat("b", 8000) + fmt.Sprint(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, h)
		if n := l.Stats().CacheBytes; n > most || n <= 0 {
			t.Fatalf("%d bytes held", n)
		}
	}
	reads := func(h agent.Head) int64 {
		before := s.Stats().Reads
		c := read(t, l, h)
		if _, _, err := l.Texts(context.Background(), scope, c.Entries); err != nil {
			t.Fatal(err)
		}
		return s.Stats().Reads - before
	}
	if n := reads(heads[19]); n != 0 {
		t.Errorf("the newest cost %d reads", n)
	}
	if n := reads(heads[0]); n != 2 {
		t.Errorf("the oldest cost %d reads, not its segment and its body", n)
	}
	if n := reads(heads[0]); n != 0 {
		t.Errorf("what was read was not kept: %d reads", n)
	}
}

func TestWhatCanNeverFitDrivesNothingOut(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 30_000)
	small, err := l.Append(context.Background(), scope, agent.Head{}, []Entry{{Text: "small"}})
	if err != nil {
		t.Fatal(err)
	}
	var h agent.Head
	for i := range 20 {
		large := []Entry{{Text: strings.Repeat("x", 4000)}, {Text: strings.Repeat("y", 100_000)}}
		if h, err = l.Append(context.Background(), scope, h, large); err != nil {
			t.Fatal(err)
		}
		before := s.Stats().Reads
		if read(t, l, small); s.Stats().Reads != before {
			t.Fatalf("step %d drove the small conversation out", i)
		}
	}
	if c := read(t, l, h); len(c.Entries) != 40 || l.Stats().CacheBytes > 30_000 {
		t.Errorf("%d entries, %d bytes held", len(c.Entries), l.Stats().CacheBytes)
	}
}

func TestTheCacheKeepsSessionsApart(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 1<<20)
	long := strings.Repeat("x", MaxInline+1)
	h, err := l.Append(context.Background(), scope, agent.Head{}, []Entry{{Text: long}})
	if err != nil {
		t.Fatal(err)
	}
	other := agent.NewScope("s", "another run")
	c, err := l.Read(context.Background(), other, h)
	if err != nil || len(c.Entries) != 0 || len(c.Gaps) != 1 {
		t.Errorf("another life's head gave %+v, %v", c, err)
	}
	mine := read(t, l, h)
	if texts, lost, err := l.Texts(context.Background(), other, mine.Entries); err != nil || !slices.Equal(lost, []int{0}) {
		t.Errorf("another life's text: %d bytes, lost %v, %v", len(texts[0]), lost, err)
	}
}

func TestConcurrentReadersOfAColdHeadAgree(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	heads, all := grow(t, New(s, 0), 37)
	l := New(s, 1<<20)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			h := heads[37-i%4]
			if c := read(t, l, h); !cmp.Equal(all[:2*h.Seq], c.Entries) {
				t.Errorf("head %d: other entries", h.Seq)
			}
			if _, err := l.Append(context.Background(), scope, h, say(int(h.Seq)+1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func BenchmarkStep(b *testing.B) {
	s, _ := newStore(b)
	l := New(s, 1<<30)
	var h agent.Head
	for i := range b.N {
		var err error
		if h, err = l.Append(context.Background(), scope, h, say(i)); err != nil {
			b.Fatal(err)
		}
		read(b, l, h)
	}
}

func TestATextThatWasJustStoredIsNotReadBack(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	l := New(s, 1<<20)
	text := strings.Repeat("a result ", 1000)
	b, err := l.PutText(t.Context(), scope, text, "")
	if err != nil {
		t.Fatal(err)
	}
	before := s.Stats().Reads
	entry := []Entry{{Body: &b}}
	got, _, err := l.Texts(t.Context(), scope, entry)
	if err != nil || got[0] != text || s.Stats().Reads != before {
		t.Errorf("%q, %v, %d reads", got, err, s.Stats().Reads-before)
	}
	if got, _, err = New(s, 0).Texts(t.Context(), scope, entry); err != nil || got[0] != text {
		t.Errorf("another worker: %q, %v", got, err)
	}
}
