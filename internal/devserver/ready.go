package devserver

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-run/holdfast/agent"
)

// waitReady returns when the namespace is served and set up, or with the last reason why not when ctx ends.
func waitReady(ctx context.Context, address, namespace string) error {
	c, err := client.NewLazyClient(client.Options{HostPort: address, Namespace: namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		err := prepare(ctx, c, namespace)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func prepare(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := registerAttributes(ctx, c, namespace); err != nil {
		return err
	}
	_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(Retention)},
	})
	return err
}

// registerAttributes registers the search attributes of package agent in a namespace; those that are there
// already are left as they are.
func registerAttributes(ctx context.Context, c client.Client, namespace string) error {
	kinds := map[string]enumspb.IndexedValueType{}
	for _, a := range agent.Attributes() {
		kind, err := enumspb.IndexedValueTypeFromString(a.Type)
		if err != nil {
			return err
		}
		kinds[a.Name] = kind
	}
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: kinds,
	})
	return err
}
