package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/secret"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/transcript"
	"github.com/holdfast-run/holdfast/workflows"
)

// Run serves until ctx ends or the worker cannot go on. Then it stops polling, lets running activities
// finish for the configuration's stop timeout, cancels those that are left and returns; an attempt that
// is cut off is taken up by another worker. The end of ctx is no error. The tools are added to those of
// the file.
func Run(ctx context.Context, c *Config, tools ...tool.Tool) error {
	return Options{}.Run(ctx, c, tools...)
}

// Run is [Run] with options.
func (o Options) Run(ctx context.Context, c *Config, tools ...tool.Tool) error {
	if err := c.complete(); err != nil {
		return err
	}
	v, err := o.version(c)
	if err != nil {
		return err
	}
	p, err := o.start(ctx, c, v, tools)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return c.mask.Error(err)
	}
	defer p.close()
	return c.mask.Error(p.serve(ctx, o))
}

// A process is a worker and all that it holds open, in the order in which it was opened.
type process struct {
	log     *slog.Logger
	live    *live
	store   *store.Store
	client  client.Client
	worker  worker.Worker
	fatal   chan error
	status  Status
	closers []func()
	// Nil when no health endpoints are served.
	endpoints *endpoints
	probe     *store.Space // see mark
	probed    agent.Body
}

// start opens everything and begins to poll. What was opened is closed again after an error.
func (o Options) start(ctx context.Context, c *Config, v worker.WorkerDeploymentVersion, tools []tool.Tool) (_ *process, err error) {
	p := &process{fatal: make(chan error, 1)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	p.setLog(o.Logger, c)
	p.live = &live{extras: extras{own: tools}, fleet: newFleet(p.log), log: p.log}
	if p.store, err = openStore(ctx, c); err != nil {
		return nil, err
	}
	p.later(func() { _ = p.store.Close() })
	if err = p.connect(ctx, o); err != nil {
		return nil, err
	}
	if err = p.live.begin(ctx, c); err != nil {
		return nil, err
	}
	p.later(p.live.fleet.stop)
	p.status.Build, p.status.Deployment = v.BuildID, v.DeploymentName
	p.status.TaskQueue, p.status.Store = c.Worker.TaskQueue, p.store.ID()
	// The endpoints outlive the worker's stop, so that who asks is told of it.
	if err = p.listen(ctx, cmp.Or(o.Health, c.Worker.Health)); err != nil {
		return nil, err
	}
	if err = failpoint.AtErr(failpoint.WorkerReady); err != nil {
		return nil, err
	}
	return p, p.poll(c, v)
}

// complete says whether all that the file refers to is there.
func (c *Config) complete() error {
	if !c.source.whole {
		return errors.New("this configuration cannot be run: read it with Load or Parse")
	}
	return nil
}

func (p *process) later(f func()) { p.closers = append(p.closers, f) }

func (p *process) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}

// setLog masks the secrets of the configuration in force, and of the first one until there is one.
func (p *process) setLog(l *slog.Logger, c *Config) {
	if l == nil {
		l = slog.Default()
	}
	p.log = slog.New(maskHandler{l.Handler(), func() *secret.Mask {
		if p.live == nil || p.live.now.Load() == nil {
			return c.mask
		}
		return p.live.mask()
	}})
}

func openStore(ctx context.Context, c *Config) (*store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	s, err := store.Open(ctx, store.Config{URL: c.Store.URL, Seal: []byte(c.Store.Seal.Reveal())})
	if err != nil {
		return nil, fmt.Errorf("the store cannot be opened; check store.url and that this worker may read and write there: %w", err)
	}
	// A worker that cannot write would take work and fail it; one whose bucket lets a second create
	// pass would send effects twice.
	if err := s.Prove(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the store cannot be used by a worker; check its permissions, and that it refuses a second create: %w", err), s.Close())
	}
	return s, nil
}

func (p *process) connect(ctx context.Context, o Options) error {
	co, err := o.clientOptions(p.log, p.store.PayloadDriver())
	if err != nil {
		return err
	}
	if p.client, err = dial(ctx, co, p.log); err != nil {
		return err
	}
	p.later(p.client.Close)
	p.live.extras.refuse = []string{co.HostPort}
	p.status.Namespace, p.status.Identity = co.Namespace, co.Identity
	return nil
}

// poll registers workflows and activities and starts to take work.
func (p *process) poll(c *Config, v worker.WorkerDeploymentVersion) error {
	acts, err := activities.New(activities.Deps{
		Store: p.store, Log: transcript.New(p.store, c.Limits.Cache),
		Current: p.live.snapshot, Client: p.client, Build: p.status.Build,
	})
	if err != nil {
		return err
	}
	pollers := worker.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 5, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 50}
	o := worker.Options{
		MaxConcurrentActivityExecutionSize: c.Worker.Concurrency,
		WorkflowTaskPollerBehavior:         worker.NewPollerBehaviorAutoscaling(pollers),
		ActivityTaskPollerBehavior:         worker.NewPollerBehaviorAutoscaling(pollers),
		WorkerStopTimeout:                  c.Worker.StopTimeout,
		StickyScheduleToStartTimeout:       c.Worker.StickyTimeout,
		DisableRegistrationAliasing:        true,
		OnFatalError: func(err error) {
			select {
			case p.fatal <- err:
			default:
			}
		},
	}
	claim(&o, v)
	if failpoint.Enabled && os.Getenv("HOLDFAST_FAILPOINT_COLD") != "" {
		worker.SetStickyWorkflowCacheSize(0) // each task replays its run from the beginning
	}
	p.worker = worker.New(p.client, c.Worker.TaskQueue, o)
	workflows.Register(p.worker, workflows.Options{})
	acts.Register(p.worker)
	if err := p.worker.Start(); err != nil {
		return fmt.Errorf("the worker could not start: %w", err)
	}
	p.later(sync.OnceFunc(p.worker.Stop))
	return nil
}

// serve watches the file and answers health requests until ctx ends or the worker fails.
func (p *process) serve(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { p.live.watch(ctx) })
	wg.Go(func() { p.sayRouting(ctx) })
	wg.Go(func() { p.publish(ctx) })
	s := p.now()
	if o.Ready != nil {
		wg.Go(func() { o.Ready(s) })
	} else {
		p.log.Info("worker polls", "taskQueue", s.TaskQueue, "namespace", s.Namespace, "store", s.Store,
			"build", s.Build, "deployment", s.Deployment, "serial", s.Serial, "health", s.Health)
	}
	select {
	case <-ctx.Done():
		p.log.Info("worker stops; running activities may finish", "within", p.live.config().Worker.StopTimeout.String())
		return nil
	case err := <-p.fatal:
		return fmt.Errorf("the worker cannot go on: %w", err)
	}
}

// now returns the status without its checks.
func (p *process) now() Status {
	s := p.status
	c := p.live.config()
	s.Status, s.Serial, s.Digest = "ok", c.Serial, c.Digest().Short()
	return s
}
