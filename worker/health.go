package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
)

const (
	checkTimeout = 3 * time.Second
	// checkAge is how long "ready" is answered again without looking: whoever asks often shall not
	// load Temporal and the store.
	checkAge = time.Second
)

// What /readyz says.
const (
	ready    = "ready"
	notReady = "not ready"
)

// endpoints serve /healthz, which answers while the process lives, and /readyz, which is 200 only when
// Temporal answers, the store can be read and the server sees this worker poll.
type endpoints struct {
	server   *http.Server
	process  *process
	stopping atomic.Bool

	mu   sync.Mutex
	last Status
	at   time.Time
}

// listen starts the endpoints, if any are asked for.
func (p *process) listen(ctx context.Context, address string) error {
	if address == "" || address == "off" {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("health address %q: %w; choose another under worker.health, or leave it out to serve none", address, err)
	}
	if err := p.mark(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	h := &endpoints{process: p}
	p.status.Health, p.endpoints = l.Addr().String(), h
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.liveness)
	mux.HandleFunc("GET /readyz", h.readiness)
	h.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("health endpoints ended", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { h.stopping.Store(true) })
	p.later(func() { _ = h.server.Close() })
	return nil
}

func (h *endpoints) liveness(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, h.process.now())
}

func (h *endpoints) readiness(w http.ResponseWriter, r *http.Request) {
	s := h.status(r.Context())
	code := http.StatusOK
	if s.Status != ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, s)
}

// answer writes s as JSON. Whoever asked may be gone: there is nobody to tell.
func answer(w http.ResponseWriter, code int, s Status) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(s)
}

func (h *endpoints) status(ctx context.Context) Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.Status == ready && time.Since(h.at) < checkAge && !h.stopping.Load() {
		return h.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	s := h.process.now()
	s.Checks, s.Status = h.process.check(ctx), ready
	if h.stopping.Load() {
		s.Checks["polling"] = "the worker is stopping"
	}
	for _, v := range s.Checks {
		if v != "ok" {
			s.Status = notReady
		}
	}
	h.last, h.at = s, time.Now()
	return s
}

// check looks at what the worker depends on, all at the same time.
func (p *process) check(ctx context.Context) map[string]string {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		out = map[string]string{}
	)
	for name, f := range map[string]func(context.Context) error{
		"store": p.checkStore, "polling": p.checkPolling,
	} {
		wg.Go(func() {
			err := f(ctx)
			mu.Lock()
			defer mu.Unlock()
			out[name] = "ok"
			if err != nil {
				out[name] = p.live.mask().String(err.Error())
			}
		})
	}
	wg.Wait()
	return out
}

// mark puts a few bytes into the store that checkStore reads back. That some record is absent would be no
// proof: in a folder that is no longer mounted everything is.
func (p *process) mark(ctx context.Context) error {
	p.probe = p.store.Space(agent.NewScope("readyz", p.store.ID()))
	body, err := p.probe.PutBody(ctx, []byte("read by /readyz\n"), "")
	p.probed = body
	return err
}

func (p *process) checkStore(ctx context.Context) error {
	_, err := p.probe.Body(ctx, p.probed)
	return err
}

// checkPolling asks Temporal whether it sees this worker's polls. That it answers says that it is there.
func (p *process) checkPolling(ctx context.Context) error {
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		d, err := p.client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: p.status.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: p.status.TaskQueue}, TaskQueueType: kind,
		})
		if err != nil {
			return fmt.Errorf("no answer from Temporal: %w", err)
		}
		if !polls(d.GetPollers(), p.status.Identity) {
			return fmt.Errorf("there is no poll of %q on task queue %q that Temporal knows of", p.status.Identity, p.status.TaskQueue)
		}
	}
	return nil
}

func polls(pollers []*taskqueuepb.PollerInfo, identity string) bool {
	return slices.ContainsFunc(pollers, func(p *taskqueuepb.PollerInfo) bool { return p.GetIdentity() == identity })
}
