package transcript

import (
	"container/list"
	"sync"

	"github.com/holdfast-run/holdfast/agent"
)

// A conversation's blocks and entries live in a trunk, which only grows: whoever holds a view of its first n
// blocks is not disturbed by a longer one, and appending to the last does not copy what is before.
type trunk struct {
	blocks  []block
	entries []Entry
	bytes   int64
	elem    *list.Element // its place in the cache, nil when it has none
	keyed   int           // how many blocks the cache finds it by
}

// A view is the conversation up to the n-th block of a trunk, with the gaps in it. Blocks and entries are
// shared and never changed.
type view struct {
	blocks  []block
	entries []Entry
	gaps    []Gap
	trunk   *trunk
}

type (
	headKey struct { // of a conversation
		scope agent.Scope
		hash  agent.Digest
	}
	bodyKey struct { // of a text
		scope  agent.Scope
		digest agent.Digest
	}
)

// cache keeps trunks and texts, least recently used out first, in a number of bytes.
type cache struct {
	max int64

	mu           sync.Mutex
	bytes        int64
	hits, misses int64
	recent       *list.List // of *item
	items        map[any]*list.Element
}

// item is a trunk or a text.
type item struct {
	scope agent.Scope
	trunk *trunk
	body  agent.Digest
	text  string
	bytes int64
}

// overhead is what an entry, block or text costs beside its bytes, roughly.
const overhead = 256

func newCache(maxBytes int64) *cache {
	return &cache{max: maxBytes, recent: list.New(), items: map[any]*list.Element{}}
}

// find returns the item under key and marks it as used. The lock is held.
func (c *cache) find(key any) (*item, bool) {
	e, ok := c.items[key]
	if !ok {
		c.misses++
		return nil, false
	}
	c.hits++
	c.recent.MoveToFront(e)
	return e.Value.(*item), true
}

// conversation returns the view of head.
func (c *cache) conversation(scope agent.Scope, head agent.Head) (view, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, ok := c.find(headKey{scope, head.Hash})
	if !ok || head.Seq > int64(len(it.trunk.blocks)) || it.trunk.blocks[head.Seq-1].hash != head.Hash {
		return view{}, false
	}
	return it.trunk.view(head.Seq), true
}

func (t *trunk) view(seq int64) view {
	end := t.blocks[seq-1].end
	return view{blocks: t.blocks[:seq:seq], entries: t.entries[:end:end], trunk: t}
}

// extend keeps v with one more block, unless v has gaps: what is missing now may be back at the next read.
func (c *cache) extend(scope agent.Scope, v view, b block, entries []Entry) {
	if len(v.gaps) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t, n := v.trunk, len(v.blocks)
	switch {
	case len(t.blocks) > n && t.blocks[n].hash == b.hash:
		// The same append, a second time.
	case len(t.blocks) > n:
		// The trunk has grown into something else since: this one gets its own.
		t = &trunk{
			bytes:  linesCost(v.blocks) + entriesCost(v.entries),
			blocks: v.blocks[:n:n], entries: v.entries[:len(v.entries):len(v.entries)],
		}
		fallthrough
	default:
		b.end = len(t.entries) + len(entries)
		t.blocks = append(t.blocks, b)
		t.entries = append(t.entries, entries...)
		t.bytes += linesCost([]block{b}) + entriesCost(entries)
	}
	c.keep(scope, t)
}

// add keeps a conversation that was read, unless there are gaps in it.
func (c *cache) add(scope agent.Scope, v view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(v.blocks); n > 0 && len(v.gaps) == 0 {
		if e, ok := c.items[headKey{scope, v.blocks[n-1].hash}]; !ok {
			c.keep(scope, v.trunk)
		} else { // another reader was first
			c.recent.MoveToFront(e)
		}
	}
}

// keep puts a trunk into the cache, or takes note of how it has grown. One that can never fit is left out
// instead of driving everything else out. The lock is held.
func (c *cache) keep(scope agent.Scope, t *trunk) {
	if t.bytes > c.max {
		if t.elem != nil {
			c.drop(t.elem)
		}
		return
	}
	if t.elem == nil {
		t.elem = c.recent.PushFront(&item{scope: scope, trunk: t})
	}
	c.recent.MoveToFront(t.elem)
	for _, b := range t.blocks[t.keyed:] {
		if key := (headKey{scope, b.hash}); c.items[key] == nil {
			c.items[key] = t.elem
		}
	}
	t.keyed = len(t.blocks)
	it := t.elem.Value.(*item)
	c.bytes += t.bytes - it.bytes
	it.bytes = t.bytes
	c.shrink()
}

// text returns a cached text.
func (c *cache) text(scope agent.Scope, d agent.Digest) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, ok := c.find(bodyKey{scope, d})
	if !ok {
		return "", false
	}
	return it.text, true
}

// keepText puts a text into the cache.
func (c *cache) keepText(scope agent.Scope, d agent.Digest, s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := bodyKey{scope, d}
	if _, ok := c.items[key]; ok || int64(len(s))+overhead > c.max {
		return
	}
	it := &item{scope: scope, body: d, text: s, bytes: int64(len(s)) + overhead}
	c.items[key] = c.recent.PushFront(it)
	c.bytes += it.bytes
	c.shrink()
}

// shrink drops what was used least recently until the rest fits. The lock is held.
func (c *cache) shrink() {
	for c.bytes > c.max {
		c.drop(c.recent.Back())
	}
}

// drop takes an item out. The lock is held.
func (c *cache) drop(e *list.Element) {
	it := c.recent.Remove(e).(*item)
	c.bytes -= it.bytes
	if it.trunk == nil {
		delete(c.items, bodyKey{it.scope, it.body})
		return
	}
	for _, b := range it.trunk.blocks[:it.trunk.keyed] {
		if key := (headKey{it.scope, b.hash}); c.items[key] == e {
			delete(c.items, key)
		}
	}
	it.trunk.elem, it.trunk.keyed = nil, 0
}

func linesCost(blocks []block) int64 {
	var n int64
	for _, b := range blocks {
		n += int64(len(b.line)) + overhead
	}
	return n
}

func entriesCost(entries []Entry) int64 {
	var n int64
	for _, e := range entries {
		n += int64(len(e.Text)+len(e.Refusal)+len(e.Call)) + overhead
		for _, c := range e.Calls {
			n += int64(len(c.ID)+len(c.Name)+len(c.Args)) + overhead
		}
	}
	return n
}
