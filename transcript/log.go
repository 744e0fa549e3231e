package transcript

import (
	"context"
	"errors"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

type Log struct{}

func New(s *store.Store, cacheBytes int64) *Log { return &Log{} }

var errTODO = errors.New("not built yet")

func (l *Log) Append(ctx context.Context, scope agent.Scope, head agent.Head, entries []Entry) (agent.Head, error) {
	return agent.Head{}, errTODO
}
func (l *Log) Read(ctx context.Context, scope agent.Scope, head agent.Head) (Conversation, error) {
	return Conversation{}, errTODO
}
func (l *Log) Text(ctx context.Context, scope agent.Scope, e Entry) (string, error) { return "", errTODO }

// Texts returns the whole text of each entry; lost are the indexes of those whose body is gone or damaged.
func (l *Log) Texts(ctx context.Context, scope agent.Scope, entries []Entry) (texts []string, lost []int, err error) {
	return nil, nil, errTODO
}
func (l *Log) Verify(ctx context.Context, scope agent.Scope, head agent.Head) (Report, error) {
	return Report{}, errTODO
}
func (l *Log) Stats() Stats { return Stats{} }

// A Report is what Verify found.
type Report struct {
	Head agent.Head
	// First is the first segment that does not follow; 0 means that all do.
	First    int64
	Objects  int // looked at: segments and bodies
	Findings []Finding
	Gaps     []Gap
	// Candidates are the heads to go on with when the last segment is lost: each follows in itself, but
	// nothing proves that it belongs to this conversation.
	Candidates []agent.Head
	// Strays counts segments that are not on this chain: an attempt that lost left them.
	Strays int
}

// A Finding is an object that is not as it was written.
type Finding struct {
	Seq    int64  // the segment, or the one whose entry names the body
	Object string // kind and name
	// Problem says what is wrong with it.
	Problem string
	// Mended names the object from which its entries were read all the same; empty means that they are lost.
	Mended string
}

// Stats counts what a Log did.
type Stats struct {
	store.Stats
	Hits, Misses int64 // of conversations and bodies in the cache
	CacheBytes   int64 // held now, estimated
}
