package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/versioning"
)

// CanaryOptions say which sessions cross first.
type CanaryOptions struct {
	Build   string
	Percent float64 // of the sessions that may cross; 0 takes all back
	Upgrade Upgrades
	// Try replays a session's history before it crosses; nil crosses without. It replays on this program, whose own
	// build id is Binary, so that the build has to be this program.
	Try    Trial
	Binary string
	Force  bool // a build of which no worker polls
	// Progress, if set, is told how many sessions have been looked at; one call at a time.
	Progress func(done, total int)
}

// A Canary is what [Fleet.Canary] did. An error beside it leaves what was done until then.
type Canary struct {
	Deployment string  `json:"deployment"`
	Build      string  `json:"build"`
	Current    string  `json:"current"`
	Percent    float64 `json:"percent"`

	Sessions int    `json:"sessions"` // that may cross or have: open, of the deployment, of agents without pin
	Already  int    `json:"already"`  // of the share, crossed before
	Crossed  int    `json:"crossed"`  // now
	Back     int    `json:"back"`     // taken back, not being of the share any more
	Left     []Left `json:"left,omitempty"`
	Gaps     []Gap  `json:"gaps,omitempty"` // see [Ramp]

	held map[string]bool // run ids, as the index had them at the beginning
}

// Canary lets a share of the sessions that there are cross to a build when they are resumed, before it takes any new
// run. The share is chosen by a hash of the session's id, so that a higher percentage includes a lower one, and each
// session is held on the build by a versioning override of its run; its next turns run there too. The override ends with
// the run, after at most 8 turns: doing it again is how it goes on. Doing it with a lower percentage takes sessions back
// that are not of the share any more; their running turns stay where they are.
func (f Fleet) Canary(ctx context.Context, o CanaryOptions) (*Canary, error) {
	d, err := f.Describe(ctx)
	if err != nil {
		return nil, err
	}
	b, err := d.Build(o.Build)
	if err != nil {
		return nil, err
	}
	if o.Percent > 0 && !o.Force {
		b = f.await(ctx, b)
	}
	c := &Canary{Deployment: f.Deployment, Build: o.Build, Current: d.Current, Percent: o.Percent, Gaps: d.gapsTo(b), held: map[string]bool{}}
	switch {
	case !(o.Percent >= 0 && o.Percent <= 100): // nor no number
		return nil, fmt.Errorf("a share of %v percent: want 0 to 100", o.Percent)
	case o.Percent > 0 && b.ID == d.Current:
		return nil, fmt.Errorf("build %q is current: sessions go to it already when they are resumed", b.ID)
	case o.Percent > 0 && !b.Polls() && !o.Force:
		return nil, &SilentError{Build: b}
	case o.Percent > 0 && o.Try != nil && !b.Is(o.Binary):
		return nil, &OtherBuildError{Build: b.ID, Binary: o.Binary}
	case o.Percent > 0 && !o.Force:
		err = d.apart(b)
	}
	if err != nil {
		return nil, err
	}
	if err := f.takeBack(ctx, d, c); err != nil || o.Percent == 0 {
		return c, err
	}
	return c, f.cross(ctx, o, c)
}

// share is where a session stands among all, in percent: it is of a share of more than that.
func share(session string) float64 {
	sum := sha256.Sum256([]byte(session))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53) * 100
}

