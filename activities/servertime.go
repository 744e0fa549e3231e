package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"github.com/holdfast-run/holdfast/agent"
)

// Bounds of looking for a signal in a history. It is among the last events, unless a flood came after it: a run
// takes 10,000 signals.
const (
	firstPage   = 16 // events; a signal may have a megabyte
	largestPage = 256
	mostEvents  = 15_000
	// findTries is how often a signal that is not there is looked for: what the workflow has seen is in the history.
	findTries = 3
)

// A signalPlace is where a signal was taken, and which attempt it is to find it.
type signalPlace struct {
	namespace, workflow, run, name string
	attempt                        int
}

// signalOf is where a signal to the run of the activity's own workflow was taken.
func signalOf(ctx context.Context, run, name string) signalPlace {
	info := activity.GetInfo(ctx)
	return signalPlace{
		namespace: info.Namespace, workflow: info.WorkflowExecution.ID, run: run, name: name, attempt: int(info.Attempt),
	}
}

// taken returns when the server took a signal, newest first: the SDK does not hand a signal's time over, its sender
// may claim any, and after an outage a decision and the expiry that it missed arrive together. parse reads a
// payload as the workflow did, and the signal is the one that says exactly what want does. why is not empty when
// there is no such signal; then the word does not count.
func taken[T any](
	ctx context.Context, a *Activities, s *Snapshot, in signalPlace, parse func([]byte) (T, error), want T,
) (at time.Time, why string, err error) {
	wanted, err := json.Marshal(want)
	if err != nil {
		return at, "", s.final(agent.ErrInternal, "the signal %q has no JSON form: %v", in.name, err)
	}
	match := func(payload []byte) bool {
		v, err := parse(payload)
		if err != nil {
			return false
		}
		b, err := json.Marshal(v)
		return err == nil && bytes.Equal(b, wanted)
	}
	at, err = a.search(ctx, in, match)
	var gone *serviceerror.NotFound
	switch {
	case err != nil && !errors.As(err, &gone):
		return at, "", s.retryable(agent.ErrInternal, 0, "looking for the signal %q in the history of %q: %v", in.name, in.workflow, err)
	case !at.IsZero():
		return at, "", nil
	case in.attempt < findTries:
		return at, "", s.retryable(agent.ErrInternal, backoff(1), "the history of %q has no such signal %q (yet)", in.workflow, in.name)
	}
	return at, "the server's history has no such signal, so nobody can say when it came; send it again", nil
}

// search reads a run's history from its end, and those of the runs that it continues, for the signal that matches.
// It returns the zero time if there is none. A run that the workflow does not have is its latest.
func (a *Activities) search(ctx context.Context, in signalPlace, match func(payload []byte) bool) (time.Time, error) {
	req := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace:       in.namespace,
		Execution:       &commonpb.WorkflowExecution{WorkflowId: in.workflow, RunId: in.run},
		MaximumPageSize: firstPage,
	}
	for seen := 0; seen < mostEvents; {
		res, err := a.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, req)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && seen == 0 && req.Execution.GetRunId() != "" {
			req.Execution.RunId = "" // the run is gone, or another workflow's: the latest continues it
			continue
		}
		if err != nil {
			return time.Time{}, err
		}
		var previous string
		for _, e := range res.GetHistory().GetEvents() {
			if at, ok := signalled(e, in.name, match); ok {
				return at, nil
			}
			previous = e.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
			seen++
		}
		req.NextPageToken = res.GetNextPageToken()
		req.MaximumPageSize = min(4*req.GetMaximumPageSize(), largestPage)
		if len(req.GetNextPageToken()) > 0 {
			continue
		}
		if previous == "" {
			break
		}
		req.Execution.RunId = previous
	}
	return time.Time{}, nil
}

// signalled returns the time of an event that is the signal.
func signalled(e *historypb.HistoryEvent, name string, match func([]byte) bool) (time.Time, bool) {
	attr := e.GetWorkflowExecutionSignaledEventAttributes()
	if attr == nil || attr.GetSignalName() != name || len(attr.GetInput().GetPayloads()) == 0 {
		return time.Time{}, false
	}
	data := attr.GetInput().GetPayloads()[0].GetData()
	if len(data) > agent.MaxDecision || !match(data) {
		return time.Time{}, false
	}
	return e.GetEventTime().AsTime(), true
}
