//go:build failpoint

package failpoint

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Enabled says whether this binary was built with the tag "failpoint".
const Enabled = true

// process is package state, which we have nowhere else: a failpoint is a property of the process, and
// handing one through every call would put it into builds that have none.
var process = sync.OnceValue(func() *points {
	rules, err := parse(os.Getenv("HOLDFAST_FAILPOINT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(2)
	}
	return &points{rules: rules, log: os.Getenv("HOLDFAST_FAILPOINT_LOG"), passed: map[string]int{}}
})

// points counts the passings of one process; safe for concurrent use.
type points struct {
	rules  []rule
	log    string
	mu     sync.Mutex
	passed map[string]int
}

// At marks a place that cannot fail; the action "error" panics there.
func At(name string) {
	if err := AtErr(name); err != nil {
		panic(err)
	}
}

// AtErr marks a place that can fail.
func AtErr(name string) error { return process().pass(name) }

// Effect marks a place of a tool's action that can fail, and of a compensation the place of the same name under
// "undo." instead.
func Effect(name string, undo bool) error {
	if undo {
		name = "undo." + strings.TrimPrefix(name, "tool.")
	}
	return AtErr(name)
}

// Sent returns a context in which the place is marked when a request over HTTP has left.
func Sent(ctx context.Context, name string) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { At(name) }})
}

func (p *points) pass(name string) error {
	p.mu.Lock()
	p.passed[name]++
	n := p.passed[name]
	p.mu.Unlock()
	for _, r := range p.rules {
		if r.name != name || (r.nth != 0 && r.nth != n) {
			continue
		}
		if err := p.record(name, n); err != nil {
			return err
		}
		if err := r.take(name, n); err != nil {
			return err
		}
	}
	return nil
}

// record appends the passing to the log and syncs it before anything happens: after a SIGKILL the line is
// the only witness.
func (p *points) record(name string, n int) error {
	if p.log == "" {
		return nil
	}
	f, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("failpoint log: %w", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %d\n", name, n); err != nil {
		return fmt.Errorf("failpoint log: %w", err)
	}
	return f.Sync()
}

func (r rule) take(name string, n int) error {
	switch r.act {
	case actKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing more may happen
	case actHang:
		time.Sleep(r.hang)
	case actFile:
		for {
			if _, err := os.Stat(r.path); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
	case actError:
		return fmt.Errorf("failpoint %s %d", name, n)
	}
	return nil
}

// Grpc returns the interceptor that marks the continue-as-new places: the request that completes a
// workflow task with a continue-as-new command, before it is sent and after it returned. Put it into the
// client's DialOptions.
func Grpc() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !continuesAsNew(req) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		if err := AtErr(ContinueBefore); err != nil {
			return err
		}
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		return AtErr(ContinueAfter)
	}
}

func continuesAsNew(req any) bool {
	done, ok := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
	if !ok {
		return false
	}
	for _, c := range done.GetCommands() {
		if c.GetCommandType() == enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION {
			return true
		}
	}
	return false
}
