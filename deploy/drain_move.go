package deploy

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// A Mover moves runs to the current build, which has to be this program: each only after its history was replayed here.
type Mover struct {
	// Binary is this program's own build id: [worker.BuildID].
	Binary  string
	Upgrade Upgrades
	Try     Trial
}

// A NotCurrentError reports that runs cannot be moved to the current build by this program, because it is another one and
// cannot say whether their histories replay there.
type NotCurrentError struct {
	Current, Binary string
	Silent          bool // it is, and no worker of it polls
}

func (e *NotCurrentError) Error() string {
	switch {
	case e.Current == "":
		return "no build is current: runs cannot be moved anywhere; promote one first"
	case e.Silent:
		return fmt.Sprintf("no worker of the current build %q polls: runs moved to it would stand still; start one first", e.Current)
	}
	return fmt.Sprintf("this program is build %q and the current build is %q: whether histories replay there, only its own program can tell; move runs with that one", e.Binary, e.Current)
}

func (m *Mover) mayMove(now Build) error {
	switch {
	case now.ID == "" || !now.Is(m.Binary):
		return &NotCurrentError{Current: now.ID, Binary: m.Binary}
	case !now.Polls():
		return &NotCurrentError{Current: now.ID, Silent: true}
	}
	return nil
}

// move moves those runs that it may. A run that cannot be replayed is not tried again; one that is busy is.
func (w *drain) move(ctx context.Context) error {
	m := w.o.Move
	if m == nil || len(w.infos) == 0 {
		return nil
	}
	if err := m.mayMove(w.fleet.await(ctx, w.now)); err != nil {
		return err
	}
	var chosen []*workflowpb.WorkflowExecutionInfo
	for _, info := range w.infos {
		if old, ok := w.left[info.GetExecution().GetRunId()]; ok && !old.again() {
			continue
		}
		l, err := w.stays(ctx, info)
		if err != nil {
			return err
		}
		if l != nil {
			w.leave(*l)
			continue
		}
		chosen = append(chosen, info)
	}
	if len(chosen) == 0 {
		return nil
	}
	bad, err := m.Try(ctx, chosen)
	if err != nil {
		return err
	}
	for _, info := range chosen {
		if why := bad[info.GetExecution().GetRunId()]; why != nil {
			w.leave(left(info, LeftReplay, why))
			continue
		}
		if err := w.moveOne(ctx, info); err != nil {
			return err
		}
	}
	return nil
}

// again says whether the reason may be gone the next time.
func (l Left) again() bool {
	return l.Kind == LeftBusy || l.Kind == LeftFailed || errors.Is(l.err, ErrNotReplayed)
}

func (w *drain) leave(l Left) {
	old, told := w.left[l.Run]
	w.left[l.Run] = l
	if !told || old.Kind != l.Kind {
		w.o.Each(DrainEvent{Left: &l})
	}
}

// stays says why a run is not moved now, nil if it may be.
func (w *drain) stays(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (*Left, error) {
	switch info.GetType().GetName() {
	case agent.WorkflowSession:
		return nil, nil // held by an override that somebody gave it: it is only taken back
	case agent.WorkflowTurn:
	default:
		l := left(info, LeftOther, errors.New("it is no session and no turn; this program cannot replay it"))
		return &l, nil
	}
	if l := w.o.Move.Upgrade.mayCross(info); l != nil {
		return l, nil
	}
	// An attempt on the old build may be about to report; moved now, it would be given up only to be made again.
	busy, err := w.fleet.works(ctx, info.GetExecution())
	switch {
	case isNotFound(err):
		l := left(info, LeftBusy, errors.New("it ended at this moment"))
		return &l, nil
	case err != nil:
		return nil, err
	case busy != "":
		l := left(info, LeftBusy, fmt.Errorf("an attempt of its activity %q is on its way", busy))
		return &l, nil
	}
	return nil, nil
}

// works returns the type of an activity of the run of which an attempt has been started and not ended.
func (f Fleet) works(ctx context.Context, x *commonpb.WorkflowExecution) (string, error) {
	r, err := f.server().describe(ctx, x.GetWorkflowId(), x.GetRunId())
	if err != nil {
		return "", err
	}
	for _, a := range r.GetPendingActivities() {
		if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
			return a.GetActivityType().GetName(), nil
		}
	}
	return "", nil
}

func (w *drain) moveOne(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) error {
	move := w.fleet.carry
	if info.GetType().GetName() == agent.WorkflowSession {
		move = w.fleet.release
	}
	run := info.GetExecution().GetRunId()
	switch err := move(ctx, info.GetExecution()); {
	case isNotFound(err): // it ended meanwhile, or continued as another run, which the next look finds
		return nil
	case isFinal(err) || ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case err != nil:
		w.leave(left(info, LeftFailed, err))
		return nil
	}
	h := w.seen[run]
	w.moved[run] = true
	delete(w.seen, run)
	delete(w.left, run)
	w.d.Moved++
	w.o.Each(DrainEvent{Moved: &h})
	return nil
}
