package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

const (
	dialTimeout = 5 * time.Second
	// oversize is from which size in bytes on a payload goes to the store instead of into history. A
	// workflow task may start 16 reads and an effect, and the server takes no task of 4 MiB or more: it
	// would be tried for ever.
	oversize = 128 << 10
)

// clientOptions are those of o or of the environment, with what every worker needs.
func (o Options) clientOptions(log *slog.Logger, driver converter.StorageDriver) (client.Options, error) {
	var c client.Options
	if o.Client != nil {
		c = *o.Client
	} else {
		var err error
		if c, err = envconfig.LoadDefaultClientOptions(); err != nil {
			return c, fmt.Errorf("the client configuration of Temporal cannot be used: %w; check TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE and the TEMPORAL_TLS variables", err)
		}
	}
	if c.HostPort == "" {
		c.HostPort = client.DefaultHostPort
	}
	if c.Namespace == "" {
		c.Namespace = client.DefaultNamespace
	}
	if c.Identity == "" {
		c.Identity = identity()
	}
	if c.Logger == nil {
		c.Logger = sdklog.NewStructuredLogger(log)
	}
	if len(c.ExternalStorage.Drivers) == 0 {
		c.ExternalStorage = converter.ExternalStorage{
			Drivers: []converter.StorageDriver{driver}, PayloadSizeThreshold: oversize,
		}
	}
	if i := failpoint.Grpc(); i != nil {
		c.ConnectionOptions.DialOptions = append(c.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(i))
	}
	return c, nil
}

// identity stands in every event that this process leaves, so it is short. Its last part tells the workers
// of one host apart: /readyz looks for the polls of this one.
func identity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unnamed"
	}
	return host[:min(len(host), 32)] + "/" + strings.ToLower(rand.Text()[:4])
}

// dial connects within [dialTimeout] and checks that the namespace is there and set up.
func dial(ctx context.Context, o client.Options, log *slog.Logger) (client.Client, error) {
	within, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(within, o)
	if err != nil {
		return nil, explainDial(ctx, o, err)
	}
	if err := checkNamespace(ctx, c, o, log); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func explainDial(ctx context.Context, o client.Options, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &denied) || isUnauthenticated(err):
		return fmt.Errorf("the Temporal server at %s does not let this worker in: %w; check TEMPORAL_API_KEY or the TEMPORAL_TLS variables", o.HostPort, err)
	case listens(ctx, o.HostPort):
		return fmt.Errorf("what listens at %s does not answer as a Temporal server: %w; check TEMPORAL_ADDRESS (the gRPC port, usually 7233) and whether TLS is needed (TEMPORAL_TLS)", o.HostPort, err)
	}
	return fmt.Errorf("no Temporal server at %s; start one with \"holdfast dev\", or set TEMPORAL_ADDRESS: %w", o.HostPort, err)
}

func isUnauthenticated(err error) bool {
	s := serviceerror.ToStatus(err)
	return s != nil && s.Code().String() == "Unauthenticated"
}

// listens says whether anything accepts connections at address.
func listens(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func checkNamespace(ctx context.Context, c client.Client, o client.Options, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	var missing *serviceerror.NamespaceNotFound
	var absent *serviceerror.NotFound
	switch {
	case errors.As(err, &missing) || errors.As(err, &absent):
		return fmt.Errorf("the Temporal server at %s has no namespace %q; set TEMPORAL_NAMESPACE, or create it: temporal operator namespace create --namespace %s --retention 90d", o.HostPort, o.Namespace, o.Namespace)
	case isRefusal(err):
		log.Warn("the namespace could not be looked at", "namespace", o.Namespace, "error", err)
	case err != nil:
		return fmt.Errorf("namespace %q at %s: %w", o.Namespace, o.HostPort, err)
	}
	there, err := registered(ctx, c, o.Namespace)
	if err != nil {
		// Some servers keep this from workers. A turn would then say what is missing, by name.
		log.Warn("search attributes could not be looked at", "namespace", o.Namespace, "error", err)
		return nil
	}
	if lack := lacking(there); len(lack) > 0 {
		return fmt.Errorf("namespace %q at %s lacks the search attributes %s; run \"holdfast setup\" once", o.Namespace, o.HostPort, clipList(lack))
	}
	return nil
}

func isRefusal(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &unknown)
}

func registered(ctx context.Context, c client.Client, namespace string) (*operatorservice.ListSearchAttributesResponse, error) {
	return c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
}
