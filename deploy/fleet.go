package deploy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-run/holdfast/worker"
)

// A Fleet is one worker deployment of a namespace: its builds, and the runs that are on them. It is safe for
// concurrent use.
type Fleet struct {
	Client     client.Client
	Namespace  string
	Deployment string
	// Payloads decodes how turns ended; nil is the SDK's default.
	Payloads converter.DataConverter

	silence time.Duration // 0: see PollsWithin
}

// asksAtOnce bounds how many requests are on their way to the server.
const asksAtOnce = 8

// PollsWithin is how long after its last poll a worker counts as one that polls: a poll waits for work up to a
// minute, and the server notes when one begins and when it is given up (measured on server 1.29.1). A worker that
// was killed counts for as long.
const PollsWithin = 70 * time.Second

// A Standing is what Temporal does with a build.
type Standing string

// The standings.
const (
	Current  Standing = "current"  // takes new runs and the next task of every session
	Ramping  Standing = "ramping"  // takes a share of them
	Draining Standing = "draining" // took them once, and holds runs that began on it
	Drained  Standing = "drained"  // took them once, and holds none any more, as far as the server has looked
	Inactive Standing = "inactive" // has never taken any
)

// A Deployment is a worker deployment as the server describes it.
type Deployment struct {
	Name    string  `json:"deployment"`
	Current string  `json:"current,omitempty"`
	Ramping string  `json:"ramping,omitempty"`
	Percent float32 `json:"percent,omitempty"` // of the ramping build
	Builds  []Build `json:"builds"`            // in the order of the standings, the latest first

	token []byte // a change that carries it fails if somebody else changed something meanwhile
}

// A Build is one version of a deployment.
type Build struct {
	ID       string    `json:"build"`
	Standing Standing  `json:"standing"`
	Since    time.Time `json:"since,omitzero"`    // it has had its standing
	Percent  float32   `json:"percent,omitempty"` // of the ramp
	// Workers are those that poll; see [Build.Polls].
	Workers int       `json:"workers"`
	Polled  time.Time `json:"polled,omitzero"` // last, zero if the server remembers no poll
	// Table is what the build says of itself: see [worker.Publish]. Nil when it says nothing.
	Table *worker.Table `json:"changes,omitempty"`

	queues []string
}

// Polls says whether a worker of the build has polled within the last 70 seconds: the server does not know it
// better.
func (b Build) Polls() bool { return b.Workers > 0 }

// Build returns the build of that id, or a [*NoBuildError].
func (d *Deployment) Build(id string) (Build, error) {
	known := make([]string, 0, len(d.Builds))
	for _, b := range d.Builds {
		if b.ID == id {
			return b, nil
		}
		known = append(known, b.ID)
	}
	return Build{}, &NoBuildError{Deployment: d.Name, Build: id, Known: known}
}

// Describe asks the server for the deployment and its builds. It fails with a [*NoDeploymentError] or with
// [ErrNoDeployments]. The server asks workflows of its own, which takes 10 ms and now and then 5 s (measured on 1.29.1).
func (f Fleet) Describe(ctx context.Context) (*Deployment, error) { return f.describe(ctx, nil) }

// describe asks about those builds in particular for which a function says so; nil is about all. Of the others it says
// where they stand.
func (f Fleet) describe(ctx context.Context, wanted func(Build) bool) (*Deployment, error) {
	for attempt := 1; ; attempt++ {
		d, err := f.look(ctx, wanted)
		var none *NoDeploymentError
		if !errors.As(err, &none) || !slices.Contains(none.Known, f.Deployment) || attempt == newTries {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(newAgain):
		}
	}
}

// One that has just come is listed before it, or its builds, can be described.
const (
	newTries = 10
	newAgain = 200 * time.Millisecond
)

func (f Fleet) look(ctx context.Context, wanted func(Build) bool) (*Deployment, error) {
	r, err := ask(ctx, 0, func(ctx context.Context) (*workflowservice.DescribeWorkerDeploymentResponse, error) {
		return f.Client.WorkflowService().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: f.Namespace, DeploymentName: f.Deployment,
		})
	})
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	info := r.GetWorkerDeploymentInfo()
	routing := info.GetRoutingConfig()
	d := &Deployment{
		Name: f.Deployment, Current: routing.GetCurrentDeploymentVersion().GetBuildId(),
		Ramping: routing.GetRampingDeploymentVersion().GetBuildId(), token: r.GetConflictToken(),
	}
	if d.Ramping != "" {
		d.Percent = routing.GetRampingVersionPercentage()
	}
	for _, s := range info.GetVersionSummaries() {
		d.Builds = append(d.Builds, d.build(s))
	}
	if err := f.lookAtBuilds(ctx, d.Builds, wanted); err != nil {
		return nil, f.explain(ctx, err)
	}
	slices.SortFunc(d.Builds, func(a, b Build) int {
		order := []Standing{Current, Ramping, Draining, Inactive, Drained}
		return cmp.Or(slices.Index(order, a.Standing)-slices.Index(order, b.Standing), b.Since.Compare(a.Since), strings.Compare(a.ID, b.ID))
	})
	return d, nil
}