// takeBack lets sessions go that were held on the build and are not of the share.
func (f Fleet) takeBack(ctx context.Context, d *Deployment, c *Canary) error {
	var back []*workflowpb.WorkflowExecutionInfo
	err := f.list(ctx, and(isOpen, isSession, f.on(c.Build), isHeld), func(info *workflowpb.WorkflowExecutionInfo) bool {
		c.Sessions++
		c.held[info.GetExecution().GetRunId()] = true
		if share(info.GetExecution().GetWorkflowId()) < c.Percent {
			c.Already++
		} else {
			back = append(back, info)
		}
		return true
	})
	if err != nil {
		return err
	}
	now, _ := d.Build(d.Current) // without a current build there is nothing to compare with
	for _, info := range back {
		if gap := now.cannotTake(info); gap != nil && c.Build != d.Current {
			c.Left = append(c.Left, left(info, LeftNumber, gap))
			continue
		}
		switch err := f.release(ctx, info.GetExecution()); {
		case isNotFound(err): // it ended meanwhile, or continued as a run that is not held
		case isFinal(err) || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err != nil:
			c.Left = append(c.Left, left(info, LeftFailed, err))
			continue
		}
		c.Back++
	}
	return nil
}

// cannotTake says why a build cannot go on with a run, as far as the build says which change numbers it understands and
// the run which one it has. Nil is that nothing speaks against it.
func (b Build) cannotTake(info *workflowpb.WorkflowExecutionInfo) error {
	if b.Table == nil {
		return nil
	}
	kind := info.GetType().GetName()
	n, known := b.Table.Numbers[kind]
	number := changeOf(info)
	if !known || number == 0 || n.Understands(number) {
		return nil
	}
	return fmt.Errorf("it carries number %d of %s, and build %q understands %d to %d", number, kind, b.ID, n.Oldest, n.Newest)
}

// changeOf returns the change number of a run, 0 if none is known.
func changeOf(info *workflowpb.WorkflowExecutionInfo) int {
	var all []string
	attribute(info, attributeChanges, &all)
	prefix := versioning.ChangeID(info.GetType().GetName()) + "-"
	for _, v := range all {
		var n int
		if rest, ok := strings.CutPrefix(v, prefix); ok {
			if _, err := fmt.Sscanf(rest, "%d", &n); err == nil && fmt.Sprint(n) == rest {
				return n
			}
		}
	}
	return 0
}

// cross moves the sessions of the share that have not crossed.
func (f Fleet) cross(ctx context.Context, o CanaryOptions, c *Canary) error {
	var chosen []*workflowpb.WorkflowExecutionInfo
	query := and(isOpen, isSession, isCarried, f.notOn(o.Build))
	err := f.list(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		if c.held[info.GetExecution().GetRunId()] {
			return true
		}
		if l := o.Upgrade.mayCross(info); l != nil {
			if share(info.GetExecution().GetWorkflowId()) < o.Percent {
				c.Left = append(c.Left, *l)
			}
			return true
		}
		c.Sessions++
		if share(info.GetExecution().GetWorkflowId()) < o.Percent {
			chosen = append(chosen, info)
		}
		return true
	})
	if err != nil {
		return err
	}
	total := len(chosen)
	for len(chosen) > 0 {
		if o.Progress != nil {
			o.Progress(total-len(chosen), total)
		}
		some := chosen[:min(len(chosen), checkedAtOnce)]
		chosen = chosen[len(some):]
		if err := f.crossSome(ctx, o, c, some); err != nil {
			return err
		}
	}
	return nil
}

func (f Fleet) crossSome(ctx context.Context, o CanaryOptions, c *Canary, some []*workflowpb.WorkflowExecutionInfo) error {
	var bad map[string]error
	if o.Try != nil {
		var err error
		if bad, err = o.Try(ctx, some); err != nil {
			return err
		}
	}
	for _, info := range some {
		if why := bad[info.GetExecution().GetRunId()]; why != nil {
			c.Left = append(c.Left, left(info, LeftReplay, why))
			continue
		}
		switch err := f.pin(ctx, info.GetExecution(), o.Build); {
		case isNotFound(err): // it ended meanwhile, or continued as another run
			c.Left = append(c.Left, left(info, LeftFailed, errors.New("it continued as another run, or ended, at this moment; do it again")))
		case isFinal(err) || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err != nil:
			c.Left = append(c.Left, left(info, LeftFailed, err))
		default:
			c.Crossed++
		}
	}
	return nil
}
