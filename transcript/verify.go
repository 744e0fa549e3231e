package transcript

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A Report is what Verify found.
type Report struct {
	Head agent.Head
	// First is the first segment that does not follow: its object is not as it was written, or nothing
	// proves it. 0 means that all follow.
	First    int64
	Objects  int // looked at: segments and bodies
	Findings []Finding
	Gaps     []Gap
	// Candidates are the heads to go on with when the last segment is lost: each follows in itself, but
	// nothing proves that it belongs to this conversation.
	Candidates []agent.Head
	// Strays counts segments that are not on this chain: an attempt that lost, or a later append, left
	// them.
	Strays int
}

// A Finding is an object that is not as it was written.
type Finding struct {
	Seq    int64  // the segment, or the one whose entry names the body
	Object string // kind and name
	// Problem says what is wrong with it.
	Problem string
	// Mended names the object from which the segment's entries were read all the same, which may be what
	// is left of this one; empty means that they are lost.
	Mended string
}

// OK says whether everything is as it was written.
func (r Report) OK() bool { return r.First == 0 && len(r.Findings) == 0 && len(r.Gaps) == 0 }

// Verify reads every segment up to head and every body that their entries name, past the cache, and reports
// what is not as it was written. It changes nothing. An error means that the store cannot be used now.
func (l *Log) Verify(ctx context.Context, scope agent.Scope, head agent.Head) (Report, error) {
	report := Report{Head: head}
	if err := check(scope, head); err != nil || head == (agent.Head{}) {
		return report, err
	}
	fresh := New(l.store, 0)
	space := l.store.Space(scope)
	r := newReader(space)
	c, err := r.read(ctx, head)
	if err != nil {
		return report, err
	}
	v, err := fresh.assemble(ctx, scope, c)
	if err != nil {
		return report, err
	}
	report.Gaps, report.Candidates = v.gaps, heads(c.candidates)
	if err := report.segments(ctx, space, v.blocks); err != nil {
		return report, err
	}
	if err := report.bodies(ctx, space, v); err != nil {
		return report, err
	}
	return report, report.strays(ctx, r, v.blocks)
}

// segments looks at the object of every segment whose head is known.
func (r *Report) segments(ctx context.Context, space *store.Space, blocks []block) error {
	problems := make([]string, len(blocks))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, b := range blocks {
		if b.hash == "" {
			problems[i] = "nothing says what it was"
			continue
		}
		g.Go(func() error {
			s, err := newReader(space).load(gctx, b.link)
			if problems[i] = s.problem; s.problem == "" && err == nil {
				problems[i] = s.intact(b.seq, b.hash)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, b := range blocks {
		r.Objects++
		if problems[i] == "" {
			continue
		}
		mended := ""
		if b.from != "" {
			mended = fmt.Sprintf("%s/%s", store.KindSegments, b.from)
		}
		if r.First == 0 {
			r.First = b.seq
		}
		r.Findings = append(r.Findings, Finding{
			Seq: b.seq, Object: fmt.Sprintf("%s/%s", store.KindSegments, b.name()), Problem: problems[i], Mended: mended,
		})
	}
	return nil
}

// bodies looks at every body that an entry or a call names.
func (r *Report) bodies(ctx context.Context, space *store.Space, v view) error {
	named := map[agent.Digest]int64{} // by the first segment
	var order []agent.Body
	note := func(b *agent.Body, seq int64) {
		if b == nil {
			return
		}
		if _, ok := named[b.Digest]; !ok {
			named[b.Digest] = seq
			order = append(order, *b)
		}
	}
	from := 0
	for _, b := range v.blocks {
		for _, e := range v.entries[from:b.end] {
			note(e.Body, b.seq)
			for _, c := range e.Calls {
				note(c.Body, b.seq)
			}
		}
		from = b.end
	}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	start := len(r.Findings)
	for _, b := range order {
		g.Go(func() error {
			_, err := space.Body(gctx, b)
			if !damaged(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			r.Findings = append(r.Findings, Finding{
				Seq: named[b.Digest], Object: fmt.Sprintf("%s/%s", store.KindBodies, b.Digest), Problem: err.Error(),
			})
			return nil
		})
	}
	r.Objects += len(order)
	err := g.Wait()
	slices.SortStableFunc(r.Findings[start:], func(a, b Finding) int { return int(a.Seq - b.Seq) })
	return err
}

// strays counts the segments in the store that are not among blocks.
func (r *Report) strays(ctx context.Context, rd *reader, blocks []block) error {
	if err := rd.list(ctx); err != nil {
		return err
	}
	for _, o := range rd.others {
		if o.seq > int64(len(blocks)) || blocks[o.seq-1].hash != o.hash {
			r.Strays++
		}
	}
	return nil
}
