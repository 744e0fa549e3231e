package worker

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestMain lets the test's own binary be an MCP server over stdio.
func TestMain(m *testing.M) {
	if log := os.Getenv("HOLDFAST_TEST_MCP_LOG"); log != "" {
		serveMCP(log)
		return
	}
	os.Exit(m.Run())
}

type noInput struct{}

// serveMCP counts its starts by a line in the file log.
func serveMCP(log string) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(f, "started")
	_ = f.Close()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	nothing := func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "look", Description: "Looks.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, nothing)
	mcp.AddTool(s, &mcp.Tool{Name: "act", Description: "Acts."}, nothing)
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// mcpYAML is an MCP server for a configuration and a count of how often it was started.
func mcpYAML(t *testing.T) (yaml string, starts func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "starts")
	yaml = fmt.Sprintf("{mcp: {command: [%q], env: {HOLDFAST_TEST_MCP_LOG: %q}}}", self, log)
	return yaml, func() int {
		b, err := os.ReadFile(log)
		if err != nil {
			return 0
		}
		return len(b) / len("started\n")
	}
}

// A fakeTemporal answers what a worker asks before it polls.
type fakeTemporal struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer

	mu         sync.Mutex
	namespace  string
	retention  time.Duration
	attributes map[string]enumspb.IndexedValueType
	added      int        // calls of AddSearchAttributes
	blind      int        // how many searches fail before one is accepted
	deny       codes.Code // of every call but GetSystemInfo
	pollers    []string   // identities
	deployment *deploymentpb.WorkerDeploymentInfo
	unseen     int // how many looks at the deployment find nothing
}

func (f *fakeTemporal) start(t *testing.T) client.Options {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(s, f)
	operatorservice.RegisterOperatorServiceServer(s, f)
	h := health.NewServer()
	h.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return client.Options{HostPort: l.Addr().String(), Namespace: f.namespace}
}

func (f *fakeTemporal) refuse(namespace string) error {
	if f.deny != codes.OK {
		return status.Error(f.deny, "not for you")
	}
	if namespace != f.namespace {
		return serviceerror.ToStatus(serviceerror.NewNamespaceNotFound(namespace)).Err()
	}
	return nil
}

func (f *fakeTemporal) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func (f *fakeTemporal) DescribeNamespace(_ context.Context, r *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &workflowservice.DescribeNamespaceResponse{
		Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(f.retention)},
	}, f.refuse(r.GetNamespace())
}

func (f *fakeTemporal) ListSearchAttributes(_ context.Context, r *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := map[string]enumspb.IndexedValueType{}
	for k, v := range f.attributes {
		there[k] = v
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: there}, f.refuse(r.GetNamespace())
}

func (f *fakeTemporal) AddSearchAttributes(_ context.Context, r *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added++
	if f.attributes == nil {
		f.attributes = map[string]enumspb.IndexedValueType{}
	}
	for k, v := range r.GetSearchAttributes() {
		f.attributes[k] = v
	}
	return &operatorservice.AddSearchAttributesResponse{}, f.refuse(r.GetNamespace())
}

func (f *fakeTemporal) CountWorkflowExecutions(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blind > 0 {
		f.blind--
		return nil, status.Error(codes.InvalidArgument, "unknown search attribute")
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func (f *fakeTemporal) DescribeTaskQueue(context.Context, *workflowservice.DescribeTaskQueueRequest) (*workflowservice.DescribeTaskQueueResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &workflowservice.DescribeTaskQueueResponse{}
	for _, p := range f.pollers {
		out.Pollers = append(out.Pollers, &taskqueuepb.PollerInfo{Identity: p})
	}
	return out, nil
}

func (f *fakeTemporal) DescribeWorkerDeployment(_ context.Context, r *workflowservice.DescribeWorkerDeploymentRequest) (*workflowservice.DescribeWorkerDeploymentResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse(r.GetNamespace()); err != nil {
		return nil, err
	}
	if f.unseen > 0 {
		f.unseen--
		return nil, status.Error(codes.NotFound, "no such deployment")
	}
	return &workflowservice.DescribeWorkerDeploymentResponse{WorkerDeploymentInfo: f.deployment}, nil
}
