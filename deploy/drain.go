package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// DrainOptions say how a build is drained.
type DrainOptions struct {
	Build string
	// Move, if set, moves runs that are held to the current build.
	Move *Mover
	// Every is how often the server is asked; 0 is 3 seconds.
	Every time.Duration
	// Each, if set, is told what happens; one call at a time.
	Each func(DrainEvent)
}

// A DrainEvent is one thing that happened while a build was drained. One of its members is set.
type DrainEvent struct {
	Began   *Drain // what holds the build at the beginning
	Held    *Held  // a run that holds it and was not there before
	Ended   *Held  // a run that holds it no more
	Moved   *Held
	Left    *Left // a run that was to be moved and stays
	Trouble error // the server did not answer; it is asked again
}

// A Drain is what is left of a build.
type Drain struct {
	Deployment string `json:"deployment"`
	Build      string `json:"build"`
	Current    string `json:"current,omitempty"`
	Workers    int    `json:"workers"` // of the build, that poll
	Drained    bool   `json:"drained"` // no open run needs it
	Moved      int    `json:"moved"`
	Held       []Held `json:"held"` // the open runs that need it, by workflow id
	Left       []Left `json:"left,omitempty"`
}

// A Held is an open run that needs a build, as its search attributes tell of it.
type Held struct {
	Workflow  string    `json:"workflow"`
	Run       string    `json:"run"`
	Type      string    `json:"workflowType,omitempty"`
	Session   string    `json:"session,omitempty"`
	Turn      int       `json:"turn,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Status    string    `json:"status,omitempty"`
	Attention string    `json:"attention,omitempty"`
	Approvals int64     `json:"approvals,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Uncertain int64     `json:"uncertain,omitempty"`
	Started   time.Time `json:"started,omitzero"`
}

func held(info *workflowpb.WorkflowExecutionInfo) Held {
	h := Held{
		Workflow: info.GetExecution().GetWorkflowId(), Run: info.GetExecution().GetRunId(), Type: info.GetType().GetName(),
		Agent: text(info, agent.AttributeAgent), Status: text(info, agent.AttributeStatus),
		Attention: text(info, agent.AttributeAttention), Started: moment(info.GetStartTime()),
	}
	attribute(info, agent.AttributeApprovals, &h.Approvals)
	attribute(info, agent.AttributeExpires, &h.Expires)
	attribute(info, agent.AttributeUncertain, &h.Uncertain)
	switch h.Type {
	case agent.WorkflowSession:
		h.Session = h.Workflow
	case agent.WorkflowTurn:
		var ok bool
		if h.Session, h.Turn, _, ok = agent.ParseUndoID(h.Workflow); !ok {
			h.Session, h.Turn, _ = agent.ParseTurnID(h.Workflow)
		}
	}
	return h
}

// A BusyBuildError reports a build that cannot be drained because it takes new work.
type BusyBuildError struct {
	Build    string
	Standing Standing
}

func (e *BusyBuildError) Error() string {
	if e.Standing == Ramping {
		return fmt.Sprintf("build %q is ramping: it takes new runs; end that first (holdfast deploy ramp %s --percent 0) or promote it", e.Build, e.Build)
	}
	return fmt.Sprintf("build %q is current: it takes new runs; promote another build first", e.Build)
}

