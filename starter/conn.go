package starter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/worker"
)

const (
	dialTimeout  = 5 * time.Second
	queryTimeout = 5 * time.Second
	// patience is how long a command waits in silence before it looks for the reason.
	patience = 5 * time.Second
)

// conn is a connection to Temporal.
type conn struct {
	client.Client
	address, namespace string
	payloads           converter.DataConverter
	stored             *stored // reads what is stored elsewhere; nil when nothing is
	// pins says whether the configuration here keeps an agent's sessions with the definition that they have.
	pins func(agent string) bool
}

// clientOptions are the standard environment and profile, with the flags above them.
func (a *App) clientOptions() (client.Options, error) {
	o, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: a.profile, IncludeRemoteCodec: true})
	if err != nil {
		return o, withHint(fmt.Errorf("the client configuration of Temporal: %w", err), "see TEMPORAL_PROFILE and TEMPORAL_CONFIG_FILE, or name another with --profile")
	}
	if a.address != "" {
		o.HostPort = a.address
	}
	if o.HostPort == "" {
		o.HostPort = "127.0.0.1:7233"
	}
	if a.namespace != "" {
		o.Namespace = a.namespace
	}
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	o.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return o, nil
}

// connect connects to Temporal; the caller closes it.
func (a *App) connect(ctx context.Context) (*conn, error) {
	o, err := a.clientOptions()
	if err != nil {
		return nil, err
	}
	reads := newStored(ctx, func(ctx context.Context) (*store.Store, error) { return a.openStore(ctx, "") })
	o.ExternalStorage = reads.external()
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(dial, o)
	if err != nil {
		if ctx.Err() == nil && isOutage(err) {
			err = withHint(fmt.Errorf("no Temporal server at %s: start one with `holdfast dev` or set TEMPORAL_ADDRESS", o.HostPort),
				"what the connection said: %v", err)
		}
		return nil, err
	}
	payloads := o.DataConverter
	if payloads == nil {
		payloads = converter.GetDefaultDataConverter()
	}
	return &conn{
		Client: c, address: o.HostPort, namespace: o.Namespace, payloads: fetching{payloads, reads}, stored: reads,
		pins: a.pins(),
	}, nil
}

// describe describes a run of a workflow; run "" is the current one.
func (c *conn) describe(ctx context.Context, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := c.DescribeWorkflow(ctx, id, run)
	if err != nil {
		return nil, err
	}
	return d.RawResponse, nil
}

// isOutage says whether the server may answer the same request later.
func isOutage(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		busy        *serviceerror.ResourceExhausted
		internal    *serviceerror.Internal
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &busy) || errors.As(err, &internal) ||
		errors.Is(err, context.DeadlineExceeded)
}

func isCancelled(err error) bool {
	var cancelled *serviceerror.Canceled
	return errors.Is(err, context.Canceled) || errors.As(err, &cancelled)
}

func isNotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// queue is the task queue that the workers poll: the flag's, the configuration's, or the default.
func (a *App) queue(flag string) string {
	if flag != "" {
		return flag
	}
	if cfg, err := worker.LoadStore(a.config); err == nil && cfg.Worker.TaskQueue != "" {
		return cfg.Worker.TaskQueue
	}
	return agent.TaskQueue
}

// claimed is who this command says it is; nobody verifies it.
func claimed() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}
