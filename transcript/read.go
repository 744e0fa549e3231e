package transcript

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A reader reads one conversation out of the store. It keeps every line that it has seen: a line with the
// right digest is the truth wherever it stood.
type reader struct {
	space  *store.Space
	lines  map[agent.Digest]found
	seen   map[string]loaded // by the segment's name
	listed bool
	others []link // every segment in the store, once listed
}

type found struct {
	line []byte
	in   string // name of the segment
}

// loaded is a segment that was read. Problem says what is wrong with its object; then what could be made
// out of it is there all the same.
type loaded struct {
	segment
	problem string
}

func newReader(space *store.Space) *reader {
	return &reader{space: space, lines: map[agent.Digest]found{}, seen: map[string]loaded{}}
}

// load reads a segment's object. An error means that the store cannot be used, or holds what only a newer
// build can read; absence and damage are problems of the segment.
func (r *reader) load(ctx context.Context, l link) (loaded, error) {
	name := l.name()
	if s, ok := r.seen[name]; ok {
		return s, nil
	}
	b, err := r.space.Get(ctx, store.KindSegments, name)
	var s loaded
	switch {
	case errors.Is(err, store.ErrAbsent):
		s.problem = "absent"
	case errors.Is(err, store.ErrDamaged):
		s.segment, s.problem = parseSegment(b), "damaged"
	case err != nil:
		return loaded{}, err
	default:
		s.segment = parseSegment(b)
		if v := s.header.Version; v > layoutVersion {
			return loaded{}, fmt.Errorf("segment %q has layout %d, which this build does not know: use a newer one", name, v)
		}
	}
	for d, line := range s.lines {
		if _, ok := r.lines[d]; !ok {
			r.lines[d] = found{line, name}
		}
	}
	r.seen[name] = s
	return s, nil
}

// A reading is a conversation as far as it could be read: a block for each segment.
type reading struct {
	seq    int64
	blocks []block // made once something is known to be there
	// jumps are the places where nothing proves what comes before: the last segment of such a gap, and
	// the one that reading went on with.
	jumps map[int64]int64
	// candidates are what there was to go on with at the last segment, if that is such a place.
	candidates []link
}

// read follows the chain from head to its beginning, about log2(head.Seq) objects, and then looks for what
// is missing.
func (r *reader) read(ctx context.Context, head agent.Head) (*reading, error) {
	c := &reading{seq: head.Seq, jumps: map[int64]int64{}}
	next := link{seq: head.Seq, hash: head.Hash}
	for next.seq > 0 {
		links, err := r.prove(ctx, next)
		if err != nil {
			return nil, err
		}
		if links == nil {
			before, err := r.jump(ctx, c, next.seq)
			if err != nil {
				return nil, err
			}
			if next.seq-before.seq > maxGap {
				return nil, fmt.Errorf("head %d %q: nothing like it is in the store: it belongs to another session or store: %w", head.Seq, head.Hash, store.ErrAbsent)
			}
			c.set(next)
			next = before
			continue
		}
		for _, l := range links {
			c.set(l)
		}
		next = after(links, next.seq)
	}
	return c, r.fill(ctx, c)
}

// maxGap bounds how much is allocated for what a head that nobody has checked claims.
const maxGap = 1 << 20

// set notes what is known of a segment.
func (c *reading) set(l link) {
	if c.blocks == nil {
		c.blocks = make([]block, c.seq)
		for i := range c.blocks {
			c.blocks[i].seq = int64(i) + 1
		}
	}
	c.blocks[l.seq-1].link = l
}

// prove returns the links that can be proved from one whose head is known: from its own object, from the
// link itself when a later segment gave it, or from a later segment in the store.
func (r *reader) prove(ctx context.Context, l link) ([]link, error) {
	s, err := r.load(ctx, l)
	if err != nil {
		return nil, err
	}
	if links := s.links(l.seq, l.hash); links != nil {
		return links, nil
	}
	if l.follows() {
		return []link{l}, nil
	}
	return r.later(ctx, l)
}

// fill puts the lines into the blocks. One that was not met on the way is looked for in its own object and
// in later ones; what is in none is a gap.
func (r *reader) fill(ctx context.Context, c *reading) error {
	for i := range c.blocks {
		b := &c.blocks[i]
		if !b.follows() {
			continue
		}
		f, ok := r.lines[b.entries]
		if !ok {
			if _, err := r.load(ctx, b.link); err != nil {
				return err
			}
			f, ok = r.lines[b.entries]
		}
		if !ok {
			if _, err := r.later(ctx, b.link); err != nil {
				return err
			}
			f, ok = r.lines[b.entries]
		}
		if ok {
			b.line, b.from = f.line, f.in
			continue
		}
		problem := r.seen[b.name()].problem
		if problem == "" {
			problem = "without its entries"
		}
		b.problem = fmt.Sprintf("segment %q is %s and nothing repeats it", b.name(), problem)
	}
	return nil
}
