package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// parallel bounds the requests to the store that one call has open at once.
const parallel = 16

// damaged says whether err is about an object and not about the store.
func damaged(err error) bool {
	return errors.Is(err, store.ErrAbsent) || errors.Is(err, store.ErrDamaged)
}

// Texts returns the whole text of each entry, reading what is not in the cache in parallel. Lost are the
// indexes, rising, of the entries whose text is absent or damaged: it is "" there. An error means that the
// store cannot be used now.
func (l *Log) Texts(ctx context.Context, scope agent.Scope, entries []Entry) (texts []string, lost []int, err error) {
	texts = make([]string, len(entries))
	gone := make([]bool, len(entries))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, e := range entries {
		if e.Body == nil {
			texts[i] = e.Text
			continue
		}
		if s, ok := l.cache.text(scope, e.Body.Digest); ok {
			texts[i] = s
			continue
		}
		g.Go(func() (err error) {
			texts[i], err = l.fetch(gctx, scope, *e.Body)
			if gone[i] = damaged(err); gone[i] {
				err = nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	for i := range gone {
		if gone[i] {
			lost = append(lost, i)
		}
	}
	return texts, lost, nil
}

// fetch reads a body and keeps it in the cache.
func (l *Log) fetch(ctx context.Context, scope agent.Scope, b agent.Body) (string, error) {
	raw, err := l.store.Space(scope).Body(ctx, b)
	if err != nil {
		return "", err
	}
	s := string(raw)
	l.cache.keepText(scope, b.Digest, s)
	return s, nil
}

// PutText stores a text as a body and keeps it in the cache: whoever writes one down is soon asked for it by
// the next reading of the conversation. It is idempotent, as [store.Space.PutBody] is.
func (l *Log) PutText(ctx context.Context, scope agent.Scope, text, mediaType string) (agent.Body, error) {
	b, err := l.store.Space(scope).PutBody(ctx, []byte(text), mediaType)
	if err == nil {
		l.cache.keepText(scope, b.Digest, text)
	}
	return b, err
}

// spill stores what is too long for a segment and returns the entries as they are kept. The caller's are
// left alone.
func (l *Log) spill(ctx context.Context, scope agent.Scope, entries []Entry) ([]Entry, error) {
	kept := slices.Clone(entries)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	put := func(text string, into **agent.Body) {
		g.Go(func() error {
			b, err := l.PutText(gctx, scope, text, "")
			if err != nil {
				return err
			}
			*into = &b
			return nil
		})
	}
	for i := range kept {
		e := &kept[i]
		if len(e.Text) > MaxInline {
			if e.Body != nil {
				return nil, errors.Join(fmt.Errorf("entry %d of %q has a body and %d bytes of text: give up to %d beside a body",
					i, scope, len(e.Text), MaxInline), g.Wait())
			}
			put(e.Text, &e.Body)
			e.Text = ""
		}
		e.Calls = slices.Clone(e.Calls)
		for j := range e.Calls {
			if c := &e.Calls[j]; len(c.Args) > MaxInline {
				put(c.Args, &c.Body)
			}
		}
	}
	return kept, g.Wait()
}

// fillArgs reads the arguments that are bodies and adds a gap for each that is lost.
func (l *Log) fillArgs(ctx context.Context, scope agent.Scope, t *trunk, gaps []Gap) ([]Gap, error) {
	type place struct{ entry, call int }
	var places []place
	var bodies []Entry
	for i, e := range t.entries {
		for j, c := range e.Calls {
			if c.Body != nil {
				places = append(places, place{i, j})
				bodies = append(bodies, Entry{Body: c.Body})
			}
		}
	}
	texts, lost, err := l.Texts(ctx, scope, bodies)
	if err != nil {
		return nil, err
	}
	for i, p := range places {
		t.entries[p.entry].Calls[p.call].Args = texts[i]
	}
	for _, i := range lost {
		p := places[i]
		c := t.entries[p.entry].Calls[p.call]
		seq := int64(1)
		for t.blocks[seq-1].end <= p.entry {
			seq++
		}
		gaps = append(gaps, Gap{
			From: seq, To: seq, At: p.entry,
			Reason: fmt.Sprintf("the arguments of call %q to %q, body %q, are absent or damaged", c.ID, c.Name, c.Body.Digest),
		})
	}
	slices.SortStableFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.At, b.At) })
	return gaps, nil
}
