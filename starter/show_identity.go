package starter

import (
	"context"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// identify adds what only the records in the store say: the digests of the prompt and of the tool schemas, and the
// policy that decided on the answer. A boundary between two prompts is seen only here.
func (s *shownTurn) identify(ctx context.Context, at *store.Store, scope agent.Scope) {
	if at == nil || !scope.Valid() {
		return
	}
	records := recordsOf(ctx, at.Space(scope), agent.TurnKeys(scope, s.Turn))
	seen := versions{}
	for i := range s.Steps {
		step := &s.Steps[i]
		r, ok := records[step.head]
		if !ok || step.By == nil {
			continue
		}
		step.Prompt, step.Tools, step.Policy = r.Prompt, r.Tools, r.Policy
		step.Boundary = seen.note(step.Boundary, ofPrompt, "", r.Prompt.Short())
	}
}

// recordsOf reads the records of a turn's model calls, by the head that each led to. What cannot be read is left out:
// the command shows what there is.
func recordsOf(ctx context.Context, space *store.Space, prefix string) map[agent.Head]store.ModelRecord {
	names, err := space.List(ctx, store.KindResults, prefix)
	if err != nil {
		return nil
	}
	var (
		mu  sync.Mutex
		out = map[agent.Head]store.ModelRecord{}
		all errgroup.Group
	)
	all.SetLimit(looksAtOnce)
	for _, name := range names {
		if _, digest, ok := strings.Cut(name, ".model/"); !ok || digest == "" {
			continue
		}
		all.Go(func() error {
			r, err := space.Result(ctx, name)
			if err == nil && r.Model != nil {
				mu.Lock()
				defer mu.Unlock()
				out[r.Model.Result.Head] = *r.Model
			}
			return nil
		})
	}
	_ = all.Wait()
	return out
}
