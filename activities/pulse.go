package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
)

// Progress is what an activity's heartbeat carries. A person sees it in the Web UI, and the next attempt
// gets it: always after a returned error, and as far as it was sent after a death.
type Progress struct {
	Phase string `json:"phase"`
	Bytes int64  `json:"bytes,omitempty"` // of the model's answer so far
	// Troubles counts the errors so far that were tried again, Since is the first one's time.
	Troubles int       `json:"troubles,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Bad counts those troubles that were undecodable answers.
	Bad int `json:"bad,omitempty"`
	// Unsent counts the attempts that may send, from the owner of the dispatch record on, of which it
	// is known that they sent nothing: see toolRun.again.
	Unsent int `json:"unsent,omitempty"`
}

// A pulse is one attempt of an activity as the server sees it. It beats every third of the heartbeat timeout
// from its first moment until it is stopped, so that neither a slow store nor a slow model looks like a dead
// worker, and so that a cancellation arrives. An attempt that is over before that sends nothing: the SDK sends
// the first heartbeat of an attempt at once and waits for the answer, which costs a short activity a third
// of its time, the server a write, and a bill one more action (see docs/BENCH.md).
type pulse struct {
	ctx     context.Context
	attempt int
	started time.Time // of the attempt, by the server's clock
	began   time.Time // the same moment, by this machine's monotonic clock
	wall    time.Time // and by its wall clock; the zero time where nobody looks at it
	beat    func(Progress)
	done    chan struct{}
	wait    sync.WaitGroup
	stops   <-chan struct{} // closed when the worker begins to stop; nil never is
	turn    string          // the workflow's id
	runID   string          // and its run's
	id      string          // of the activity in that run
	token   []byte          // by which the server knows the attempt
	silence time.Duration   // after which the server gives the attempt up; 0 is never

	mu   sync.Mutex
	p    Progress
	last time.Time // when the attempt was last seen to run
	gone bool      // it stood still for so long that the server must have given it up
}

// begin starts the pulse of the activity that ctx belongs to.
func begin(ctx context.Context, phase string) *pulse {
	info := activity.GetInfo(ctx)
	p := &pulse{
		ctx: ctx, attempt: int(info.Attempt), started: info.StartedTime, began: time.Now(),
		done: make(chan struct{}), beat: func(Progress) {},
		stops: activity.GetWorkerStopChannel(ctx), turn: info.WorkflowExecution.ID, runID: info.WorkflowExecution.RunID,
		id: info.ActivityID, token: info.TaskToken,
	}
	p.wall = p.began.Round(0)
	if info.IsLocalActivity {
		return p // nobody listens: a local activity lives and dies with its workflow task
	}
	if p.started.IsZero() {
		p.started = p.began
	}
	p.beat = func(p Progress) { activity.RecordHeartbeat(ctx, p) }
	if activity.HasHeartbeatDetails(ctx) {
		// Details that this build cannot read mean a call that starts to count anew, no more.
		_ = activity.GetHeartbeatDetails(ctx, &p.p)
	}
	p.p.Bytes, p.p.Phase = 0, phase
	if p.attempt > 1 {
		p.send() // what was counted so far is this attempt's too, should it die young
	}
	p.silence, p.last = info.HeartbeatTimeout, p.began
	every := info.HeartbeatTimeout / 3
	if every <= 0 {
		every = DefaultHeartbeat / 3
	}
	p.wait.Go(func() { p.run(every) })
	return p
}

// clock is the server's time, as far as the attempt's start tells it: the clocks of two workers may differ by
// hours, and what one writes down the other decides by.
func (p *pulse) clock() time.Time {
	return p.started.Add(time.Since(p.began)).UTC().Truncate(time.Millisecond)
}

// latest is the latest time that it may be by the server's clock: while a machine stands still its monotonic clock may
// too. What ends at some time has ended when this is after it; what absence proves, clock says.
func (p *pulse) latest() time.Time {
	at := p.clock()
	if p.wall.IsZero() {
		return at
	}
	if wall := p.started.Add(now().Sub(p.wall)).UTC().Truncate(time.Millisecond); wall.After(at) {
		return wall
	}
	return at
}

func (p *pulse) run(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.ran()
			p.send()
		case <-p.done:
			return
		}
	}
}

// stop ends the beating. What was noted last is then sent with the activity's error, if it returns one.
func (p *pulse) stop() {
	close(p.done)
	p.wait.Wait()
}

func (p *pulse) send() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beat(p.p)
}

// note changes the progress and sends it; the SDK sends at most one in 0.8 heartbeat timeouts, and the
// last one with a returned error.
func (p *pulse) note(change func(*Progress)) Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.p)
	p.beat(p.p)
	return p.p
}

// phase says what the attempt is doing; the ticker sends it.
func (p *pulse) phase(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.p.Phase = name
}

// bytes sets the size of the answer so far; the ticker sends it.
func (p *pulse) bytes(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.p.Phase, p.p.Bytes = "receiving the answer", int64(n)
}

func (p *pulse) progress() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.p
}

// trouble counts an error after which the call is tried again.
func (p *pulse) trouble() Progress {
	return p.note(func(p *Progress) {
		p.Troubles++
		if p.Since.IsZero() {
			p.Since = time.Now().UTC().Round(time.Millisecond)
		}
	})
}

// ran notes that the attempt runs, or that it stood still for too long: the machine was frozen, by either of its
// clocks. What the SDK had not sent when it froze is sent at most one timeout later, hence the second.
func (p *pulse) ran() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silence > 0 && !p.last.IsZero() && late(2*p.silence, p.last, p.last.Round(0)) {
		p.gone = true
	}
	p.last = time.Now()
}

// stopping says whether the worker is about to stop. It is not what a user's cancel looks like: see cancelled.
func (p *pulse) stopping() bool {
	select {
	case <-p.stops:
		return true
	default:
		return false
	}
}

// cancelled says whether the workflow asked for an end. The attempt still counts then: the workflow waits for it.
func (p *pulse) cancelled() bool {
	return p.ctx.Err() != nil && temporal.IsCanceledError(context.Cause(p.ctx))
}

// givenUp says whether the server does not wait for this attempt any more: its time is over, its heartbeat was
// refused, its worker is gone, or it stood still.
func (p *pulse) givenUp() bool {
	p.ran()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone || p.ctx.Err() != nil && !p.cancelled()
}

// astray says whether the attempt came to this worker longer after its start than the server waits for a heartbeat, by
// this machine's wall clock and the server's: the machine stood still, and it has been given up; or the clocks differ.
func (p *pulse) astray() bool {
	return p.silence > 0 && !p.wall.IsZero() && p.wall.Sub(p.started) > p.silence
}

// old says whether the attempt runs for longer than the server waits for a heartbeat: it may have been given up.
func (p *pulse) old() bool { return p.silence > 0 && late(p.silence, p.began, p.began.Round(0)) }

// rest sleeps for d. It ends early, with an error to be tried again after, when the attempt ends or its worker
// stops.
func (p *pulse) rest(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	case <-p.stops:
		return errStopping
	}
}

// errStopping is tried again by another worker.
var errStopping = temporal.NewApplicationError("the worker stops: another one goes on", agent.ErrTool)
