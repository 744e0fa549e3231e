package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/worker"
)

// A placement is the build of a worker deployment that a run is bound to; the zero value is none.
type placement struct {
	deployment, build string
	pinned            bool // it goes on with this build only
}

// placementOf returns where a run's tasks go: an operator's override counts before what the run itself has.
func placementOf(info *workflowpb.WorkflowExecutionInfo) placement {
	v := info.GetVersioningInfo()
	p := placementAt(v.GetDeploymentVersion(), v.GetBehavior() == enumspb.VERSIONING_BEHAVIOR_PINNED)
	switch o := v.GetVersioningOverride(); {
	case o.GetPinned().GetVersion() != nil:
		return placementAt(o.GetPinned().GetVersion(), true)
	case o.GetAutoUpgrade():
		p.pinned = false
	}
	return p
}

func placementAt(v *deploymentpb.WorkerDeploymentVersion, pinned bool) placement {
	return placement{v.GetDeploymentName(), v.GetBuildId(), pinned && v.GetBuildId() != ""}
}

// version is the build with the name of its deployment, as Temporal's search attributes have it.
func (p placement) version() string {
	if p.deployment == "" {
		return ""
	}
	return p.deployment + ":" + p.build
}

// behavior is Temporal's word for what the run does when another build becomes the current one.
func (p placement) behavior() string {
	switch {
	case p.pinned:
		return "pinned"
	case p.deployment != "":
		return "auto_upgrade"
	}
	return ""
}

func (p placement) String() string {
	return fmt.Sprintf("build %q of deployment %q", line(p.build, 64), line(p.deployment, 64))
}

// desk names the workers that answer for a run: those of its build, if it is pinned, or any on its task queue.
func desk(info *workflowpb.WorkflowExecutionInfo) string {
	name := fmt.Sprintf("task queue %q", info.GetTaskQueue())
	if p := placementOf(info); p.pinned {
		name += " for " + p.String()
	}
	return name
}

// pollers are who asks a task queue for work. The server remembers a poll for five minutes.
type pollers struct {
	last   map[string]time.Time // the latest poll by version; "" of workers that are no build of a deployment
	routed []placement          // the current and the ramping build, which take what is not pinned
	newest placement            // of a deployment that polls, when none is routed to
}

// pollers asks the server who polls a task queue, for either kind of task: a worker that is busy with activities
// still asks for the tasks of workflows.
func (c *conn) pollers(ctx context.Context, queue string) (*pollers, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	p := &pollers{last: map[string]time.Time{}}
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		d, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: c.namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, TaskQueueType: kind,
		})
		if err != nil {
			return nil, err
		}
		p.add(d)
	}
	return p, nil
}

func (p *pollers) add(d *workflowservice.DescribeTaskQueueResponse) {
	for _, x := range d.GetPollers() {
		o := x.GetDeploymentOptions()
		at := placement{}
		if o.GetWorkerVersioningMode() == enumspb.WORKER_VERSIONING_MODE_VERSIONED {
			at = placement{deployment: o.GetDeploymentName(), build: o.GetBuildId()}
		}
		if t := x.GetLastAccessTime().AsTime(); t.After(p.last[at.version()]) {
			p.last[at.version()] = t
			if at.deployment != "" {
				p.newest = at
			}
		}
	}
	v := d.GetVersioningInfo()
	for _, to := range []*deploymentpb.WorkerDeploymentVersion{v.GetCurrentDeploymentVersion(), v.GetRampingDeploymentVersion()} {
		if at := placementAt(to, false); at.build != "" && !slices.Contains(p.routed, at) {
			p.routed = append(p.routed, at)
		}
	}
}

// missing returns a build that a run's tasks go to and that nobody polled for within a time, with the latest poll.
func (p *pollers) missing(run placement, now time.Time, within time.Duration) (at placement, last time.Time, ok bool) {
	to := p.routed
	if run.pinned {
		to = []placement{run}
	}
	for _, at := range to {
		if last := p.last[at.version()]; now.Sub(last) > within {
			return at, last, true
		}
	}
	return placement{}, time.Time{}, false
}

// unrouted says whether a run's tasks go nowhere: only builds of a deployment poll, and none of them is the current one.
func (p *pollers) unrouted(run placement, now time.Time) bool {
	return !run.pinned && len(p.routed) == 0 && p.newest.deployment != "" && now.Sub(p.last[""]) > deploy.PollsWithin
}

