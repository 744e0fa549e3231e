package replay

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// A Replayer replays histories against the workflows that Register registers. It is safe for concurrent use.
type Replayer struct {
	// Register registers the workflows in the form that is meant for replays: without the guard that
	// waits for a replay's end. Package workflows imports versioning, so they come as a parameter.
	Register func(worker.WorkflowRegistry)
}

// Replay runs a history, of a closed run or of an open one, and returns nil when this build does all that it
// holds. The error is a [*Mismatch] when they part, or [ErrNotRun]; any other says that the history cannot be
// replayed.
func (r Replayer) Replay(h *historypb.History) error {
	_, err := r.Run(h)
	return err
}

// Run is Replay that also tells what it replayed, as far as it came: with a [*Mismatch] and with [ErrNotRun], too. It
// keeps nothing of the history.
func (r Replayer) Run(h *historypb.History) (out Replayed, err error) {
	if err := check(h); err != nil {
		return Replayed{}, err
	}
	out = describe(h)
	if err := readable(h); err != nil {
		return out, err
	}
	if h = settled(h); h == nil {
		return out, ErrNotRun
	}
	// The SDK trusts histories, and these may be foreign.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("history cannot be replayed, it makes no sense to the SDK: %v", p)
		}
	}()
	w := newWatch(resetOf(h), lastTask(h))
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors:                []interceptor.WorkerInterceptor{w},
		DisableRegistrationAliasing: true,
		// A slow machine is no finding, and the linters keep loops without end out of the code.
		DisableDeadlockDetection: true,
	})
	if err != nil {
		return out, fmt.Errorf("no replayer: %w", err)
	}
	r.Register(replayer)
	stop := replayer.ReplayWorkflowHistoryWithOptions(quiet{}, h, worker.ReplayWorkflowHistoryOptions{
		// The code knows of a reset once it has run after it.
		OriginalExecution: workflow.Execution{ID: out.Workflow, RunID: runOf(h)},
	})
	halfway := stop != nil && !strings.HasPrefix(stop.Error(), otherEnd)
	if !halfway {
		out.views = w.views
	}
	differences := compare(h, w, halfway)
	if stop == nil && len(differences) == 0 {
		return out, nil
	}
	return out, mismatch(h, out, stop, differences, w.last)
}

// otherEnd begins the error of a replay that went all the way and did not end like history (sdk-go
// internal_worker.go). It prints all of a response, and the run's end in our own words says more.
const otherEnd = "replay workflow doesn't return the same result"

// mismatch says where the two part, and which build had written that. The last task is that in which the code asked for
// anything.
func mismatch(h *historypb.History, of Replayed, stop error, differences []Difference, last int64) *Mismatch {
	m := &Mismatch{
		Workflow: of.Workflow, Run: of.Run, Type: of.Type, Change: of.Change, Temporal: stop, Differences: differences,
		reached: last + 1, // the end of a task follows its beginning
	}
	if stop != nil {
		r, _ := explainText(stop.Error(), thisBuild)
		m.found = r.about.find(h)
	}
	m.marker, _ = numberOf(h, of.Type)
	at := int64(len(h.GetEvents()))
	switch found, ok := m.stopped(); {
	case len(differences) > 0:
		at = differences[0].Event
	case ok && found.Event > 0:
		at = found.Event
	}
	m.Build = buildAt(h, at)
	return m
}

// quiet drops what the SDK logs: the error says it.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
