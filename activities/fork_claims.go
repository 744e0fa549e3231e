package activities

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// claimReads bounds the requests to the store that are open at once while dispatch records are read.
const claimReads = 16

// claimOld claims the intents of what the source may have sent before there were claims: release 0.1.0 made none. Its own
// session knows such effects by its ledgers; of a fork nothing else would tell.
func (f *forking) claimOld(root agent.Scope) error {
	space := f.Store.Space(f.in.Fork.From)
	keys, err := space.List(f.ctx, store.KindDispatches, "")
	if err != nil {
		return f.snap.storeTrouble(f.ctx, "listing what the session has sent", err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		k, ok := agent.ParseKey(key)
		return !ok || k.Undo > 0 // a repeat, see toolRun.again, or a compensation
	})
	var read atomic.Int64
	g, ctx := errgroup.WithContext(f.ctx)
	g.SetLimit(claimReads)
	for _, key := range keys {
		g.Go(func() error {
			d, err := space.Dispatch(ctx, key)
			switch {
			case err != nil && !definite(err):
				return f.snap.storeTrouble(ctx, "reading the dispatch of "+key, err)
			case err == nil && !d.Revoked && d.Intent != "" && d.Args == "": // releases that claim write the arguments down
				err = f.claim(ctx, f.Store.Space(root), d.Intent, key)
			default: // of a record that cannot be read nobody knows the intent
				err = nil
			}
			f.counted("looking at what the session has sent", int(read.Add(1)), len(keys))
			return err
		})
	}
	return g.Wait()
}

// claim makes a claim for a key unless it has one.
func (f *forking) claim(ctx context.Context, claims *store.Space, intent, key string) error {
	for n := 1; n <= maxClaims; n++ {
		claim, err := claims.CreateIntent(ctx, intent, n, key)
		switch {
		case unreadable(err): // which refuses every further action of that intent already
			return nil
		case err != nil:
			return f.snap.storeTrouble(ctx, "claiming the intent of "+key, err)
		case claim.Key == key:
			return nil
		}
	}
	return nil // as many as refuse every further one
}
