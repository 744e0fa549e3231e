package transcript

import (
	"context"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// list finds every segment in the store. It happens only once something is missing.
func (r *reader) list(ctx context.Context) error {
	if r.listed {
		return nil
	}
	names, err := r.space.List(ctx, store.KindSegments, "")
	if err != nil {
		return err
	}
	for _, n := range names {
		if l, ok := parseName(n); ok {
			r.others = append(r.others, l)
		}
	}
	r.listed = true
	return nil
}

// later reads the segments after l that repeat it or point to it, whichever chain they belong to, so that
// their lines are known. It returns the link to l that one of them proves, or none.
func (r *reader) later(ctx context.Context, l link) ([]link, error) {
	if err := r.list(ctx); err != nil {
		return nil, err
	}
	var proved []link
	for _, o := range r.others {
		if o.seq <= l.seq || pointer(o.seq) > l.seq {
			continue
		}
		s, err := r.load(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, p := range s.links(o.seq, o.hash) {
			if p.seq == l.seq && p.hash == l.hash && p.follows() {
				proved = []link{p}
			}
		}
	}
	return proved, nil
}

// candidates returns the segments of the highest sequence below seq of which any follows in itself.
func (r *reader) candidates(ctx context.Context, seq int64) ([]link, error) {
	if err := r.list(ctx); err != nil {
		return nil, err
	}
	var best []link
	for i := len(r.others) - 1; i >= 0; i-- { // names sort by sequence
		o := r.others[i]
		if o.seq >= seq {
			continue
		}
		if len(best) > 0 && o.seq < best[0].seq {
			break
		}
		s, err := r.load(ctx, o)
		if err != nil {
			return nil, err
		}
		if links := s.links(o.seq, o.hash); links != nil {
			best = append(best, links[len(links)-1])
		}
	}
	return best, nil
}

// jump is for a segment of which only the head is known and which no object proves. It returns what to read
// on with: the one segment before it in the store or, where attempts left several, what they have in common,
// because nothing tells which of them was meant. Nothing proves that it belongs to this conversation.
func (r *reader) jump(ctx context.Context, c *reading, seq int64) (link, error) {
	found, err := r.candidates(ctx, seq)
	if err != nil {
		return link{}, err
	}
	if seq == c.seq {
		c.candidates = found
	}
	for len(found) > 1 && !sameBefore(found) {
		if found, err = r.candidates(ctx, found[0].seq); err != nil {
			return link{}, err
		}
	}
	next := link{}
	switch {
	case len(found) == 1:
		next = found[0]
	case len(found) > 1:
		next = link{seq: found[0].seq - 1, hash: found[0].prev}
	}
	c.jumps[seq] = next.seq
	return next, nil
}

func sameBefore(links []link) bool {
	for _, l := range links {
		if l.prev != links[0].prev {
			return false
		}
	}
	return true
}

// gaps returns the places where the reading lacks something. The blocks' ends must be set.
func (c *reading) gaps() []Gap {
	var gaps []Gap
	for i := 0; i < len(c.blocks); i++ {
		b := c.blocks[i]
		at := 0
		if i > 0 {
			at = c.blocks[i-1].end
		}
		if b.line != nil {
			continue
		}
		if b.follows() {
			gaps = append(gaps, Gap{From: b.seq, To: b.seq, At: at, Reason: b.problem})
			continue
		}
		// Up to the segment whose head is known nothing is.
		from := b.seq
		for c.blocks[i].hash == "" {
			i++
		}
		gaps = append(gaps, Gap{From: from, To: c.blocks[i].seq, At: at, Unverified: true, Reason: c.jumpReason(c.blocks[i].link)})
	}
	return gaps
}

func (c *reading) jumpReason(l link) string {
	before := c.jumps[l.seq]
	if before == 0 {
		return fmt.Sprintf("segment %q is lost, and no segment before it was found to go on with", l.name())
	}
	return fmt.Sprintf("segment %q is lost: reading went on at segment %d as found in the store; unverified", l.name(), before)
}

// heads turns links into heads.
func heads(links []link) []agent.Head {
	var h []agent.Head
	for _, l := range links {
		h = append(h, agent.Head{Seq: l.seq, Hash: l.hash})
	}
	return h
}
