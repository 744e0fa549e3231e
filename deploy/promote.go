package deploy

import (
	"context"
	"errors"
	"fmt"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

// A Promotion is what [Fleet.Promote] did, and what it means.
type Promotion struct {
	Deployment string `json:"deployment"`
	Build      string `json:"build"`
	Before     string `json:"before,omitempty"`  // the build that was current
	Already    bool   `json:"already,omitempty"` // it was current before
	RampEnded  bool   `json:"rampEnded,omitempty"`
	// Ramping is another build that still takes a share.
	Ramping string `json:"ramping,omitempty"`
	Back    int    `json:"back"` // overrides of a canary that were taken back: their sessions move on by themselves again
	Left    []Left `json:"left,omitempty"`
	// Gaps are change numbers that new runs take from now on and the build before does not understand: it cannot be
	// made current again without losing hold of them.
	Gaps []Gap `json:"gaps,omitempty"`
	// Sessions are the open ones that go on with the build when they are resumed.
	Sessions int64 `json:"sessions"`
	// Held are the open runs that stay on other builds until they end.
	Held []HeldBy `json:"held,omitempty"`
}

// A HeldBy counts the open runs that need a build.
type HeldBy struct {
	Build   string `json:"build"`
	Runs    int64  `json:"runs"`
	Waiting int64  `json:"waiting"` // of them, turns that wait for people
	Workers int    `json:"workers"` // of the build, that poll
}

// A CrossedError reports open runs that a build cannot go on with: they carry a change number that it does not
// understand, and would go to it with their next task.
type CrossedError struct {
	Build string
	Found []CrossedRuns
}

// CrossedRuns are the runs of one type and number.
type CrossedRuns struct {
	Type   string
	Number int
	Runs   int64
}

func (e *CrossedError) Error() string {
	text := ""
	for i, c := range e.Found {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d of type %s with number %d", c.Runs, c.Type, c.Number)
	}
	return fmt.Sprintf("build %q does not understand the change numbers of open runs that would go to it (%s): their tasks would fail until a build that does is current again; "+
		"roll forward with a build that understands them, or use --force", e.Build, text)
}

// Promote makes a build current: from now on it takes new runs and the next task of every session that is not held
// elsewhere. It ends the build's ramp and takes back the overrides with which a canary held sessions on it. Doing it again
// finishes what an interruption left undone. Force makes a build current of which no worker polls, that lacks task queues
// of the one before, or that cannot go on with open runs.
func (f Fleet) Promote(ctx context.Context, build string, force bool) (*Promotion, error) {
	d, err := f.Describe(ctx)
	if err != nil {
		return nil, err
	}
	b, err := d.Build(build)
	if err != nil && !force {
		return nil, err
	}
	b.ID = build
	p := &Promotion{Deployment: f.Deployment, Build: build, Before: d.Current, Already: d.Current == build, Gaps: d.gapsTo(b)}
	if !p.Already {
		if err := f.mayPromote(ctx, d, b, force); err != nil {
			return nil, err
		}
		err := f.change(ctx, d.token, func(token []byte) error {
			_, err := f.Client.WorkerDeploymentClient().GetHandle(f.Deployment).SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
				BuildID: build, ConflictToken: token, IgnoreMissingTaskQueues: force, AllowNoPollers: force,
			})
			return err
		}, func(d *Deployment) bool { return d.Current == build })
		if err != nil {
			return nil, err
		}
	}
	p.RampEnded = d.Ramping == build // the server ends it by itself
	if d.Ramping != build {
		p.Ramping = d.Ramping
	}
	if err := f.letGo(ctx, p); err != nil {
		return p, err
	}
	return p, f.consequences(ctx, d, p)
}

// mayPromote says why a build should not become current.
func (f Fleet) mayPromote(ctx context.Context, d *Deployment, b Build, force bool) error {
	if force {
		return nil
	}
	if b = f.await(ctx, b); !b.Polls() {
		return &SilentError{Build: b}
	}
	if err := d.behind(b); err != nil {
		return err
	}
	e := &CrossedError{Build: b.ID}
	for _, kind := range versioning.Types() {
		for _, number := range d.foreign(b, kind) {
			n, err := f.count(ctx, and(isOpen, f.within(), isCarried, f.notOn(b.ID), "WorkflowType = "+literal(kind),
				fmt.Sprintf("%s = '%s-%d'", attributeChanges, versioning.ChangeID(kind), number)))
			if err != nil {
				return err
			}
			if n > 0 {
				e.Found = append(e.Found, CrossedRuns{Type: kind, Number: number, Runs: n})
			}
		}
	}
	if len(e.Found) > 0 {
		return e
	}
	return nil
}

// foreign lists the change numbers that any build of the deployment, or this program, knows and b does not.
func (d *Deployment) foreign(b Build, kind string) []int {
	if b.Table == nil || b.Table.Numbers[kind].Newest == 0 {
		return nil
	}
	own := worker.OwnTable()
	most := own.Numbers[kind].Newest
	for _, other := range d.Builds {
		if other.Table != nil {
			most = max(most, other.Table.Numbers[kind].Newest)
		}
	}
	var out []int
	for number := 1; number <= min(most, maxNumber); number++ {
		if !b.Table.Numbers[kind].Understands(number) {
			out = append(out, number)
		}
	}
	return out
}

// maxNumber bounds what a foreign table can make us ask for.
const maxNumber = 100

// letGo takes back the overrides that hold sessions on the build.
func (f Fleet) letGo(ctx context.Context, p *Promotion) error {
	var held []*workflowpb.WorkflowExecutionInfo
	err := f.list(ctx, and(isOpen, isSession, f.on(p.Build), isHeld), func(info *workflowpb.WorkflowExecutionInfo) bool {
		held = append(held, info)
		return true
	})
	if err != nil {
		return err
	}
	for _, info := range held {
		switch err := f.release(ctx, info.GetExecution()); {
		case isNotFound(err):
		case isFinal(err) || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err != nil:
			p.Left = append(p.Left, left(info, LeftFailed, err))
		default:
			p.Back++
		}
	}
	return nil
}

// consequences counts what goes on with the build and what stays on others.
func (f Fleet) consequences(ctx context.Context, d *Deployment, p *Promotion) (err error) {
	if p.Sessions, err = f.count(ctx, and(isOpen, isSession, f.within(), isCarried)); err != nil {
		return err
	}
	p.Sessions += int64(p.Back) // whose search attributes may not say so yet
	for _, b := range d.Builds {
		if b.ID == p.Build {
			continue
		}
		h := HeldBy{Build: b.ID, Workers: b.Workers}
		on := and(isOpen, f.on(b.ID), isHeld)
		if err := f.counts(ctx, counting{&h.Runs, on}, counting{&h.Waiting, and(on, isTurn, waitsPeople)}); err != nil {
			return err
		}
		if h.Runs > 0 {
			p.Held = append(p.Held, h)
		}
	}
	return nil
}
