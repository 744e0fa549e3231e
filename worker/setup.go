package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
)

// MinRetention is how long a namespace should keep closed workflows: what a turn did can be read in the
// Web UI for so long. Closing records in the store outlive it.
const MinRetention = 90 * 24 * time.Hour

// Setup prepares a namespace: it registers the search attributes and waits until they can be searched
// for, which takes a moment on some servers. Doing it again changes nothing. The warnings say what else
// should be set and how.
func Setup(ctx context.Context, c client.Client, namespace string) (warnings []string, err error) {
	there, err := registered(ctx, c, namespace)
	if err != nil {
		return nil, fmt.Errorf("search attributes of namespace %q: %w", namespace, explainSetup(err, namespace))
	}
	add := map[string]enumspb.IndexedValueType{}
	for _, a := range agent.Attributes() {
		kind, ok := there.GetCustomAttributes()[a.Name]
		if ok && kind != indexedAs(a) {
			return nil, fmt.Errorf("namespace %q has a search attribute %q of type %s, not %s; remove it: temporal operator search-attribute remove --name %s", namespace, a.Name, kind, a.Type, a.Name)
		}
		if !ok {
			add[a.Name] = indexedAs(a)
		}
	}
	if len(add) > 0 {
		_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: namespace, SearchAttributes: add,
		})
		var exists *serviceerror.AlreadyExists
		if err != nil && !errors.As(err, &exists) {
			return nil, fmt.Errorf("search attributes of namespace %q could not be added: %w", namespace, explainSetup(err, namespace))
		}
	}
	if err := waitSearchable(ctx, c, namespace); err != nil {
		return nil, err
	}
	return retentionWarning(ctx, c, namespace), nil
}

func explainSetup(err error, namespace string) error {
	if !isRefusal(err) {
		return err
	}
	return fmt.Errorf("%w; this server lets only its administrators do that: add %s to namespace %q with its own tools", err, clipList(listed(agent.Attributes())), namespace)
}

func indexedAs(a agent.Attribute) enumspb.IndexedValueType {
	kind, err := enumspb.IndexedValueTypeFromString(a.Type)
	if err != nil {
		panic(err) // a test holds the table against the server's types
	}
	return kind
}

func listed(attributes []agent.Attribute) []string {
	var out []string
	for _, a := range attributes {
		out = append(out, fmt.Sprintf("%s (type %s)", a.Name, a.Type))
	}
	return out
}

// lacking returns the search attributes that are not registered with their type.
func lacking(there *operatorservice.ListSearchAttributesResponse) []string {
	var lack []string
	for _, a := range agent.Attributes() {
		if there.GetCustomAttributes()[a.Name] != indexedAs(a) {
			lack = append(lack, a.Name)
		}
	}
	return lack
}

// waitSearchable returns when a search by the attributes is accepted: servers learn of them through a
// cache that is refreshed every few seconds.
func waitSearchable(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := searchable(ctx, c, namespace)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("search attributes of namespace %q cannot be used yet: %w; run \"holdfast setup\" again", namespace, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func searchable(ctx context.Context, c client.Client, namespace string) error {
	there, err := registered(ctx, c, namespace)
	if err != nil {
		return err
	}
	if lack := lacking(there); len(lack) > 0 {
		return fmt.Errorf("%s not there yet", clipList(lack))
	}
	for _, a := range agent.Attributes() {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: namespace, Query: a.Name + " IS NOT NULL",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func retentionWarning(ctx context.Context, c client.Client, namespace string) []string {
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return []string{fmt.Sprintf("the retention of namespace %q could not be looked at: %v", namespace, err)}
	}
	kept := d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if kept == 0 || kept >= MinRetention {
		return nil
	}
	return []string{fmt.Sprintf("namespace %q forgets closed workflows after %s; 90 days keep what turns did in the Web UI: temporal operator namespace update --namespace %s --retention 90d",
		namespace, days(kept), namespace)}
}

func days(d time.Duration) string {
	if n := d / (24 * time.Hour); d%(24*time.Hour) == 0 && n > 0 {
		if n == 1 {
			return "1 day"
		}
		return fmt.Sprintf("%d days", n)
	}
	return d.String()
}
