package transcript

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

func objectOf(h agent.Head) string {
	return scope.String() + "/segments/" + link{seq: h.Seq, hash: h.Hash}.name()
}

func get(t testing.TB, b *blob.Bucket, name string) []byte {
	t.Helper()
	raw, err := b.ReadAll(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func put(t testing.TB, b *blob.Bucket, name string, raw []byte) {
	t.Helper()
	if err := b.WriteAll(context.Background(), name, raw, nil); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, b *blob.Bucket, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := b.Delete(context.Background(), n); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t testing.TB, s *store.Store, h agent.Head) Report {
	t.Helper()
	r, err := New(s, 1<<20).Verify(context.Background(), scope, h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// repeated says whether an object other than its own holds the entries of segment i in a chain of n, when
// it is needed by a reader of head n.
func repeated(i, n int) bool {
	for j := i + i&-i; j <= n; j += j & -j {
		return true
	}
	return false
}

// wantWithout is the conversation of n segments without the lost ones.
func wantWithout(n int, lost ...int) (entries []Entry, gaps []Gap) {
	for i := 1; i <= n; i++ {
		if slices.Contains(lost, i) {
			gaps = append(gaps, Gap{From: int64(i), To: int64(i), At: len(entries)})
			continue
		}
		entries = append(entries, say(i)...)
	}
	return entries, gaps
}

// ignoreWords compares gaps without what they say.
var ignoreWords = cmp.Transformer("gap", func(g Gap) [3]any { return [3]any{[2]int64{g.From, g.To}, g.At, g.Unverified} })

func checkRead(t *testing.T, s *store.Store, h agent.Head, lost ...int) {
	t.Helper()
	c := read(t, New(s, 1<<20), h)
	entries, gaps := wantWithout(int(h.Seq), lost...)
	if !sameEntries(entries, c.Entries) {
		t.Errorf("entries of head %d (-want +got):\n%s", h.Seq, cmp.Diff(entries, c.Entries, cmpEmpty))
	}
	if diff := cmp.Diff(gaps, c.Gaps, cmpEmpty, ignoreWords); diff != "" {
		t.Errorf("gaps of head %d (-want +got):\n%s", h.Seq, diff)
	}
	for _, g := range c.Gaps {
		if g.Reason == "" {
			t.Error("a gap without a reason")
		}
	}
}

// damages are ways in which an object that is not the last one can lose its own entries and all else.
func damages() map[string]func(raw []byte) []byte {
	return map[string]func([]byte) []byte{
		"absent":    func([]byte) []byte { return nil },
		"empty":     func([]byte) []byte { return []byte{} },
		"noise":     func([]byte) []byte { return []byte("\x00\xffnot an object") },
		"truncated": func(raw []byte) []byte { return raw[:bytes.IndexByte(raw, '\n')+20] },
	}
}

// TestALostObjectIsMendedOrIsExactlyItsOwnGap takes each object away in each way, in every chain up to 20.
func TestALostObjectIsMendedOrIsExactlyItsOwnGap(t *testing.T) {
	t.Parallel()
	const most = 20
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), most)
	for name, damage := range damages() {
		for i := 1; i < most; i++ {
			object := objectOf(heads[i])
			raw := get(t, b, object)
			if bad := damage(raw); bad == nil {
				remove(t, b, object)
			} else {
				put(t, b, object, bad)
			}
			// Whatever grew after head n is in the store as well and helps to mend it.
			if repeated(i, most) {
				checkRead(t, s, heads[most])
				checkRead(t, s, heads[max(i, most-3)])
			} else {
				checkRead(t, s, heads[most], i)
			}
			r := verify(t, s, heads[most])
			if r.First != int64(i) || len(r.Findings) != 1 || r.Findings[0].Seq != int64(i) ||
				!strings.HasSuffix(object, r.Findings[0].Object) || r.Strays != 0 {
				t.Errorf("%s %d: report %+v", name, i, r)
			} else if mended := r.Findings[0].Mended; (mended != "") != repeated(i, most) || (len(r.Gaps) == 0) != repeated(i, most) {
				t.Errorf("%s %d: mended from %q, gaps %v", name, i, mended, r.Gaps)
			}
			put(t, b, object, raw)
		}
	}
	if r := verify(t, s, heads[most]); !r.OK() || r.Objects != most {
		t.Errorf("an undamaged chain: %+v", r)
	}
}

// TestADamagedByteCostsAtMostWhatHoldsIt flips every byte of objects of each shape in turn.
func TestADamagedByteCostsAtMostWhatHoldsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, i int }{{8, 8}, {8, 4}, {8, 7}, {7, 7}, {7, 6}, {12, 12}, {12, 8}, {1, 1}} {
		t.Run(fmt.Sprintf("segment %d of %d", c.i, c.n), func(t *testing.T) {
			t.Parallel()
			s, b := newStore(t)
			heads, _ := grow(t, New(s, 1<<20), c.n)
			object := objectOf(heads[c.i])
			raw := get(t, b, object)
			own := bytes.Index(raw, []byte("\n[")) + 1
			own, end := own, own+bytes.IndexByte(raw[own:], '\n')
			for at := range raw {
				bad := bytes.Clone(raw)
				bad[at] ^= 0x41
				put(t, b, object, bad)
				got := read(t, New(s, 0), heads[c.n])
				inOwn := at >= own && at < end
				switch {
				case len(got.Gaps) == 0:
					if inOwn && !repeated(c.i, c.n) {
						t.Fatalf("byte %d: entries that nothing repeats were read although they are damaged", at)
					}
					if want, _ := wantWithout(c.n); !sameEntries(want, got.Entries) {
						t.Fatalf("byte %d: no gap and other entries", at)
					}
				case got.Gaps[0].Unverified && c.i == c.n && at >= bytes.IndexByte(raw, '\n') && at < own:
					// The header of the last segment, of which only the workflow has the hash.
				default:
					if want, gaps := wantWithout(c.n, c.i); !sameEntries(want, got.Entries) || !cmp.Equal(gaps, got.Gaps, ignoreWords) {
						t.Fatalf("byte %d: more than segment %d is missing: %+v", at, c.i, got.Gaps)
					}
				}
				if at%7 != 0 { // verification reads every object: a sample is enough
					continue
				}
				r := verify(t, s, heads[c.n])
				if r.First != int64(c.i) || r.OK() {
					t.Fatalf("byte %d: verification names segment %d, not %d", at, r.First, c.i)
				}
			}
		})
	}
}

