package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// A segment is an object of lines:
//
//	{"v":1,"seq":12,"prev":<head 11>,"base":<head 7>,"digests":[<of 8>, ... <of 12>]}
//	[own entries]
//	[entries of 9]
//	[entries of 10]
//	[entries of 11]
//
// The digests begin with that of the segment pointed to, whose entries are not here, so that the header is
// a link for each segment from there on: from base they chain to the head that the object is named by.
// Lines are found by their digest, not by their place, so that damage to one costs that one only.

// maxSeq is the last sequence that has a name of eight digits.
const maxSeq = 99_999_999

const layoutVersion = 1

// pointer returns the segment that segment seq points to: seq with its lowest set bit cleared. The segments
// between the two are repeated.
func pointer(seq int64) int64 { return seq & (seq - 1) }

type header struct {
	Version int            `json:"v"`
	Seq     int64          `json:"seq"`
	Prev    agent.Digest   `json:"prev,omitempty"`
	Base    agent.Digest   `json:"base,omitempty"`
	Digests []agent.Digest `json:"digests"`
}

// A link says how a segment follows the one before it. Only seq and hash are known of one that nothing
// good points to.
type link struct {
	seq           int64
	hash          agent.Digest // its head
	prev, entries agent.Digest
}

// follows says whether prev and entries are known and make hash.
func (l link) follows() bool { return l.hash != "" && chain(l.prev, l.seq, l.entries) == l.hash }

func (l link) name() string { return fmt.Sprintf("%08d-%s", l.seq, l.hash) }

// parseName is the inverse of name.
func parseName(name string) (link, bool) {
	seq, hash, _ := strings.Cut(name, "-")
	n, err := strconv.ParseInt(seq, 10, 64)
	l := link{seq: n, hash: agent.Digest(hash)}
	return l, err == nil && n > 0 && l.hash.Valid() && l.name() == name
}

// A block is one segment of a conversation in memory.
type block struct {
	link
	line    []byte // own entries as they are stored; nil when they are lost
	from    string // name of the segment that the line was read from
	problem string // why the line is nil
	end     int    // number of the conversation's entries up to and with this segment
}

// encodeSegment returns the object of last, which comes after the blocks before, from segment 1 on. Lines
// that are lost are left out; what lies before a block whose link is not known is neither repeated nor
// pointed to.
func encodeSegment(before []block, last block) ([]byte, error) {
	first := len(before)
	for first > 0 && int64(first) >= pointer(last.seq) && before[first-1].follows() {
		first--
	}
	covered := before[first:]
	h := header{Version: layoutVersion, Seq: last.seq, Prev: last.prev, Base: last.prev}
	if len(covered) > 0 {
		h.Base = covered[0].prev
	}
	for _, b := range covered {
		h.Digests = append(h.Digests, b.entries)
	}
	h.Digests = append(h.Digests, last.entries)
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	out := append(head, '\n')
	out = append(append(out, last.line...), '\n')
	for _, b := range covered {
		if b.seq > pointer(last.seq) && b.line != nil {
			out = append(append(out, b.line...), '\n')
		}
	}
	return out, nil
}

// A segment is what could be made out of an object's bytes. Nothing in it is proved: links and the digests
// of lines prove it.
type segment struct {
	header header
	lines  map[agent.Digest][]byte
}

// parseSegment never fails: damaged bytes give fewer lines.
func parseSegment(b []byte) segment {
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	s := segment{lines: map[agent.Digest][]byte{}}
	if json.Unmarshal(head, &s.header) != nil {
		s.header = header{}
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		s.lines[entriesDigest(line)] = line
	}
	return s
}

// links returns the links that the segment proves, given its sequence and head: from the segment that it
// points to up to itself, or only its own when the header's other digests do not chain, or none.
func (s segment) links(seq int64, hash agent.Digest) []link {
	h := s.header
	if first := seq - int64(len(h.Digests)) + 1; first >= 1 {
		links := make([]link, 0, len(h.Digests))
		prev := h.Base
		for i, d := range h.Digests {
			l := link{seq: first + int64(i), prev: prev, entries: d}
			l.hash = chain(prev, l.seq, d)
			prev = l.hash
			links = append(links, l)
		}
		if n := len(links); n > 0 && links[n-1].hash == hash && hash != "" {
			return links
		}
		if own := (link{seq, hash, h.Prev, last(h.Digests)}); own.follows() {
			return []link{own}
		}
	}
	for d := range s.lines {
		if own := (link{seq, hash, h.Prev, d}); own.follows() {
			return []link{own}
		}
	}
	return nil
}

func last(d []agent.Digest) agent.Digest {
	if len(d) == 0 {
		return ""
	}
	return d[len(d)-1]
}

// after returns the link to read on with when links, which segment seq has proved, are done with: the
// segment pointed to, or the one before the first, of which only the head is known. Its seq is 0 at the
// beginning.
func after(links []link, seq int64) link {
	first := links[0]
	if first.seq < seq && first.seq <= pointer(seq) {
		return first
	}
	return link{seq: first.seq - 1, hash: first.prev}
}

// intact returns what is wrong with a segment's object that was read without error; "" means nothing.
func (s segment) intact(seq int64, hash agent.Digest) string {
	links := s.links(seq, hash)
	if links == nil {
		return "does not follow the segment before it"
	}
	if len(links) != len(s.header.Digests) {
		return "its links to earlier segments do not chain"
	}
	for _, l := range links {
		if _, ok := s.lines[l.entries]; !ok && (l.seq == seq || l.seq > pointer(seq)) {
			return fmt.Sprintf("entries of segment %d are not in it", l.seq)
		}
	}
	return ""
}
