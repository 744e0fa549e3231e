package activities

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// A chronicle is a Temporal service that has nothing but the histories of one workflow's runs, oldest event first.
type chronicle struct {
	workflowservice.WorkflowServiceClient
	t      *testing.T
	latest string
	runs   map[string][]*historypb.HistoryEvent
	broken error
	asked  []string // workflow and run of each request
}

func newChronicle(t *testing.T, w *world) *chronicle {
	c := &chronicle{t: t, latest: "run-1", runs: map[string][]*historypb.HistoryEvent{}}
	w.Client = reader{chronicle: c}
	return c
}

// A reader is a client that can only read a chronicle.
type reader struct {
	client.Client
	chronicle *chronicle
}

func (r reader) WorkflowService() workflowservice.WorkflowServiceClient { return r.chronicle }

// started begins the history of a run, which may continue another.
func (c *chronicle) started(run, previous string) {
	c.runs[run] = append(c.runs[run], &historypb.HistoryEvent{
		EventTime: timestamppb.Now(), Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{ContinuedExecutionRunId: previous},
		},
	})
}

// signal adds one to the history of the latest run.
func (c *chronicle) signal(at time.Time, name string, v any) {
	c.t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		c.t.Fatal(err)
	}
	c.runs[c.latest] = append(c.runs[c.latest], &historypb.HistoryEvent{
		EventTime: timestamppb.New(at), Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name, Input: payloads},
		},
	})
}

func (c *chronicle) GetWorkflowExecutionHistoryReverse(
	_ context.Context, in *workflowservice.GetWorkflowExecutionHistoryReverseRequest, _ ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	run := in.GetExecution().GetRunId()
	c.asked = append(c.asked, in.GetExecution().GetWorkflowId()+" "+run)
	if run == "" {
		run = c.latest
	}
	events, ok := c.runs[run]
	switch {
	case c.broken != nil:
		return nil, c.broken
	case !ok:
		return nil, serviceerror.NewNotFound("no such run")
	}
	end := len(events)
	if n, err := strconv.Atoi(string(in.GetNextPageToken())); err == nil {
		end = n
	}
	begin := max(end-int(in.GetMaximumPageSize()), 0)
	res := &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &historypb.History{}}
	for i := end - 1; i >= begin; i-- {
		res.History.Events = append(res.History.Events, events[i])
	}
	if begin > 0 {
		res.NextPageToken = []byte(strconv.Itoa(begin))
	}
	return res, nil
}

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func decisionOf(id string) agent.ApprovalDecision {
	return agent.ApprovalDecision{ID: id, Digest: agent.DigestOf([]byte(id)), Choice: agent.ChoiceApprove, Approver: "alice"}
}

func TestASignalsTimeIsTheServersAndTheNewestOfEqualOnesCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	c := newChronicle(t, w)
	c.started("run-1", "")
	mine := decisionOf("a#1")
	c.signal(noon, agent.SignalApproval, mine)
	c.signal(noon.Add(time.Minute), agent.SignalApproval, mine)
	for i := range 40 { // more than a page
		c.signal(noon.Add(time.Hour), agent.SignalApproval, decisionOf("b#"+strconv.Itoa(i)))
	}
	c.signal(noon.Add(2*time.Hour), agent.SignalSettle, mine)               // another name
	c.signal(noon.Add(2*time.Hour), agent.SignalApproval, "no object")      // not one at all
	c.signal(noon.Add(2*time.Hour), agent.SignalApproval, []int{1, 2, 3})   // nor this
	c.signal(noon.Add(2*time.Hour), agent.SignalApproval, map[string]any{}) // nor this
	at, why, err := taken(t.Context(), w.Activities, w.snap, signalPlace{workflow: "s1:turn-1", run: "run-1", name: agent.SignalApproval}, approval.ParseDecision, mine)
	if err != nil || why != "" || !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("taken at %s, %q, %v", at, why, err)
	}
	if len(c.asked) != 2 {
		t.Errorf("asked %d times for 46 events", len(c.asked))
	}
}

func TestASignalIsFoundInTheRunThatTookItAndInThoseThatItContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	c := newChronicle(t, w)
	c.started("run-1", "")
	mine := decisionOf("a#1")
	c.signal(noon, agent.SignalApproval, mine)
	c.started("run-2", "run-1")
	c.latest = "run-2"
	for _, run := range []string{"run-1", "run-2", "gone"} {
		at, why, err := taken(t.Context(), w.Activities, w.snap, signalPlace{run: run, name: agent.SignalApproval}, approval.ParseDecision, mine)
		if err != nil || why != "" || !at.Equal(noon) {
			t.Errorf("from %s: taken at %s, %q, %v", run, at, why, err)
		}
	}
}

func TestASignalThatIsNotInTheHistoryIsLookedForAFewTimesAndThenDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	c := newChronicle(t, w)
	c.started("run-1", "")
	c.signal(noon, agent.SignalApproval, decisionOf("b#1"))
	look := func(attempt int) (string, error) {
		_, why, err := taken(t.Context(), w.Activities, w.snap, signalPlace{run: "run-1", name: agent.SignalApproval, attempt: attempt}, approval.ParseDecision, decisionOf("a#1"))
		return why, err
	}
	for n := 1; n < findTries; n++ {
		_, err := look(n)
		wantApp(t, err, agent.ErrInternal, false)
	}
	if why, err := look(findTries); err != nil || !strings.Contains(why, "no such signal") {
		t.Errorf("%q, %v", why, err)
	}
	// A server in trouble says nothing about the signal, however often it was asked.
	c.broken = errors.New("unavailable: " + hush)
	_, err := look(findTries + 5)
	if app := wantApp(t, err, agent.ErrInternal, false); strings.Contains(app.Message(), hush) {
		t.Errorf("the error shows a secret: %v", err)
	}
}

func TestAFloodOfLargeSignalsIsReadInBoundedPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	c := newChronicle(t, w)
	c.started("run-1", "")
	for range mostEvents + 1000 {
		c.signal(noon, "noise", 1)
	}
	if at, err := w.search(t.Context(), signalPlace{run: "run-1"}, func([]byte) bool { return true }); err != nil || !at.IsZero() {
		t.Errorf("%s, %v", at, err)
	}
	if n := len(c.asked); n > mostEvents/largestPage+4 {
		t.Errorf("asked %d times", n)
	}
}
