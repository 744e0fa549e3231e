package deploy

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

// A Gate replays many histories against this build. At most Parallel of them are in memory at once, whatever there
// is to replay, and nothing of a history is kept once its [Item] was handed over. It is safe for concurrent use.
type Gate struct {
	// Client and Namespace are for what is on a server: [Gate.Files] needs none.
	Client    client.Client
	Namespace string
	// Register registers the workflows in the form that is meant for replays.
	Register func(sdkworker.WorkflowRegistry)
	// Payloads decodes what a codec has encoded; nil, or one without a codec, takes payloads as they are.
	Payloads converter.DataConverter
	// Stored opens where payloads are kept that were too large for history. It is called once at most, for the first
	// such payload; nil, or an error, makes histories that have one unreadable.
	Stored func(context.Context) (converter.StorageDriver, error)
	// Stdin is what the path "-" means to [Gate.Files].
	Stdin io.Reader
	// Parallel is how many histories are fetched and replayed at once; 0 is one and a half for each processor, since
	// some wait for the server while the others are replayed.
	Parallel int
	// Progress, if not nil, is told how many histories were looked at, of how many that are known of so far. It is
	// never called while an Item is handed over, nor twice at once.
	Progress func(done, total int)

	patience time.Duration // 0: see outage
}

// An Item is one history that was looked at.
type Item struct {
	Source              string // the file, or the workflow's id
	Workflow, Run, Type string // as far as they are known
	Replayed            replay.Replayed
	// Err is nil when this build does all that history holds, a [*replay.Mismatch] when the two part, and
	// [replay.ErrNotRun] when the code has not run yet. Any other says that there was nothing to replay.
	Err error
	// Fetched says that the history was there and could be read.
	Fetched bool
	// Info is what the server's list said of the run, nil for a file.
	Info *workflowpb.WorkflowExecutionInfo
}

// A job is one history that is to be replayed.
type job struct {
	item  Item // what is known of it before
	fetch func(context.Context) (*historypb.History, error)
	// next, if not nil, says which history continues that one and has to be looked at as well.
	next func(context.Context, *historypb.History) (*job, error)
	// err ends a job before it begins.
	err error
}

// stopError wraps what ends all of a replay, and not one history's.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// run replays what list lists and hands each Item over. It returns as soon as ctx is done or the server is lost: what
// goes on at that moment comes to its end by itself, and nobody hears of it.
func (g Gate) run(ctx context.Context, list func(context.Context, *queue) error, each func(Item)) (Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := &queue{jobs: make(chan job), known: make(chan int, 1), done: ctx.Done()}
	items, listed, replayed := make(chan Item), make(chan error, 1), make(chan struct{})
	go func() {
		err := list(ctx, q)
		close(q.jobs)
		listed <- err
	}()
	go func() {
		g.replayAll(ctx, q, items, cancel)
		close(replayed)
	}()
	r := newReport()
	for open := true; open; {
		select {
		case <-ctx.Done():
			return r.sorted(), context.Cause(ctx)
		case total := <-q.known:
			r.known = max(r.known, total)
		case i := <-items:
			r.add(i)
			if each != nil {
				each(i)
			}
			g.progress(r)
		case <-replayed:
			open = false
		}
	}
	if err := <-listed; err != nil {
		return r.sorted(), err
	}
	return r.sorted(), context.Cause(ctx)
}

func (g Gate) progress(r *Report) {
	if g.Progress != nil {
		g.Progress(r.Total, max(r.known, r.Total))
	}
}

// A queue hands jobs from the one that lists them to those that do them.
type queue struct {
	jobs  chan job
	known chan int
	done  <-chan struct{}
}

// put hands over a job; false means that nobody takes any more.
func (q *queue) put(j job) bool {
	select {
	case q.jobs <- j:
		return true
	case <-q.done:
		return false
	}
}

// expect says how many there are, as far as that is known. A later word replaces one that nobody has taken.
func (q *queue) expect(total int) {
	select {
	case <-q.known:
	default:
	}
	q.known <- total
}

// replayAll does all jobs.
func (g Gate) replayAll(ctx context.Context, q *queue, items chan<- Item, stop context.CancelCauseFunc) {
	parallel := g.Parallel
	if parallel < 1 {
		parallel = (3*runtime.GOMAXPROCS(0) + 1) / 2
	}
	p := g.newPayloads(ctx)
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			for j := range q.jobs {
				for next := &j; next != nil; {
					var i Item
					var err error
					if i, next, err = g.do(ctx, p, *next); err != nil {
						stop(err)
						return
					}
					select {
					case items <- i:
					case <-ctx.Done():
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// do looks at one history and says which one continues it. An error ends the replay of all.
func (g Gate) do(ctx context.Context, p *payloads, j job) (i Item, next *job, err error) {
	i = j.item
	h, err := j.history(ctx, p)
	var stopped *stopError
	switch {
	case errors.As(err, &stopped):
		return i, nil, stopped.err
	case err != nil:
		i.Err = err
		return i, nil, nil
	}
	i.Replayed, i.Err = replay.Replayer{Register: g.Register}.Run(h)
	var parts *replay.Mismatch
	i.Fetched = i.Err == nil || errors.Is(i.Err, replay.ErrNotRun) || errors.As(i.Err, &parts)
	if i.Info == nil { // of a listed run the server knows better
		i.Workflow, i.Run, i.Type = i.Replayed.Workflow, i.Replayed.Run, i.Replayed.Type
	}
	if j.next != nil {
		next, err = j.next(ctx, h)
	}
	return i, next, err
}

func (j job) history(ctx context.Context, p *payloads) (*historypb.History, error) {
	if j.err != nil {
		return nil, j.err
	}
	h, err := j.fetch(ctx)
	if err != nil {
		return nil, err
	}
	return h, p.restore(ctx, h)
}

// newPayloads returns what restores payloads; it opens the store once at most.
func (g Gate) newPayloads(ctx context.Context) *payloads {
	return &payloads{data: g.Payloads, open: sync.OnceValues(func() (converter.StorageDriver, error) { return g.openStored(ctx) })}
}

func (g Gate) openStored(ctx context.Context) (converter.StorageDriver, error) {
	if g.Stored == nil {
		return nil, errors.New("no store is named here")
	}
	return g.Stored(ctx)
}
