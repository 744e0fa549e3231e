package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-run/holdfast/versioning/replay"
	"github.com/holdfast-run/holdfast/workflows"
)

// A fakeServer has runs and gives their histories a few events at a time.
type fakeServer struct {
	workflowservice.WorkflowServiceClient

	runs     []*workflowpb.WorkflowExecutionInfo
	history  map[string]*historypb.History // by run id
	mu       sync.Mutex
	queries  []string                                              // that were asked
	describe map[string]*workflowpb.WorkflowExecutionInfo          // runs that no list has
	before   func(ctx context.Context, run string, page int) error // before a page of history
	listing  func() error                                          // before a page of the list
}

const (
	eventsOnPage = 5
	runsOnPage   = 3
)

// A fakeClient is connected to one.
type fakeClient struct {
	client.Client
	server *fakeServer
}

func (c fakeClient) WorkflowService() workflowservice.WorkflowServiceClient { return c.server }

func (f *fakeServer) CountWorkflowExecutions(_ context.Context, in *workflowservice.CountWorkflowExecutionsRequest, _ ...grpc.CallOption) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	f.queries = append(f.queries, in.GetQuery())
	f.mu.Unlock()
	if f.listing != nil {
		if err := f.listing(); err != nil {
			return nil, err
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(len(f.runs))}, nil
}

func (f *fakeServer) ListWorkflowExecutions(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest, _ ...grpc.CallOption) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if f.listing != nil {
		if err := f.listing(); err != nil {
			return nil, err
		}
	}
	from := 0
	if t := in.GetNextPageToken(); len(t) > 0 {
		from = int(t[0])
	}
	to := min(from+runsOnPage, len(f.runs))
	out := &workflowservice.ListWorkflowExecutionsResponse{Executions: f.runs[from:to]}
	if to < len(f.runs) {
		out.NextPageToken = []byte{byte(to)}
	}
	return out, nil
}

func (f *fakeServer) DescribeWorkflowExecution(_ context.Context, in *workflowservice.DescribeWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info := f.describe[in.GetExecution().GetRunId()]
	if info == nil {
		return nil, serviceerror.NewNotFound("no such run")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func (f *fakeServer) GetWorkflowExecutionHistory(ctx context.Context, in *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	page := 0
	if t := in.GetNextPageToken(); len(t) > 0 {
		page = int(t[0])
	}
	run := in.GetExecution().GetRunId()
	if f.before != nil {
		if err := f.before(ctx, run, page); err != nil {
			return nil, err
		}
	}
	h := f.history[run]
	if h == nil {
		return nil, serviceerror.NewNotFound("workflow execution not found")
	}
	from, to := page*eventsOnPage, min((page+1)*eventsOnPage, len(h.GetEvents()))
	out := &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: h.GetEvents()[from:to]}}
	if to < len(h.GetEvents()) {
		out.NextPageToken = []byte{byte(page + 1)}
	}
	return out, nil
}

// add lets the server have a recorded run, and list it.
func (f *fakeServer) add(t testing.TB, recording string, status enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	info := f.hide(t, recording, status)
	f.runs = append(f.runs, info)
	return info
}

// hide lets the server have a run that it does not list.
func (f *fakeServer) hide(t testing.TB, recording string, status enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	h := recordedRun(t, recording)
	a := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if f.history == nil {
		f.history, f.describe = map[string]*historypb.History{}, map[string]*workflowpb.WorkflowExecutionInfo{}
	}
	run := a.GetOriginalExecutionRunId()
	if f.history[run] != nil {
		run = fmt.Sprintf("%s-%d", run, len(f.history)) // one more like it
	}
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: a.GetWorkflowId(), RunId: run}, Type: a.GetWorkflowType(), Status: status,
	}
	f.history[run], f.describe[run] = h, info
	return info
}

func recordedRun(t testing.TB, name string) *historypb.History {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "tests", "histories", "0.2.0", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := replay.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (f *fakeServer) gate() Gate {
	return Gate{Client: fakeClient{server: f}, Namespace: "default", Register: register, patience: time.Nanosecond}
}

func register(r sdkworker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) }

const (
	statusRunning   = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	statusContinued = enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
)