// latest returns the latest poll of all.
func (p *pollers) latest() (last time.Time) {
	for _, t := range p.last {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// workerCommand starts a worker of a build.
func workerCommand(at placement) string {
	return fmt.Sprintf("holdfast worker --deployment %s --build-id %s", word(at.deployment), word(at.build))
}

// replaceAdvice says what to do about a build that a run goes on with and that nobody polls for; without a run, about one
// that takes what begins.
func (c *conn) replaceAdvice(ctx context.Context, at placement, info *workflowpb.WorkflowExecutionInfo) string {
	serial := int64(0)
	if placementOf(info).pinned {
		serial = c.openedBy(ctx, info)
	}
	return c.advice(at, info, serial)
}

// advice is replaceAdvice for a run that was opened by a configuration of this serial, 0 when that is not known.
func (c *conn) advice(at placement, info *workflowpb.WorkflowExecutionInfo, serial int64) string {
	if !placementOf(info).pinned {
		return fmt.Sprintf("start one of that build: %s; or make another build the current one: %s",
			workerCommand(at), promoteCommand(placement{deployment: at.deployment, build: "BUILD"}))
	}
	since := ""
	if serial > 0 {
		since = fmt.Sprintf(", serial %d or later", serial)
	}
	text := fmt.Sprintf("start one of that build, with a holdfast.yaml that still declares its tools as they were%s: %s", since, workerCommand(at))
	if name := c.attribute(info, agent.AttributeAgent); c.pins != nil && c.pins(name) {
		return text + fmt.Sprintf("; no other build goes on with it, for agent %q has upgrade: pin", line(name, 64))
	}
	return text + fmt.Sprintf("; or let another build go on: holdfast deploy drain %s --move --deployment %s", word(at.build), word(at.deployment))
}

// pins reads once, when it is asked, which agents the file at hand pins: where it cannot be read, none.
func (a *App) pins() func(string) bool {
	load := sync.OnceValue(func() map[string]worker.Agent {
		cfg, err := worker.LoadPolicy(a.config)
		if err != nil {
			return nil
		}
		return cfg.Agents
	})
	return func(name string) bool { return load()[name].Upgrade == agent.UpgradePin }
}

// openedBy returns the serial of the configuration that a turn was opened by, 0 when its history does not say.
func (c *conn) openedBy(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) int64 {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	log := newTurnLog(decoder{c.payloads}, 0)
	_ = c.read(ctx, reading{workflow: info.GetExecution().GetWorkflowId(), run: firstRunOf(info), each: func(ev *historypb.HistoryEvent) error {
		if log.add(ev); log.opened != nil {
			return errStop
		}
		return nil
	}}) // what was read until then says what it says
	if log.opened == nil {
		return 0
	}
	return log.opened.Serial
}

func promoteCommand(at placement) string {
	return fmt.Sprintf("holdfast deploy promote %s --deployment %s", word(at.build), word(at.deployment))
}

// word is an argument for a shell, quoted only if it has to be.
func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:/", r)
	}
	if s != "" && !strings.HasPrefix(s, "-") && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return line(s, 240)
	}
	return quoted(s)
}

// absence says why nobody takes up work of a run from a task queue, or "" when a worker polls for it; nil is a run that is
// to be started.
func (c *conn) absence(ctx context.Context, queue string, info *workflowpb.WorkflowExecutionInfo) string {
	p, err := c.pollers(ctx, queue)
	if err != nil {
		return ""
	}
	return c.absent(ctx, p, queue, info)
}

// absent is absence for a task queue whose pollers are known.
func (c *conn) absent(ctx context.Context, p *pollers, queue string, info *workflowpb.WorkflowExecutionInfo) string {
	run, now := placementOf(info), time.Now()
	place := fmt.Sprintf("task queue %q of namespace %q at %s", queue, c.namespace, c.address)
	// A poll takes up to a minute, so that one is older than that proves nothing.
	if at, last, ok := p.missing(run, now, patience); ok && last.IsZero() {
		return fmt.Sprintf("no worker of %s polls %s; %s", at, place, c.replaceAdvice(ctx, at, info))
	} else if ok {
		return fmt.Sprintf("the last worker of %s polled %s at %s; if it is gone, %s", at, place, last.Local().Format(time.TimeOnly), c.replaceAdvice(ctx, at, info))
	}
	switch last := p.latest(); {
	case p.unrouted(run, now):
		return fmt.Sprintf("workers of deployment %q poll %s, and none of its builds is the current one: %s", line(p.newest.deployment, 64), place, promoteCommand(p.newest))
	case last.IsZero():
		return fmt.Sprintf("no worker polls %s; start one with `holdfast dev` or `holdfast worker`", place)
	case now.Sub(last) > patience:
		return fmt.Sprintf("the last worker polled %s at %s; if it is gone, start one with `holdfast dev` or `holdfast worker`",
			place, last.Local().Format(time.TimeOnly))
	}
	return ""
}

// absenceAt is absence for a workflow that is there.
func (c *conn) absenceAt(ctx context.Context, workflow string, a *App) string {
	d, err := c.describe(ctx, workflow, "")
	if err != nil {
		return c.absence(ctx, a.queue(""), nil)
	}
	queue := d.GetExecutionConfig().GetTaskQueue().GetName()
	if queue == "" {
		queue = a.queue("")
	}
	return c.absence(ctx, queue, d.GetWorkflowExecutionInfo())
}