func TestATruncationAnywhereIsFoundAndCostsOnlyItsOwnEntries(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 13)
	object := objectOf(heads[12])
	raw := get(t, b, object)
	own := bytes.Index(raw, []byte("\n[")) + 1
	end := own + bytes.IndexByte(raw[own:], '\n')
	for n := 0; n < len(raw); n += 3 {
		put(t, b, object, raw[:n])
		if n >= end {
			checkRead(t, s, heads[13])
		} else {
			checkRead(t, s, heads[13], 12)
		}
		if n%7 != 0 {
			continue
		}
		if r := verify(t, s, heads[13]); r.First != 12 {
			t.Fatalf("truncated to %d bytes: %+v", n, r)
		}
	}
}

func TestAPlausibleForgeryIsNeverRead(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 12)
	object := strings.TrimPrefix(objectOf(heads[8]), scope.String()+"/segments/")
	forged := bytes.ReplaceAll(get(t, b, objectOf(heads[8])), []byte("result"), []byte("remedy"))
	forged = forged[bytes.IndexByte(forged, '\n')+1:]
	// Mend writes it with a good checksum: only the digests speak against it.
	if err := s.Space(scope).Mend(context.Background(), store.KindSegments, object, forged); err != nil {
		t.Fatal(err)
	}
	checkRead(t, s, heads[12], 8)
	r := verify(t, s, heads[12])
	if r.First != 8 || !strings.Contains(r.Findings[0].Problem, "entries of segment") {
		t.Errorf("report %+v", r)
	}
}

