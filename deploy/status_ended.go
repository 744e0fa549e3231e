package deploy

import (
	"context"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
)

// Ended are the turns that ended on a build. Late compensations are counted with them, and not sampled.
type Ended struct {
	Turns    int64                  `json:"turns"`
	Statuses map[agent.Status]int64 `json:"statuses"`
	// Lost are those that ended otherwise than by their own word: terminated, timed out.
	Lost int64 `json:"lost"`

	// What follows is of the latest turns only: Read of Sampled, the rest did not say it.
	Sampled   int   `json:"sampled"`
	Read      int   `json:"read"`
	Micros    int64 `json:"micros"`    // what all of them cost, in millionths
	Steps     int   `json:"steps"`     // of all of them
	Uncertain int   `json:"uncertain"` // effects whose outcome nobody knew when the turn ended
}

// Cost returns what a turn cost on average, in millionths; false if none was read.
func (e *Ended) Cost() (micros int64, ok bool) {
	if e == nil || e.Read == 0 {
		return 0, false
	}
	return (e.Micros + int64(e.Read)/2) / int64(e.Read), true
}

// MeanSteps returns how many steps a turn took on average; false if none was read.
func (e *Ended) MeanSteps() (steps float64, ok bool) {
	if e == nil || e.Read == 0 {
		return 0, false
	}
	return float64(e.Steps) / float64(e.Read), true
}

// ended counts the turns that ended on a build and reads the latest. It returns nil if there was none.
func (f Fleet) ended(ctx context.Context, build string, o StatusOptions) (*Ended, error) {
	query := and(isTurn, f.on(build), hasEnded, "CloseTime >= "+literal(o.After.UTC().Format(time.RFC3339Nano)))
	e := &Ended{Statuses: map[agent.Status]int64{}}
	var err error
	if e.Turns, err = f.count(ctx, query); err != nil || e.Turns == 0 {
		return nil, err
	}
	finals := agent.FinalStatuses()
	numbers := make([]int64, len(finals))
	var asks []counting
	for i, s := range finals {
		asks = append(asks, counting{&numbers[i], and(query, agent.AttributeStatus+" = "+literal(string(s)))})
	}
	if err := f.counts(ctx, asks...); err != nil {
		return nil, err
	}
	e.Lost = e.Turns
	for i, s := range finals {
		e.Statuses[s] = numbers[i]
		e.Lost -= numbers[i]
	}
	e.Lost = max(e.Lost, 0) // turns end while they are counted
	runs, err := f.some(ctx, query, o.Sample)
	if err != nil {
		return nil, err
	}
	return e, f.readEnds(ctx, e, runs)
}

func (f Fleet) readEnds(ctx context.Context, e *Ended, runs []*workflowpb.WorkflowExecutionInfo) error {
	runs = slices.DeleteFunc(runs, func(info *workflowpb.WorkflowExecutionInfo) bool {
		_, _, ok := agent.ParseTurnID(info.GetExecution().GetWorkflowId())
		return !ok
	})
	e.Sampled = len(runs)
	var mu sync.Mutex
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(asksAtOnce)
	for _, info := range runs {
		all.Go(func() error {
			r, ok := f.result(ctx, info.GetExecution())
			mu.Lock()
			defer mu.Unlock()
			if ok {
				e.add(r)
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

func (e *Ended) add(r agent.TurnResult) {
	e.Read++
	e.Micros += r.Usage.Micros
	e.Steps += r.Steps
	for _, x := range r.Effects {
		if x.State == agent.StateUncertain {
			e.Uncertain++
		}
	}
}

// result reads how a turn ended; false if that cannot be found out, as of one that was terminated.
func (f Fleet) result(ctx context.Context, x *commonpb.WorkflowExecution) (agent.TurnResult, bool) {
	it := f.Client.GetWorkflowHistory(ctx, x.GetWorkflowId(), x.GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		if err != nil {
			return agent.TurnResult{}, false
		}
		if r, ok := resultIn(ev, f.payloads()); ok {
			return r, true
		}
	}
	return agent.TurnResult{}, false
}

// resultIn returns the result that an event carries which closes a turn: as its result, or in its failure's details.
func resultIn(ev *historypb.HistoryEvent, c converter.DataConverter) (r agent.TurnResult, ok bool) {
	var details *commonpb.Payloads
	switch {
	case ev.GetWorkflowExecutionCompletedEventAttributes() != nil:
		details = ev.GetWorkflowExecutionCompletedEventAttributes().GetResult()
	case ev.GetWorkflowExecutionFailedEventAttributes() != nil:
		details = ev.GetWorkflowExecutionFailedEventAttributes().GetFailure().GetApplicationFailureInfo().GetDetails()
	case ev.GetWorkflowExecutionCanceledEventAttributes() != nil:
		details = ev.GetWorkflowExecutionCanceledEventAttributes().GetDetails()
	}
	if len(details.GetPayloads()) == 0 || details.GetPayloads()[0] == nil {
		return r, false
	}
	// A result that was too large for the history is in the store, and what stands here names it: no final status.
	err := c.FromPayload(details.GetPayloads()[0], &r)
	return r, err == nil && r.Status.Final()
}
