package deploy

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Status compares the builds of a deployment.
type Status struct {
	Deployment
	Namespace string `json:"namespace"`
	// After is from when on ended turns are counted, Sample how many ended turns and how many open runs of each build
	// were looked at, the latest: what is in Ended and Troubles beyond counts is of those.
	After  time.Time     `json:"after"`
	Sample int           `json:"sample"`
	Rows   []BuildStatus `json:"status"` // in the order of Builds
	// Elsewhere are open runs that no deployment has taken up: of workers without one, or that wait for a build to
	// become current.
	Elsewhere Open `json:"elsewhere"`
}

// A BuildStatus is what a build has to do and how it did.
type BuildStatus struct {
	Build string `json:"build"`
	Open  Open   `json:"open"`
	// Ended is nil if no turn ended on the build in the time asked for.
	Ended    *Ended    `json:"ended,omitempty"`
	Troubles *Troubles `json:"troubles,omitempty"` // nil if no open run was looked at
}

// Open counts open runs. A session is on the build that took its last task: unless it is held there its next one may
// go elsewhere.
type Open struct {
	Sessions int64 `json:"sessions"`
	Turns    int64 `json:"turns"`
	Waiting  int64 `json:"waiting"`  // turns that wait for people
	Held     int64 `json:"held"`     // of all: those that need this build
	Canaries int64 `json:"canaries"` // sessions of those: see [Fleet.Canary]
}

// Runs returns how many they are.
func (o Open) Runs() int64 { return o.Sessions + o.Turns }

// StatusOptions bound the work of [Fleet.Status].
type StatusOptions struct {
	After  time.Time
	Sample int // of each build; 0 counts and looks at nothing
	// Progress, if set, is told how many builds have been looked at; one call at a time.
	Progress func(done, total int)
}

// Status asks the server about all builds. What counting cannot tell is looked at in the latest runs of each build, as
// many as o.Sample says.
func (f Fleet) Status(ctx context.Context, o StatusOptions) (*Status, error) {
	d, err := f.Describe(ctx)
	if err != nil {
		return nil, err
	}
	s := &Status{Deployment: *d, Namespace: f.Namespace, After: o.After, Sample: o.Sample, Rows: make([]BuildStatus, len(d.Builds))}
	if s.Elsewhere, err = f.elsewhere(ctx); err != nil {
		return nil, err
	}
	seen := newTroubleLog(d)
	for i, b := range d.Builds {
		if o.Progress != nil {
			o.Progress(i, len(d.Builds))
		}
		if s.Rows[i], err = f.buildStatus(ctx, b.ID, o, seen); err != nil {
			return nil, err
		}
	}
	for i, b := range d.Builds {
		s.Rows[i].Troubles = seen.of(b.ID)
	}
	return s, nil
}

// A counting is one number to ask the server for.
type counting struct {
	to    *int64
	query string
}

func (f Fleet) counts(ctx context.Context, all ...counting) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(asksAtOnce)
	for _, c := range all {
		g.Go(func() (err error) {
			*c.to, err = f.count(ctx, c.query)
			return err
		})
	}
	return g.Wait()
}

func (f Fleet) elsewhere(ctx context.Context) (o Open, err error) {
	err = f.counts(ctx,
		counting{&o.Sessions, and(isOpen, isSession, isNowhere)},
		counting{&o.Turns, and(isOpen, isTurn, isNowhere)},
		counting{&o.Waiting, and(isOpen, isTurn, isNowhere, waitsPeople)},
	)
	return o, err
}

func (f Fleet) open(ctx context.Context, build string) (o Open, err error) {
	on := and(isOpen, f.on(build))
	all, err := f.count(ctx, on)
	if err != nil || all == 0 {
		return o, err
	}
	err = f.counts(ctx,
		counting{&o.Sessions, and(on, isSession)},
		counting{&o.Turns, and(on, isTurn)},
		counting{&o.Waiting, and(on, isTurn, waitsPeople)},
		counting{&o.Held, and(on, isHeld)},
		counting{&o.Canaries, and(on, isSession, isHeld)},
	)
	return o, err
}

func (f Fleet) buildStatus(ctx context.Context, build string, o StatusOptions, seen *troubleLog) (BuildStatus, error) {
	s := BuildStatus{Build: build}
	var err error
	if s.Open, err = f.open(ctx, build); err != nil {
		return s, err
	}
	if s.Ended, err = f.ended(ctx, build, o); err != nil {
		return s, err
	}
	if s.Open.Runs() == 0 {
		return s, nil
	}
	runs, err := f.some(ctx, and(isOpen, isOurs, f.on(build)), o.Sample)
	if err != nil {
		return s, err
	}
	return s, f.lookForTroubles(ctx, build, runs, seen)
}
