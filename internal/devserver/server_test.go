package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
)

const versionLine = `if [ "$1" = --version ]; then echo temporal version 1.5.1; exit; fi`

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	for _, o := range []Options{{Port: taken}, {UIPort: taken}} {
		o.Binary = fake(t, versionLine)
		_, err := Start(context.Background(), o)
		var port *PortError
		if !errors.As(err, &port) || port.Port != taken || port.UI != (o.UIPort != 0) {
			t.Errorf("Start(%+v) = %v; want a PortError for %d", o, err, taken)
		}
	}
}

func TestDeathWhileStartingIsNoticedAtOnceWithTheLastLines(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := Start(context.Background(), Options{Binary: fake(t, versionLine+"\necho the disk is on fire >&2; exit 7")})
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("Start = %v; want the last line and the exit status", err)
	}
	if took := time.Since(began); took > readyWithin/3 {
		t.Errorf("noticed after %s", took)
	}
}

// The server panics when it finds no port for one of its parts; the reason stands above a stack that is longer
// than what we keep.
func TestAStartThatLostAPortIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		"panic: failed assigning ephemeral port: failed to assign a free port: accept: broken",
		"panic: listen tcp 127.0.0.1:1: bind: address already in use",
	} {
		count := filepath.Join(t.TempDir(), "count")
		_, err := Start(context.Background(), Options{Binary: fake(t, versionLine+
			"\necho x >>"+count+"; echo '"+reason+"' >&2; seq 50 >&2; exit 2")})
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Start = %v; want the reason of the panic", err)
		}
		if b, _ := os.ReadFile(count); len(b) != len("x\n")*3 {
			t.Errorf("%s: %d starts, want 3", reason, len(b)/2)
		}
	}
}

func TestGivingUpLeavesNoProcess(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			if b, err := os.ReadFile(pidFile); err == nil && len(b) > 0 {
				cancel()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := Start(ctx, Options{Binary: fake(t, versionLine+"\necho $$ >"+pidFile+"\nexec sleep 300")})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Start = %v; want context.Canceled", err)
	}
	b, _ := os.ReadFile(pidFile)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

func TestTailKeepsTheLastLinesBounded(t *testing.T) {
	t.Parallel()
	tl := &tail{}
	for i := range 100 {
		fmt.Fprintf(tl, "line %d %s\n", i, strings.Repeat("x", 10_000))
	}
	fmt.Fprint(tl, "the end")
	s := tl.String()
	if !strings.HasSuffix(s, "the end") || strings.Contains(s, "line 50 ") || len(s) > (tailLines+1)*(tailWidth+1) {
		t.Errorf("tail kept %d bytes: %.80q", len(s), s)
	}
}

func TestServerKeepsItsStateAndDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if os.Getenv("DEVSERVER_CHILD") != "" {
		child()
		return
	}
	ctx := context.Background()
	o := Options{Binary: realTemporal(t), DBFile: filepath.Join(t.TempDir(), "t.db")}
	s, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	startOne(t, s, "kept")
	s.Kill()

	// Again in a process of its own, which is then killed.
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "DEVSERVER_CHILD="+o.DBFile, EnvBinary+"="+o.Binary)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var address string
	if _, err := fmt.Fscan(out, &pid, &address); err != nil {
		t.Fatal(err)
	}
	c := dial(t, address)
	d, err := c.DescribeWorkflow(ctx, "kept", "")
	if err != nil || d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("after a restart: %+v, %v", d, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("server %d outlived its parent", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// child starts a server, says where, and waits to be killed.
func child() {
	s, err := Start(context.Background(), Options{DBFile: os.Getenv("DEVSERVER_CHILD"), Headless: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.PID(), s.Address())
	<-s.Done()
}

func TestServerStopsGracefullyAndIsSetUp(t *testing.T) {
	t.Parallel()
	s, err := Start(context.Background(), Options{Binary: realTemporal(t), Namespace: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	startOne(t, s, "w")
	c := dial(t, s.Address())
	d, err := c.WorkflowService().DescribeNamespace(context.Background(), &workflowservice.DescribeNamespaceRequest{Namespace: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != Retention {
		t.Errorf("retention = %s, want %s", got, Retention)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if s.Err() != nil || s.Stop() != nil {
		t.Errorf("after Stop: %v, %v", s.Err(), s.Stop())
	}
}

func startOne(t *testing.T, s *Server, id string) {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.Address(), Namespace: s.Namespace()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
		ID: id, TaskQueue: "q",
		TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword(agent.AttributeAgent).ValueSet("a")),
	}, "none")
	if err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// zombie says whether a process has ended and only waits for init to notice.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

func realTemporal(t *testing.T) string {
	t.Helper()
	path, err := Find(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
