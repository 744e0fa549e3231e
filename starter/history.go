package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

const (
	pollTimeout  = 70 * time.Second // the server answers an empty long poll after about 20
	retryAtFirst = 200 * time.Millisecond
	retryAtMost  = 5 * time.Second
)

// errStop ends a reading early; it is never returned to a command.
var errStop = errors.New("stop")

// A reading is how the history of one run is read: every event from the first on, in order.
type reading struct {
	workflow, run string
	size          int32 // of a page, 0: the server's
	// follow waits for further events until the run closes.
	follow bool
	each   func(*historypb.HistoryEvent) error
	// idle, if set, is called whenever everything that is there has been read and more may come.
	idle func() error
	// trouble, if set, is told about a lost connection and, with nil, about its return.
	trouble func(error)
}

// read reads a run. It goes on by itself after a lost connection; events are never given twice.
func (c *conn) read(ctx context.Context, r reading) error {
	tail := int64(0) // the last event that there was when the reading began
	if r.follow && r.idle != nil {
		d, err := c.describe(ctx, r.workflow, r.run)
		if err == nil {
			tail = d.GetWorkflowExecutionInfo().GetHistoryLength()
		}
	}
	var token []byte
	seen, delay := int64(0), retryAtFirst
	for {
		page, err := c.page(ctx, r, token)
		if err != nil {
			var stale *serviceerror.InvalidArgument
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.As(err, &stale) && len(token) > 0:
				token = nil // a restarted server does not know it any more; begin again and skip what was seen
				continue
			case !isOutage(err):
				return err
			}
			if delay, err = c.recover(ctx, r, err, delay); err != nil {
				return err
			}
			continue
		}
		if delay > retryAtFirst && r.trouble != nil {
			r.trouble(nil)
		}
		delay = retryAtFirst
		for _, ev := range page.events {
			if ev.GetEventId() <= seen {
				continue
			}
			seen = ev.GetEventId()
			if err := r.each(ev); err != nil {
				return stopped(err)
			}
		}
		if token = page.next; len(token) == 0 {
			return nil
		}
		if r.idle != nil && seen >= tail {
			if err := r.idle(); err != nil {
				return stopped(err)
			}
		}
	}
}

func stopped(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// recover waits before the next attempt and returns how long to wait before the one after it.
func (c *conn) recover(ctx context.Context, r reading, err error, delay time.Duration) (time.Duration, error) {
	if delay == retryAtFirst && r.trouble != nil {
		r.trouble(err)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(delay):
		return min(2*delay, retryAtMost), nil
	}
}

type page struct {
	events []*historypb.HistoryEvent
	next   []byte
}

// page asks for one page of history. It does not go through the SDK's iterator, which hides a lost
// connection for a minute.
func (c *conn) page(ctx context.Context, r reading, token []byte) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	resp, err := c.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace:              c.namespace,
		Execution:              &commonpb.WorkflowExecution{WorkflowId: r.workflow, RunId: r.run},
		WaitNewEvent:           r.follow,
		NextPageToken:          token,
		MaximumPageSize:        r.size,
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
		SkipArchival:           r.follow,
	})
	if err != nil {
		return page{}, err
	}
	events := resp.GetHistory().GetEvents()
	for _, raw := range resp.GetRawHistory() { // what some servers send instead
		var h historypb.History
		if err := proto.Unmarshal(raw.GetData(), &h); err != nil {
			return page{}, fmt.Errorf("history of %q cannot be decoded: %w", r.workflow, err)
		}
		events = append(events, h.GetEvents()...)
	}
	return page{events, resp.GetNextPageToken()}, nil
}

// lineage returns the runs of a workflow that led to its current one, the first of them first, as far as the server
// still has them: a run that was reset, and what came after it, is none of them.
func (c *conn) lineage(ctx context.Context, id string) ([]string, error) {
	d, err := c.describe(ctx, id, "")
	if err != nil {
		return nil, err
	}
	info := d.GetWorkflowExecutionInfo()
	run, first := info.GetExecution().GetRunId(), info.GetFirstRunId()
	runs := []string{run}
	defer func() { slices.Reverse(runs) }()
	for run != first && len(runs) < maxRunsBack {
		var started *historypb.WorkflowExecutionStartedEventAttributes
		err := c.read(ctx, reading{workflow: id, run: run, size: 1, each: func(ev *historypb.HistoryEvent) error {
			started = ev.GetWorkflowExecutionStartedEventAttributes()
			return errStop
		}})
		switch {
		case isNotFound(err) && len(runs) > 1: // beyond the server's retention
			runs = runs[:len(runs)-1]
			return runs, nil
		case err != nil:
			return nil, err
		}
		if run = started.GetContinuedExecutionRunId(); run == "" {
			break
		}
		runs = append(runs, run)
	}
	return runs, nil
}