func TestRunsAreListedFetchedPageByPageAndReplayed(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	for _, name := range []string{"turn-approved", "session-two-turns-closed", "turn-done", "session-settles", "turn-declined", "turn-expired", "turn-approved"} {
		f.add(t, name, statusRunning)
	}
	bad := f.add(t, "turn-compensated", statusRunning)
	for _, e := range f.history[bad.GetExecution().GetRunId()].GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "tool" {
			a.ActivityType.Name = "renamed"
		}
	}
	unborn := f.add(t, "turn-blocked", statusRunning)
	x := f.history[unborn.GetExecution().GetRunId()]
	x.Events = x.Events[:2]
	var progress [][2]int
	g := f.gate()
	g.Progress = func(done, total int) { progress = append(progress, [2]int{done, total}) }
	seen := map[string]int{}
	r, err := g.Runs(context.Background(), "", func(i Item) { seen[i.Run]++ })
	if err != nil {
		t.Fatal(err)
	}
	want := []TypeReport{
		{Type: "Session", Runs: 2, Passed: 2, Numbers: map[int]int{2: 2}},
		{Type: "Turn", Runs: 6, Passed: 5, Failed: 1, Numbers: map[int]int{2: 6}},
	}
	if !slices.EqualFunc(r.Types, want, func(a, b TypeReport) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("types %+v, want %+v", r.Types, want)
	}
	if r.OK() || len(r.Failures) != 1 || r.Failures[0].Run != bad.GetExecution().GetRunId() || r.Failures[0].Number != 2 || r.NotRun != 1 || r.Total != 9 || len(r.Unread) != 0 {
		t.Errorf("report %+v", r)
	}
	if len(seen) != 9 {
		t.Errorf("items of %d runs, want 9: %v", len(seen), seen)
	}
	if last := progress[len(progress)-1]; len(progress) != 9 || last != [2]int{9, 9} {
		t.Errorf("progress %v", progress)
	}
}

func TestRunsThatCannotBeFetchedAreUnreadAndNotPassed(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	f.add(t, "turn-done", statusRunning)
	gone := f.add(t, "turn-approved", statusRunning)
	delete(f.history, gone.GetExecution().GetRunId())
	vanishing := f.add(t, "turn-declined", statusRunning)
	damaged := f.add(t, "turn-expired", statusRunning)
	f.history[damaged.GetExecution().GetRunId()].Events[4] = &historypb.HistoryEvent{EventId: 5}
	denied := f.add(t, "turn-blocked", statusRunning)
	f.before = func(_ context.Context, run string, page int) error {
		switch {
		case run == vanishing.GetExecution().GetRunId() && page == 1: // deleted while it is read
			return serviceerror.NewNotFound("workflow execution not found")
		case run == denied.GetExecution().GetRunId():
			return serviceerror.NewPermissionDenied("not yours", "")
		}
		return nil
	}
	items := map[string]Item{}
	r, err := f.gate().Runs(context.Background(), "", func(i Item) { items[i.Run] = i })
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || len(r.Unread) != 4 || r.Replayed() != 1 || r.Total != 5 || len(r.Failures) != 0 {
		t.Errorf("report %+v", r)
	}
	for run, want := range map[string]string{
		gone.GetExecution().GetRunId(): "does not have its history any more", vanishing.GetExecution().GetRunId(): "does not have its history any more",
		damaged.GetExecution().GetRunId(): "of no type that this build knows", denied.GetExecution().GetRunId(): "not yours",
	} {
		at := slices.IndexFunc(r.Unread, func(u Unread) bool { return u.Run == run })
		if at < 0 || !strings.Contains(r.Unread[at].Reason, want) || r.Unread[at].Workflow == "" {
			t.Errorf("run %s: %+v, want %q", run, r.Unread, want)
		}
		if i := items[run]; i.Fetched || i.Err == nil || i.Info == nil {
			t.Errorf("item %+v", i)
		}
	}
}

