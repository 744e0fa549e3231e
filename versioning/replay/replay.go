package replay

import (
	"cmp"
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
func (r Replayer) Replay(h *historypb.History) (err error) {
	if err := check(h); err != nil {
		return err
	}
	if h = settled(h); h == nil {
		return ErrNotRun
	}
	// The SDK trusts histories, and these may be foreign.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("history cannot be replayed, it makes no sense to the SDK: %v", p)
		}
	}()
	w := newWatch(resetOf(h))
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors:                []interceptor.WorkerInterceptor{w},
		DisableRegistrationAliasing: true,
		// A slow machine is no finding, and the linters keep loops without end out of the code.
		DisableDeadlockDetection: true,
	})
	if err != nil {
		return fmt.Errorf("no replayer: %w", err)
	}
	r.Register(replayer)
	m := mismatch(h)
	m.Temporal = replayer.ReplayWorkflowHistoryWithOptions(quiet{}, h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: m.Workflow, RunID: m.Run},
	})
	m.Differences = compare(h, w, m.Temporal != nil && !strings.HasPrefix(m.Temporal.Error(), otherEnd))
	if m.Temporal == nil && len(m.Differences) == 0 {
		return nil
	}
	return m
}

// otherEnd begins the error of a replay that went all the way and did not end like history (sdk-go
// internal_worker.go). It prints all of a response, and the run's end in our own words says more.
const otherEnd = "replay workflow doesn't return the same result"

// mismatch returns one that names the run and nothing else yet.
func mismatch(h *historypb.History) *Mismatch {
	a := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	run := cmp.Or(resetOf(h).run, a.GetOriginalExecutionRunId())
	return &Mismatch{Workflow: a.GetWorkflowId(), Run: run, Type: a.GetWorkflowType().GetName()}
}

// quiet drops what the SDK logs: the error says it.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
