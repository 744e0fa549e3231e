package transcript

import (
	"context"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A Log reads and extends transcripts. It is safe for concurrent use.
type Log struct {
	store *store.Store
	cache *cache
}

// New returns a Log that keeps up to cacheBytes of decoded conversations and texts, estimated; 0 keeps none.
// A conversation that is larger than that is read anew at every step.
func New(s *store.Store, cacheBytes int64) *Log {
	return &Log{store: s, cache: newCache(cacheBytes)}
}

// Stats counts what a Log did.
type Stats struct {
	// Stats are the requests of the whole store, whoever made them.
	store.Stats
	Hits, Misses int64 // of conversations and texts in the cache
	CacheBytes   int64 // held now, estimated
}

// Stats returns the counts so far.
func (l *Log) Stats() Stats {
	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()
	return Stats{Stats: l.store.Stats(), Hits: l.cache.hits, Misses: l.cache.misses, CacheBytes: l.cache.bytes}
}

// Read returns the conversation up to head. What is lost or damaged beyond mending is a gap in it; an error
// means that the store cannot be used now, or holds what only a newer build can read.
func (l *Log) Read(ctx context.Context, scope agent.Scope, head agent.Head) (Conversation, error) {
	v, err := l.view(ctx, scope, head)
	if err != nil {
		return Conversation{}, err
	}
	return Conversation{Entries: v.entries, Gaps: v.gaps}, nil
}

// Append adds one segment with these entries after head and returns the new head. Without entries it
// returns head. The same call again is success and gives the same head. Texts and arguments longer than
// [MaxInline] are stored as bodies first. After a head that is in the cache it writes one object and reads
// none.
func (l *Log) Append(ctx context.Context, scope agent.Scope, head agent.Head, entries []Entry) (agent.Head, error) {
	v, err := l.view(ctx, scope, head)
	if err != nil || len(entries) == 0 {
		return head, err
	}
	if head.Seq >= maxSeq {
		return head, fmt.Errorf("transcript of %q has %d segments, the most there can be: start another session", scope, head.Seq)
	}
	kept, err := l.spill(ctx, scope, entries)
	if err != nil {
		return head, err
	}
	line, err := encodeEntries(kept)
	if err != nil {
		return head, err
	}
	b := block{link: link{seq: head.Seq + 1, prev: head.Hash, entries: entriesDigest(line)}, line: line}
	b.hash = chain(b.prev, b.seq, b.entries)
	b.from = b.name()
	object, err := encodeSegment(v.blocks, b)
	if err != nil {
		return head, err
	}
	if err := l.write(ctx, scope, b.link, object); err != nil {
		return head, err
	}
	l.cache.extend(scope, v, b, kept)
	return agent.Head{Seq: b.seq, Hash: b.hash}, nil
}

// write creates a segment. One that stands there already has the same entries, because its name says so; if
// it is damaged it is replaced.
func (l *Log) write(ctx context.Context, scope agent.Scope, k link, object []byte) error {
	space := l.store.Space(scope)
	created, existing, err := space.Create(ctx, store.KindSegments, k.name(), object)
	if created {
		return nil
	}
	if err == nil {
		s := parseSegment(existing)
		if _, ok := s.lines[k.entries]; ok && s.links(k.seq, k.hash) != nil || s.header.Version > layoutVersion {
			return nil
		}
	} else if !damaged(err) {
		return err
	}
	return space.Mend(ctx, store.KindSegments, k.name(), object)
}

// check refuses what names no transcript.
func check(scope agent.Scope, head agent.Head) error {
	if !scope.Valid() {
		return fmt.Errorf("scope %q is not <session>~<8 hex digits>", scope)
	}
	if head != (agent.Head{}) && (head.Seq < 1 || head.Seq > maxSeq || !head.Hash.Valid()) {
		return fmt.Errorf("head {%d %.80q} of transcript %q is not one: want a sequence from 1 and 64 hex digits",
			head.Seq, head.Hash, scope)
	}
	return nil
}

// view returns the conversation up to head, from the cache if it is there.
func (l *Log) view(ctx context.Context, scope agent.Scope, head agent.Head) (view, error) {
	if err := check(scope, head); err != nil {
		return view{}, err
	}
	if head == (agent.Head{}) {
		return view{trunk: &trunk{}}, nil
	}
	if v, ok := l.cache.conversation(scope, head); ok {
		return v, nil
	}
	c, err := newReader(l.store.Space(scope)).read(ctx, head)
	if err != nil {
		return view{}, err
	}
	v, err := l.assemble(ctx, scope, c)
	if err != nil {
		return view{}, err
	}
	l.cache.add(scope, v)
	return v, nil
}

// assemble decodes what was read.
func (l *Log) assemble(ctx context.Context, scope agent.Scope, c *reading) (view, error) {
	t := &trunk{blocks: c.blocks}
	for i := range t.blocks {
		b := &t.blocks[i]
		if b.line != nil {
			entries, err := decodeEntries(b.line)
			if err != nil {
				return view{}, fmt.Errorf("segment %q holds what this build cannot read: use a newer one: %w", b.name(), err)
			}
			t.entries = append(t.entries, entries...)
		}
		b.end = len(t.entries)
	}
	gaps, err := l.fillArgs(ctx, scope, t, c.gaps())
	if err != nil {
		return view{}, err
	}
	t.bytes = linesCost(t.blocks) + entriesCost(t.entries)
	return view{blocks: t.blocks, entries: t.entries[:len(t.entries):len(t.entries)], gaps: gaps, trunk: t}, nil
}
