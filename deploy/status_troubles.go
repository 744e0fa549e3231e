package deploy

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
)

// Troubles are what the open runs of a build that were looked at suffer from.
type Troubles struct {
	Looked int `json:"looked"` // at how many open runs
	// Arriving of the stuck runs are looked at and counted as open on other builds: this one could not take them over.
	Arriving int `json:"arriving,omitempty"`
	// Uncertain counts the effects of open turns whose outcome nobody knows. A session's are those that its ended
	// turns left, on whatever build they were, and are not counted.
	Uncertain int64   `json:"uncertain"`
	Stuck     []Stuck `json:"stuck,omitempty"`
}

// Replays counts the runs of which a worker of the build could not replay the history.
func (t *Troubles) Replays() (n int) {
	if t == nil {
		return 0
	}
	for _, s := range t.Stuck {
		if s.Replay {
			n++
		}
	}
	return n
}

// A Stuck is an open run whose next task fails again and again.
type Stuck struct {
	Workflow string    `json:"workflow"`
	Run      string    `json:"run"`
	Attempt  int       `json:"attempt"`
	Since    time.Time `json:"since,omitzero"`
	// Replay says that the worker's code and the history parted.
	Replay bool   `json:"replay"`
	Why    string `json:"why,omitempty"` // the failure that the history has: the first attempt's
}

// troubleLog collects them by the build that has them: a run that a build cannot take over is still on the one before.
type troubleLog struct {
	mu     sync.Mutex
	builds map[string]*Troubles
}

func newTroubleLog(d *Deployment) *troubleLog {
	t := &troubleLog{builds: map[string]*Troubles{}}
	for _, b := range d.Builds {
		t.builds[b.ID] = &Troubles{}
	}
	return t
}

// of returns nil for a build of which nothing was looked at.
func (t *troubleLog) of(build string) *Troubles {
	if b := t.builds[build]; b.Looked > 0 || len(b.Stuck) > 0 {
		return b
	}
	return nil
}

// lookForTroubles describes runs that are on a build, as the server's index has it.
func (f Fleet) lookForTroubles(ctx context.Context, build string, runs []*workflowpb.WorkflowExecutionInfo, seen *troubleLog) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(asksAtOnce)
	for _, info := range runs {
		all.Go(func() error {
			stuck, on, err := f.stuck(ctx, info.GetExecution())
			if isNotFound(err) {
				return nil // ended meanwhile
			}
			if err != nil {
				return err
			}
			var uncertain int64
			if info.GetType().GetName() == agent.WorkflowTurn {
				attribute(info, agent.AttributeUncertain, &uncertain)
			}
			seen.add(build, cmp.Or(on, build), uncertain, stuck)
			return nil
		})
	}
	return all.Wait()
}

func (t *troubleLog) add(build, failing string, uncertain int64, stuck *Stuck) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.builds[build]
	b.Looked++
	b.Uncertain += uncertain
	if stuck == nil {
		return
	}
	if other := t.builds[failing]; other != nil && other != b {
		b = other
		b.Arriving++
	}
	b.Stuck = append(b.Stuck, *stuck)
}

// stuck says whether a run's next task fails again and again, nil if not, and the build that it goes to.
func (f Fleet) stuck(ctx context.Context, x *commonpb.WorkflowExecution) (*Stuck, string, error) {
	r, err := f.server().describe(ctx, x.GetWorkflowId(), x.GetRunId())
	if err != nil {
		return nil, "", err
	}
	pending := r.GetPendingWorkflowTask()
	if pending.GetAttempt() <= 1 {
		return nil, "", nil
	}
	s := &Stuck{
		Workflow: x.GetWorkflowId(), Run: x.GetRunId(), Attempt: int(pending.GetAttempt()),
		Since: moment(pending.GetOriginalScheduledTime()),
	}
	s.Why, s.Replay = f.lastFailure(ctx, x)
	return s, f.destination(r.GetWorkflowExecutionInfo().GetVersioningInfo()), nil
}

// destination returns the build to which the next task of a run goes, "" if it is none of this deployment.
func (f Fleet) destination(v *workflowpb.WorkflowExecutionVersioningInfo) string {
	for _, at := range []interface {
		GetBuildId() string
		GetDeploymentName() string
	}{
		v.GetVersionTransition().GetDeploymentVersion(),
		v.GetVersioningOverride().GetPinned().GetVersion(),
		v.GetDeploymentVersion(),
	} {
		if at.GetBuildId() != "" && at.GetDeploymentName() == f.Deployment {
			return at.GetBuildId()
		}
	}
	return ""
}

// lastFailure returns why the latest workflow task failed, as far as the history says: only the first attempt's
// failure is written there.
func (f Fleet) lastFailure(ctx context.Context, x *commonpb.WorkflowExecution) (why string, replay bool) {
	h, err := f.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: f.Namespace, Execution: x, MaximumPageSize: 10,
	})
	if err != nil {
		return "", false
	}
	for _, ev := range h.GetHistory().GetEvents() {
		if a := ev.GetWorkflowTaskFailedEventAttributes(); a != nil {
			replay = a.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
			return cmp.Or(strings.TrimSpace(a.GetFailure().GetMessage()), a.GetCause().String()), replay
		}
	}
	return "", false
}
