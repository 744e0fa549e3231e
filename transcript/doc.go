// Package transcript keeps what was said in a session: an append-only chain of segments in the store.
//
// The workflow carries one [agent.Head], the sequence and the chained digest of the last segment, so that
// its history grows by a constant however long the conversation is. A head proves every entry before it:
//
//	head(i) = H(head(i-1), i, digest of the segment's own entries)
//
// so nothing in the store can be changed, left out or put in without being seen.
//
// So that a worker that knows nothing reads few objects, segment i also repeats the entries of the segments
// after i - lowbit(i) and points there: about log2(n) reads for n segments. A repeat is outside the digest
// of the segment that holds it, and is checked by its own. Damage is mended from repeats before it becomes a
// [Gap]; a gap is shown where it is, and nothing is put in its place.
//
// layout.go and hash.go say what the bytes are, without any I/O; read.go and mend.go find and check them,
// cache.go keeps decoded conversations, copy.go gives another session the same transcript. [Log] is what others use.
package transcript
