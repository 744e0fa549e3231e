//go:build failpoint

package failpoint

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

func TestARuleThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"tool.after_commit", "tool.nowhere=kill", "tool.after_commit:0=kill", "tool.after_commit:x=kill",
		"tool.after_commit=hang", "tool.after_commit=hang:-1s", "tool.after_commit=file:", "tool.after_commit=explode",
	} {
		if rules, err := parse(text); err == nil {
			t.Errorf("parse(%q) = %v, want an error", text, rules)
		}
	}
}

func TestANumberedRuleActsAtThatPassingOnlyAndIsLogged(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	rules, err := parse("tool.after_commit:2=error, model.after_answer=error")
	if err != nil {
		t.Fatal(err)
	}
	p := &points{rules: rules, log: log, passed: map[string]int{}}
	var failed []bool
	for range 3 {
		failed = append(failed, p.pass(ToolAfterCommit) != nil)
	}
	failed = append(failed, p.pass(ModelAfterAnswer) != nil, p.pass(ModelBeforeRequest) != nil)
	for i, want := range []bool{false, true, false, true, false} {
		if failed[i] != want {
			t.Errorf("passing %d: failed = %v, want %v", i, failed[i], want)
		}
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "tool.after_commit 2\nmodel.after_answer 1\n"; string(b) != want {
		t.Errorf("log = %q, want %q", b, want)
	}
}

func TestFileWaitsUntilTheFileIsThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "go-on")
	rules, err := parse("tool.before_dispatch=file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	p := &points{rules: rules, passed: map[string]int{}}
	done := make(chan error, 1)
	go func() { done <- p.pass(ToolBeforeDispatch) }()
	select {
	case <-done:
		t.Fatal("went on before the file was there")
	case <-time.After(50 * time.Millisecond):
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// The test binary runs itself to be killed.
func TestKillLeavesTheLogLineAndNothingElse(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOLDFAST_FAILPOINT") != "" {
		At(ToolAfterCommit)
		os.Exit(0)
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillLeavesTheLogLineAndNothingElse$")
	cmd.Env = append(os.Environ(), "HOLDFAST_FAILPOINT=tool.after_commit:1=kill", "HOLDFAST_FAILPOINT_LOG="+log)
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("ended with %v, want SIGKILL", err)
	}
	b, _ := os.ReadFile(log)
	if !strings.Contains(string(b), "tool.after_commit 1\n") {
		t.Errorf("log = %q, want the passing", b)
	}
}

func TestOnlyAContinueAsNewIsMarked(t *testing.T) {
	t.Parallel()
	request := func(kind enumspb.CommandType) any {
		return &workflowservice.RespondWorkflowTaskCompletedRequest{Commands: []*commandpb.Command{{CommandType: kind}}}
	}
	if !continuesAsNew(request(enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION)) {
		t.Error("a continue-as-new is not seen")
	}
	if continuesAsNew(request(enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION)) || continuesAsNew("x") {
		t.Error("another request is taken for a continue-as-new")
	}
	called := false
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		called = true
		return nil
	}
	if err := Grpc()(context.Background(), "m", request(enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION), nil, nil, invoke); err != nil || !called {
		t.Errorf("without a rule the request is not passed on: %v, %v", called, err)
	}
}