// Drain waits until no open run needs a build, or ctx ends: then what is left is in the result, which is no error. It
// fails if the build is or becomes one that takes new work, and if runs are to be moved and cannot be. The index that it asks lags behind by a moment, so that twice
// nothing is what counts. The server's own word, [Drained], comes minutes later.
func (f Fleet) Drain(ctx context.Context, o DrainOptions) (*Drain, error) {
	w := &drain{fleet: f, o: o, seen: map[string]Held{}, moved: map[string]bool{}, left: map[string]Left{}}
	w.o.Every = cmp.Or(o.Every, 3*time.Second)
	if w.o.Each == nil {
		w.o.Each = func(DrainEvent) {}
	}
	w.d = Drain{Deployment: f.Deployment, Build: o.Build, Held: []Held{}}
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	w.o.Each(DrainEvent{Began: w.result()})
	for nothing := 0; ; {
		switch err := w.move(ctx); {
		case isStop(err) && ctx.Err() == nil:
			return w.result(), err
		case err != nil:
			w.o.Each(DrainEvent{Trouble: err})
		}
		if nothing++; len(w.seen) > 0 {
			nothing = 0
		}
		if nothing == 2 {
			w.d.Drained = true
			return w.result(), nil
		}
		select {
		case <-ctx.Done():
			return w.result(), nil
		case <-time.After(w.pause(nothing)):
		}
		switch err := w.look(ctx); {
		case ctx.Err() != nil:
			return w.result(), nil
		case isStop(err):
			return w.result(), err
		case err != nil:
			w.o.Each(DrainEvent{Trouble: err})
			nothing = 0
		}
	}
}

// drain is one draining.
type drain struct {
	fleet Fleet
	o     DrainOptions
	d     Drain
	began bool
	seen  map[string]Held // by run
	infos []*workflowpb.WorkflowExecutionInfo
	moved map[string]bool // by run; the index may not know it yet
	left  map[string]Left // by run
	now   Build           // the current one
}

// pause is short before the look that confirms that nothing is left.
func (w *drain) pause(nothing int) time.Duration {
	if nothing > 0 {
		return min(w.o.Every, time.Second)
	}
	return w.o.Every
}

// look asks what holds the build and tells what has changed.
func (w *drain) look(ctx context.Context) error {
	d, err := w.fleet.describe(ctx, func(b Build) bool { return b.ID == w.o.Build || b.Standing == Current })
	if err != nil {
		return err
	}
	b, err := d.Build(w.o.Build)
	if err != nil && !w.began {
		return err // later, it is that the server has deleted a build that nothing needs
	}
	if b.Standing == Current || b.Standing == Ramping {
		return &BusyBuildError{Build: b.ID, Standing: b.Standing}
	}
	w.d.Current, w.d.Workers = d.Current, b.Workers
	w.now, _ = d.Build(d.Current)
	var infos []*workflowpb.WorkflowExecutionInfo
	now := map[string]Held{}
	err = w.fleet.list(ctx, and(isOpen, w.fleet.on(w.o.Build), isHeld), func(info *workflowpb.WorkflowExecutionInfo) bool {
		if run := info.GetExecution().GetRunId(); !w.moved[run] {
			infos = append(infos, info)
			now[run] = held(info)
		}
		return true
	})
	if err != nil {
		return err
	}
	if w.began {
		w.tell(now)
	}
	w.began, w.seen, w.infos = true, now, infos
	return nil
}

// tell tells what came and what went.
func (w *drain) tell(now map[string]Held) {
	for _, h := range sorted(w.seen) {
		if _, there := now[h.Run]; !there {
			w.o.Each(DrainEvent{Ended: &h})
		}
	}
	for _, h := range sorted(now) {
		if _, there := w.seen[h.Run]; !there {
			w.o.Each(DrainEvent{Held: &h})
		}
	}
}

// result is what is left now.
func (w *drain) result() *Drain {
	w.d.Held, w.d.Left = sorted(w.seen), nil
	for _, h := range w.d.Held {
		if l, ok := w.left[h.Run]; ok {
			w.d.Left = append(w.d.Left, l)
		}
	}
	return &w.d
}

// isStop says whether waiting on makes no sense.
func isStop(err error) bool {
	var (
		busy  *BusyBuildError
		gone  *NoDeploymentError
		other *NotCurrentError
	)
	return errors.As(err, &busy) || errors.As(err, &gone) || errors.As(err, &other) || errors.Is(err, ErrNoDeployments) || isFinal(err)
}

func sorted(all map[string]Held) []Held {
	out := make([]Held, 0, len(all))
	for _, h := range all {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Held) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), strings.Compare(a.Run, b.Run))
	})
	return out
}
