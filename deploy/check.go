package deploy

import (
	"context"
	"errors"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/worker"
)

// A Check says, before a rollout, what a build would make of the runs that are open. It replays each of them, and
// compares what each was made with with what the build and its configuration would use. It asks the server and
// the store and no worker; of a run it reads that run's history, which continue-as-new bounds, and at most two
// objects of the store, so that its cost does not grow with the length of conversations.
type Check struct {
	Gate Gate
	// Query narrows the open runs: see [Gate.Runs].
	Query string
	// Now is what the build and the configuration would use; nil only replays.
	Now *worker.Inventory
	// Store has the old definitions; nil compares without them.
	Store *store.Store
	// Each, if not nil, gets what was found about every run, one at a time and in no order.
	Each func(Crossing)
}

// A CheckReport is what a check found.
type CheckReport struct {
	Build  string `json:"build"` // that was checked
	Serial int64  `json:"serial,omitempty"`
	Policy string `json:"policy,omitempty"` // first 16 hex digits of the policy version
	Replay Report `json:"replay"`
	// Compared counts the runs whose making was compared with the build's.
	Compared int `json:"compared"`
	// Problems say what kept the check from looking at all there is.
	Problems []string       `json:"problems,omitempty"`
	Errors   []TroubleGroup `json:"errors,omitempty"`
	Drift    []DriftGroup   `json:"drift,omitempty"`
	Notes    []TroubleGroup `json:"notes,omitempty"`
}

// OK says that nothing would break. Drift alone breaks nothing.
func (r CheckReport) OK() bool {
	return r.Replay.OK() && len(r.Problems) == 0 && len(r.Errors) == 0
}

// reads bounds how many runs' definitions are read at once.
const reads = 16

// Run checks. An error means that the check itself was ended: what it had found is in no report.
func (c Check) Run(ctx context.Context) (CheckReport, error) {
	r := CheckReport{}
	k := &checking{each: c.Each, seen: map[string]bool{}, groups: newGroups()}
	k.work.SetLimit(reads)
	if c.Now != nil {
		r.Build, r.Serial, r.Policy = c.Now.Build, c.Now.Serial, c.Now.Policy.Short()
		k.with = &yardstick{now: c.Now}
		if c.Store != nil {
			k.shelf, k.with.store = newShelf(c.Store), c.Store.ID()
		}
	}
	query, err := open(c.Query)
	if err != nil {
		return r, err
	}
	replayed, err := c.Gate.Runs(ctx, query, func(i Item) { k.item(ctx, i) })
	_ = k.work.Wait() // what went wrong is in the groups
	if err != nil {
		return r, err
	}
	r.Replay, r.Compared = replayed, k.compared
	r.Errors, r.Notes, r.Drift = troubles(k.groups.errors), troubles(k.groups.notes), k.groups.list()
	if k.shelf != nil {
		r.Problems = append(r.Problems, k.shelf.problems()...)
	}
	return r, ctx.Err()
}

// open narrows a query to runs that are open: with others nothing can become any more.
func open(query string) (string, error) {
	if strings.TrimSpace(query) == "" {
		return isOpen, nil
	}
	if why := unbalanced(query); why != "" {
		return "", &QueryError{query, why}
	}
	return and(isOpen, "("+query+")"), nil
}

// checking is a check under way.
type checking struct {
	with  *yardstick // nil: nothing to compare with
	shelf *shelf     // nil: no store
	each  func(Crossing)
	seen  map[string]bool // workflow ids: one that continues as new under our eyes comes again
	work  errgroup.Group

	mu       sync.Mutex
	groups   *groups
	compared int
}

// item takes one replayed run. Nothing of its history is kept: what is small is taken out of it here, and what has
// to be read from the store is read beside the next runs' replays.
func (k *checking) item(ctx context.Context, i Item) {
	if k.with == nil || k.seen[i.Workflow] {
		return
	}
	m, err := madeOf(i)
	switch {
	case errors.Is(i.Err, replay.ErrNotRun):
		m = unopened(i)
	case i.Err != nil:
		return // the replay's report has it
	case err != nil:
		c := Crossing{Workflow: i.Workflow, Run: i.Run, Type: i.Type}
		c.fail(TroubleState, "this build's code does not say what the run was made with", "look at it: holdfast replay, holdfast show")
		k.done(c)
		return
	}
	if k.seen[i.Workflow] = true; m.over || m.agent == "" {
		return // it ended under our eyes, or nothing is known of it yet
	}
	k.work.Go(func() error {
		k.done(k.compare(ctx, m))
		return nil
	})
}

// compare reads what has to be read of the store.
func (k *checking) compare(ctx context.Context, m made) Crossing {
	if k.shelf == nil || k.with.foreign(m) {
		return k.with.compare(m, found{})
	}
	if m.by.Definition == "" && m.turns > 0 {
		m.by = k.shelf.last(ctx, m)
	}
	if !k.with.reads(m) {
		return k.with.compare(m, found{})
	}
	return k.with.compare(m, k.shelf.definition(ctx, m))
}

func (k *checking) done(c Crossing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.compared++
	k.groups.add(c)
	if k.each != nil {
		k.each(c)
	}
}