// What continues as new while the list is read is in no list: the run that was listed is looked at, and the one after it.
func TestARunThatContinuesAsNewMeanwhileIsLookedAtToItsEnd(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	first := f.add(t, "turn-continued.1", statusRunning)
	second := f.hide(t, "turn-continued.2", statusContinued)
	third := f.hide(t, "turn-continued.3", statusRunning)
	next := func(from, to *workflowpb.WorkflowExecutionInfo) {
		h := f.history[from.GetExecution().GetRunId()]
		h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().NewExecutionRunId = to.GetExecution().GetRunId()
	}
	next(first, second)
	next(second, third)
	// A run that had ended when it was listed is looked at alone: the one after it is listed by itself, if it is asked for.
	closed := f.add(t, "session-continued.1", statusContinued)
	var runs []string
	r, err := f.gate().Runs(context.Background(), "", func(i Item) {
		runs = append(runs, i.Run)
		if i.Err != nil || i.Info == nil {
			t.Errorf("%s: %v", i.Run, i.Err)
		}
	})
	if err != nil || !r.OK() {
		t.Fatalf("%v, %+v", err, r)
	}
	var want []string
	for _, i := range []*workflowpb.WorkflowExecutionInfo{first, second, third, closed} {
		want = append(want, i.GetExecution().GetRunId())
	}
	slices.Sort(runs)
	slices.Sort(want)
	if !slices.Equal(runs, want) {
		t.Errorf("looked at %v, want %v", runs, want)
	}
}

func TestAtMostSoManyHistoriesAreInMemory(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{1, 3} {
		f := &fakeServer{}
		for range 20 {
			f.add(t, "turn-done", statusRunning)
		}
		var held, most atomic.Int64
		f.before = func(_ context.Context, _ string, page int) error {
			if page == 0 {
				n := held.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
			}
			return nil
		}
		g := f.gate()
		g.Parallel = parallel
		r, err := g.Runs(context.Background(), "", func(Item) { held.Add(-1) })
		if err != nil || !r.OK() || r.Total != 20 {
			t.Fatalf("%v, %+v", err, r)
		}
		if n := most.Load(); n > int64(parallel)+1 { // one more may begin while an Item is handed over
			t.Errorf("%d histories at once, want %d at most", n, parallel)
		}
	}
}

func TestItemsAreHandedOverOneAtATime(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	for range 20 {
		f.add(t, "turn-done", statusRunning)
	}
	var inside atomic.Int64
	once := func() func() {
		if inside.Add(1) != 1 {
			t.Error("two at once")
		}
		return func() { inside.Add(-1) }
	}
	g := f.gate()
	g.Parallel = 8
	g.Progress = func(int, int) { once()() }
	if _, err := g.Runs(context.Background(), "", func(Item) { once()() }); err != nil {
		t.Fatal(err)
	}
}

func TestAnInterruptStopsAtOnce(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	for range 5 {
		f.add(t, "turn-done", statusRunning)
	}
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	defer close(release)
	f.before = func(context.Context, string, int) error {
		cancel()
		<-release // a codec or a disk that does not answer, and does not listen
		return nil
	}
	done := make(chan error, 1)
	go func() {
		_, err := f.gate().Runs(ctx, "", func(Item) { t.Error("an item after the interrupt") })
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}

func TestAServerThatIsBusyIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	f.add(t, "turn-approved", statusRunning)
	failures := map[int]int{}
	f.before = func(_ context.Context, _ string, page int) error {
		if failures[page]++; failures[page] == 1 {
			return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "slow down")
		}
		return nil
	}
	g := f.gate()
	g.patience = time.Minute
	r, err := g.Runs(context.Background(), "", nil)
	if err != nil || !r.OK() || r.Total != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestAServerThatIsGoneEndsAll(t *testing.T) {
	t.Parallel()
	lost := serviceerror.NewUnavailable("connection refused")
	reading := &fakeServer{before: func(context.Context, string, int) error { return lost }}
	for range 9 {
		reading.add(t, "turn-done", statusRunning)
	}
	for what, f := range map[string]*fakeServer{"reads histories": reading, "lists runs": {listing: func() error { return lost }}} {
		if _, err := f.gate().Runs(context.Background(), "", nil); !errors.Is(err, lost) {
			t.Errorf("while it %s: %v", what, err)
		}
	}
}

func TestNothingOfAHistoryIsKeptInTheReport(t *testing.T) {
	t.Parallel()
	r := newReport()
	h := recordedRun(t, "turn-approved")
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			a.GetInput().GetPayloads()[0].Data = []byte(`{"other":"` + strings.Repeat("x", 1<<20) + `"}`)
		}
	}
	_, err := replay.Replayer{Register: register}.Run(h)
	r.add(Item{Type: "Turn", Err: err})
	size := 0
	for _, f := range r.Failures[0].Findings {
		size += len(f.Wanted + f.Recorded + f.Cause + f.Advice)
	}
	if size > 32<<10 || proto.Size(h) < 1<<20 {
		t.Errorf("%d bytes of findings of a history of %d", size, proto.Size(h))
	}
}