func TestSeveralLostObjectsAreSeveralGaps(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 15)
	// 8 and 12 are repeated by nothing; 9 to 11 stand in 12, and in objects of their own.
	remove(t, b, objectOf(heads[8]), objectOf(heads[12]))
	checkRead(t, s, heads[15], 8, 12)
	remove(t, b, objectOf(heads[4]))
	checkRead(t, s, heads[15], 4, 8, 12)
	remove(t, b, objectOf(heads[10]))
	checkRead(t, s, heads[15], 4, 8, 10, 12)
}

func TestAfterALostLastSegmentReadingGoesOnUnverified(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 17; n++ {
		s, b := newStore(t)
		heads, _ := grow(t, New(s, 1<<20), n)
		remove(t, b, objectOf(heads[n]))
		c := read(t, New(s, 1<<20), heads[n])
		want, _ := wantWithout(n - 1)
		gap := []Gap{{From: int64(n), To: int64(n), At: len(want), Unverified: true}}
		if diff := cmp.Diff(want, c.Entries, cmpEmpty); diff != "" || !cmp.Equal(gap, c.Gaps, ignoreWords) {
			t.Errorf("without the last of %d: %+v\n%s", n, c.Gaps, diff)
		}
		r := verify(t, s, heads[n])
		if r.First != int64(n) || n > 1 && !cmp.Equal(r.Candidates, heads[n-1:n]) {
			t.Errorf("without the last of %d: report %+v", n, r)
		}
		if n > 1 && !strings.Contains(c.Gaps[0].Reason, "unverified") {
			t.Errorf("reason %q", c.Gaps[0].Reason)
		}
	}
}

func TestAWrongLinkToEarlierSegmentsIsReportedAndNotFollowed(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	heads, all := grow(t, New(s, 0), 7)
	space, name := s.Space(scope), link{seq: 7, hash: heads[7].Hash}.name()
	raw, err := space.Get(t.Context(), store.KindSegments, name)
	if err != nil {
		t.Fatal(err)
	}
	base := `"base":"` + string(heads[5].Hash) + `"`
	raw = bytes.Replace(raw, []byte(base), []byte(`"base":"`+string(heads[3].Hash)+`"`), 1)
	if err := space.Mend(t.Context(), store.KindSegments, name, raw); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, s, heads[7]); r.First != 7 || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Problem, "do not chain") {
		t.Errorf("report %+v", r)
	}
	if c := read(t, New(s, 0), heads[7]); !sameEntries(all, c.Entries) || len(c.Gaps) != 0 {
		t.Errorf("%d entries, gaps %v", len(c.Entries), c.Gaps)
	}
}

func TestOfSeveralCandidatesReadingTakesWhatTheyHaveInCommon(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	l := New(s, 1<<20)
	heads, _ := grow(t, l, 8)
	if _, err := l.Append(context.Background(), scope, heads[6], []Entry{{Role: agent.RoleUser, Text: "an attempt that lost"}}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, s, heads[8]); !r.OK() || r.Strays != 1 {
		t.Errorf("a stray segment: %+v", r)
	}
	remove(t, b, objectOf(heads[8]))
	c := read(t, New(s, 1<<20), heads[8])
	want, _ := wantWithout(6)
	if !cmp.Equal(want, c.Entries) || !cmp.Equal([]Gap{{From: 7, To: 8, At: len(want), Unverified: true}}, c.Gaps, ignoreWords) {
		t.Errorf("gaps %+v", c.Gaps)
	}
	if r := verify(t, s, heads[8]); len(r.Candidates) != 2 {
		t.Errorf("candidates %v", r.Candidates)
	}
}

func TestALostLastSegmentIsMendedFromWhatGrewAfterIt(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 16)
	for i := 1; i < 16; i++ {
		raw := get(t, b, objectOf(heads[i]))
		remove(t, b, objectOf(heads[i]))
		checkRead(t, s, heads[i])
		put(t, b, objectOf(heads[i]), raw)
	}
}