// Deployments returns the names of the namespace's worker deployments, the first few.
func (f Fleet) Deployments(ctx context.Context) ([]string, error) {
	r, err := f.Client.WorkflowService().ListWorkerDeployments(ctx, &workflowservice.ListWorkerDeploymentsRequest{
		Namespace: f.Namespace, PageSize: listedNames + 1,
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range r.GetWorkerDeployments() {
		names = append(names, d.GetName())
	}
	slices.Sort(names)
	return slices.Compact(names), nil // the server lists one that has just come more than once
}

func (d *Deployment) build(s *deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary) Build {
	b := Build{ID: s.GetDeploymentVersion().GetBuildId(), Standing: Inactive, Since: moment(s.GetCreateTime())}
	drainage := s.GetDrainageInfo()
	switch {
	case b.ID == d.Current:
		b.Standing, b.Since = Current, moment(s.GetCurrentSinceTime())
	case b.ID == d.Ramping:
		b.Standing, b.Since, b.Percent = Ramping, moment(s.GetRampingSinceTime()), d.Percent
	case drainage.GetStatus() == enumspb.VERSION_DRAINAGE_STATUS_DRAINING:
		b.Standing, b.Since = Draining, moment(drainage.GetLastChangedTime())
	case drainage.GetStatus() == enumspb.VERSION_DRAINAGE_STATUS_DRAINED:
		b.Standing, b.Since = Drained, moment(drainage.GetLastChangedTime())
	}
	return b
}

func moment(ts *timestamppb.Timestamp) time.Time {
	if ts == nil {
		return time.Time{}
	}
	return ts.AsTime()
}

// lookAtBuilds adds to builds what only their own descriptions and their task queues say.
func (f Fleet) lookAtBuilds(ctx context.Context, builds []Build, wanted func(Build) bool) error {
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(asksAtOnce)
	for i := range builds {
		if wanted == nil || wanted(builds[i]) {
			all.Go(func() error { return f.lookAtBuild(within, &builds[i]) })
		}
	}
	if err := all.Wait(); err != nil {
		return err
	}
	var queues []string
	for _, b := range builds {
		queues = append(queues, b.queues...)
	}
	slices.Sort(queues)
	for _, queue := range slices.Compact(queues) {
		if err := f.lookAtPollers(ctx, queue, builds); err != nil {
			return err
		}
	}
	return nil
}

// lookAtBuild asks for one build's own description. The server says now and then of one that has just come that it is not
// there, although the deployment lists it and it was there before (seen on 1.29.1); later, that it was deleted.
func (f Fleet) lookAtBuild(ctx context.Context, b *Build) error {
	r, err := f.version(ctx, b.ID)
	for begun := time.Now(); isNotFound(err) && ctx.Err() == nil && time.Since(begun) < secondLook; {
		select {
		case <-ctx.Done():
		case <-time.After(secondLook / 30):
		}
		r, err = f.version(ctx, b.ID)
	}
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	info := r.GetWorkerDeploymentVersionInfo()
	b.Table = worker.ReadTable(f.payloads(), info.GetMetadata().GetEntries()[worker.TableEntry])
	for _, q := range info.GetTaskQueueInfos() {
		if q.GetType() == enumspb.TASK_QUEUE_TYPE_WORKFLOW {
			b.queues = append(b.queues, q.GetName())
		}
	}
	return nil
}

func (f Fleet) version(ctx context.Context, build string) (*workflowservice.DescribeWorkerDeploymentVersionResponse, error) {
	return ask(ctx, 0, func(ctx context.Context) (*workflowservice.DescribeWorkerDeploymentVersionResponse, error) {
		return f.Client.WorkflowService().DescribeWorkerDeploymentVersion(ctx, &workflowservice.DescribeWorkerDeploymentVersionRequest{
			Namespace:         f.Namespace,
			DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{DeploymentName: f.Deployment, BuildId: build},
		})
	})
}

// lookAtPollers counts the workers that poll a task queue, by the build that they are.
func (f Fleet) lookAtPollers(ctx context.Context, queue string, builds []Build) error {
	r, err := ask(ctx, 0, func(ctx context.Context) (*workflowservice.DescribeTaskQueueResponse, error) {
		return f.Client.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	})
	if err != nil {
		return err
	}
	for _, p := range r.GetPollers() {
		version := p.GetDeploymentOptions()
		if version.GetDeploymentName() != f.Deployment {
			continue
		}
		for i := range builds {
			if b := &builds[i]; b.ID == version.GetBuildId() {
				last := moment(p.GetLastAccessTime())
				if time.Since(last) < cmp.Or(f.silence, PollsWithin) {
					b.Workers++
				}
				b.Polled = later(b.Polled, last)
			}
		}
	}
	return nil
}

// secondLook is for how long a build that seems to be silent, or gone, is looked at again. Where a task queue has just
// moved inside the server, nobody is known to poll it until the workers have asked anew.
const secondLook = 3 * time.Second

// await returns the build as it is when a worker of it polls, or as it is after a while.
func (f Fleet) await(ctx context.Context, b Build) Build {
	for begun := time.Now(); !b.Polls() && time.Since(begun) < secondLook; {
		select {
		case <-ctx.Done():
			return b
		case <-time.After(secondLook / 6):
		}
		again := []Build{b}
		again[0].queues = nil               // of one that has just come, the server may not know them yet
		_ = f.lookAtBuilds(ctx, again, nil) // what it cannot tell now, the next look may
		b = again[0]
	}
	return b
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
