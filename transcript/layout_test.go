package transcript

import (
	"fmt"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

// TestTheDigestsAreFixed holds the hashed form still: every head in every store depends on it.
func TestTheDigestsAreFixed(t *testing.T) {
	t.Parallel()
	line, err := encodeEntries([]Entry{{Role: agent.RoleUser, Text: "hello <b>"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"role":"user","text":"hello <b>"}]`; string(line) != want {
		t.Errorf("line %s, want %s", line, want)
	}
	d := entriesDigest(line)
	one := chain("", 1, d)
	two := chain(one, 2, d)
	want := []agent.Digest{
		"38f6512cc5706026aa44ced71e71ec615f166702b6bacc8c82fd698ea49b291b",
		"4498f61292c4a911e84d7441cfe433276c94e3efc789cfe6a841e99070c4b60d",
		"1fadcd2744297a51099f2dfa144ead5be037a91ead2b6c3fcb0fc413905c1182",
	}
	for i, got := range []agent.Digest{d, one, two} {
		if got != want[i] {
			t.Errorf("digest %d is %s, want %s", i, got, want[i])
		}
	}
	if chain("x", 2, d) != "" || chain("", 2, d) != "" || chain(one, 2, "") != "" || chain(one, 0, d) != "" {
		t.Error("what is no digest was chained")
	}
}

func TestASegmentRepeatsAndPointsByItsLowestBit(t *testing.T) {
	t.Parallel()
	var blocks []block
	var prev agent.Digest
	for i := int64(1); i <= 200; i++ {
		line := fmt.Appendf(nil, "[%d]", i)
		b := block{link: link{seq: i, prev: prev, entries: entriesDigest(line)}, line: line}
		b.hash = chain(prev, i, b.entries)
		object, err := encodeSegment(blocks, b)
		if err != nil {
			t.Fatal(err)
		}
		s := parseSegment(object)
		low := i & -i
		if got := int64(len(s.lines)); got != low {
			t.Errorf("segment %d holds %d segments' entries, want lowbit %d", i, got, low)
		}
		links := s.links(i, b.hash)
		if want := max(i-low, 1); links == nil || links[0].seq != want || links[len(links)-1] != b.link {
			t.Errorf("segment %d proves from %v, want from %d", i, links, want)
		}
		if next := after(links, i); next.seq != i-low {
			t.Errorf("segment %d is followed by reading %d, want %d", i, next.seq, i-low)
		}
		if p := s.intact(i, b.hash); p != "" {
			t.Errorf("segment %d: %s", i, p)
		}
		if s.links(i, prev) != nil || s.links(i+1, b.hash) != nil {
			t.Errorf("segment %d proves another's head", i)
		}
		blocks, prev = append(blocks, b), b.hash
	}
}

func TestOnlyNamesOfSegmentsParse(t *testing.T) {
	t.Parallel()
	h := agent.DigestOf(nil)
	if l, ok := parseName("00000012-" + string(h)); !ok || l.seq != 12 || l.hash != h {
		t.Errorf("%+v, %v", l, ok)
	}
	for _, n := range []string{"", "12-" + string(h), "00000000-" + string(h), "-0000001-" + string(h), "00000012-x", "00000012" + string(h), "+0000012-" + string(h)} {
		if l, ok := parseName(n); ok {
			t.Errorf("%q parsed as %+v", n, l)
		}
	}
}