func TestAConversationGoesOnOverAGap(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{false, true} {
		s, b := newStore(t)
		heads, _ := grow(t, New(s, 1<<20), 5)
		lost := 4
		if last {
			lost = 5
		}
		saved := get(t, b, objectOf(heads[lost]))
		remove(t, b, objectOf(heads[lost]))
		h, warm := heads[5], New(s, 1<<20)
		for i := 6; i <= 20; i++ {
			var err error
			if h, err = warm.Append(context.Background(), scope, h, say(i)); err != nil {
				t.Fatal(err)
			}
			l := warm // what is missing is not forgotten by the cache either
			if i%2 == 0 {
				l = New(s, 0)
			}
			c := read(t, l, h)
			want, _ := wantWithout(i, lost)
			if !cmp.Equal(want, c.Entries) || len(c.Gaps) != 1 || c.Gaps[0].From != int64(lost) || c.Gaps[0].Unverified != last {
				t.Fatalf("lost %d, head %d: %+v", lost, i, c.Gaps)
			}
		}
		put(t, b, objectOf(heads[lost]), saved)
		checkRead(t, s, h) // it is back
	}
}

func TestNothingAtAllIsOneGap(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 5)
	for _, h := range heads[1:] {
		remove(t, b, objectOf(h))
	}
	c := read(t, New(s, 1<<20), heads[5])
	if !cmp.Equal([]Gap{{From: 1, To: 5, Unverified: true}}, c.Gaps, ignoreWords) || len(c.Entries) != 0 {
		t.Errorf("%+v", c)
	}
	if r := verify(t, s, heads[5]); r.First != 1 || len(r.Findings) != 5 {
		t.Errorf("%+v", r)
	}
}

func TestALostBodyIsSaidAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	text, args := strings.Repeat("t", MaxInline+1), strings.Repeat("a", MaxInline+1)
	h, err := New(s, 0).Append(context.Background(), scope, agent.Head{}, []Entry{
		{Role: agent.RoleUser, Text: "hello"},
		{Role: agent.RoleAssistant, Calls: []Call{{ID: "c1", Name: "pay", Args: args}}},
		{Role: agent.RoleTool, Call: "c1", Text: text},
	})
	if err != nil {
		t.Fatal(err)
	}
	object := func(s string) string { return scope.String() + "/bodies/" + string(agent.DigestOf([]byte(s))) }
	put(t, b, object(text), append(get(t, b, object(text)), 'x'))
	remove(t, b, object(args))
	l := New(s, 1<<20)
	c := read(t, l, h)
	if len(c.Entries) != 3 || !cmp.Equal([]Gap{{From: 1, To: 1, At: 1}}, c.Gaps, ignoreWords) || c.Entries[1].Calls[0].Args != "" {
		t.Errorf("%+v", c)
	}
	texts, lost, err := l.Texts(context.Background(), scope, c.Entries)
	if err != nil || !slices.Equal(lost, []int{2}) || texts[0] != "hello" {
		t.Errorf("lost %v, %v", lost, err)
	}
	r := verify(t, s, h)
	if r.First != 0 || len(r.Findings) != 2 || r.OK() {
		t.Errorf("%+v", r)
	}
	if _, err := l.Append(context.Background(), scope, h, []Entry{{Text: text}}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, s, h); len(r.Findings) != 1 {
		t.Errorf("saying it again mends a damaged body: %+v", r)
	}
}

func TestAnAppendAgainMendsItsDamagedSegment(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 4)
	raw := get(t, b, objectOf(heads[4]))
	for name, bad := range map[string][]byte{"flipped": append([]byte("x"), raw[1:]...), "cut": raw[:len(raw)/2], "empty": {}} {
		put(t, b, objectOf(heads[4]), bad)
		h, err := New(s, 0).Append(context.Background(), scope, heads[3], say(4))
		if err != nil || h != heads[4] {
			t.Fatalf("%s: %v, %v", name, h, err)
		}
		if !bytes.Equal(get(t, b, objectOf(h)), raw) {
			t.Errorf("%s: not mended", name)
		}
	}
}

func TestReadsAreFewWhenOneObjectIsLost(t *testing.T) {
	t.Parallel()
	s, b := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 200)
	remove(t, b, objectOf(heads[128]))
	before := s.Stats().Reads
	checkRead(t, s, heads[200], 128)
	if n := s.Stats().Reads - before; n > int64(3*bits.Len(200)) {
		t.Errorf("%d reads", n)
	}
}
