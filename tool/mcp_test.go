package tool

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
)

func startMCP(t *testing.T, cfg MCPConfig) *MCPServer {
	t.Helper()
	m, err := ConnectMCP(t.Context(), cfg, secret.New("hunter22secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func toolOf(t *testing.T, m *MCPServer, name string) Tool {
	t.Helper()
	for _, tl := range m.Tools() {
		if tl.Spec().Name == MCPName(m.cfg.Name, name) {
			return tl
		}
	}
	t.Fatalf("no tool %q", name)
	return nil
}

func callMCP(t *testing.T, m *MCPServer, name, args string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return callMCPUntil(ctx, t, m, name, args)
}

func callMCPUntil(ctx context.Context, t *testing.T, m *MCPServer, name, args string) (string, error) {
	t.Helper()
	res, err := toolOf(t, m, name).Do(ctx, Call{Key: "s~00000000:turn-1/1.1/abc", Args: args})
	return string(res.Data), err
}

func wantMCPText(t *testing.T, m *MCPServer, name, want string) {
	t.Helper()
	got, err := callMCP(t, m, name, `{}`)
	if err != nil || got != want {
		t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
	}
}

func wantMeaning(t *testing.T, err error, meaning Outcome, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if got := Meaning(err); got != meaning {
		t.Errorf("meaning %s, want %s: %v", got, meaning, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error lacks %q: %v", p, err)
		}
	}
}

func TestArgumentsReachTheServerByteForByte(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	m := startMCP(t, helper(t, "plain", helperLog+"="+log))
	args := `{"a":9007199254740993,"b":123456789012345678901234567890,"c":1.0,"d":10e-1,"e":"<&>\u2028","f":1e400}`
	if _, err := callMCP(t, m, "echo", args); err != nil {
		t.Fatal(err)
	}
	sent, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(sent), `"arguments":`+args) {
		t.Errorf("the server read\n%s", sent)
	}
	if !strings.Contains(string(sent), `"_meta":{"io.github.holdfast-run/idempotency-key":"s~00000000:turn-1/1.1/abc"}`) {
		t.Errorf("no key in\n%s", sent)
	}
}

func TestNumbersInResultsAreExact(t *testing.T) {
	t.Parallel()
	wantMCPText(t, startMCP(t, helper(t, "plain")), "number", `{"n":9007199254740993,"m":123456789012345678901234567890}`)
}

func TestAServerOfTheNewestProtocolOnlyIsServed(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "modern"))
	if v := m.link.current.cs.InitializeResult().ProtocolVersion; v != "2026-07-28" {
		t.Errorf("version %s", v)
	}
	wantMCPText(t, m, "twice", "first")
	wantMCPText(t, m, "changed", "changed")
	wantMCPText(t, m, "twice", "first")
}

func TestServerGetsOnlyTheConfiguredEnvironment(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain", "TOKEN=abc"))
	got, err := callMCP(t, m, "env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(got, "\n") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{helperMode, "PATH", "TOKEN"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestStartErrorsSayWhatTheServerDid(t *testing.T) {
	t.Parallel()
	short := func(c MCPConfig) MCPConfig { c.ListTimeout = 2 * time.Second; return c }
	for name, tc := range map[string]struct {
		cfg  MCPConfig
		want []string
	}{
		"talks":    {helper(t, "talks"), []string{`mcp server "raw": printed "Hello, I am`, `on its standard output, which is reserved for the protocol; `}},
		"dies":     {helper(t, "dies"), []string{`mcp server "raw"`, "exit status 3", "cannot log in with [secret]"}},
		"silent":   {short(helper(t, "silent")), []string{"did not complete the protocol's handshake in time"}},
		"hanglist": {short(helper(t, "hanglist")), []string{"does not list its tools", "deadline"}},
		"many":     {helper(t, "many"), []string{"lists more than 1000 tools"}},
		"endless":  {helper(t, "endless"), []string{"the same page of tools again"}},
		"missing":  {MCPConfig{Name: "raw", Command: []string{"no-such-command-1"}}, []string{`no command "no-such-command-1" on the PATH`}},
		"refused":  {MCPConfig{Name: "raw", URL: "http://127.0.0.1:1/mcp"}, []string{"cannot be connected to", "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := ConnectMCP(t.Context(), tc.cfg, secret.New("hunter22secret"))
			if err == nil {
				m.Close()
				t.Fatal("no error")
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error lacks %q:\n%v", w, err)
				}
			}
			if strings.ContainsAny(err.Error(), "\x1b") {
				t.Errorf("the error would act on a terminal: %q", err)
			}
		})
	}
}

func TestHostileAnswersCostOnlyTheirOwnCall(t *testing.T) {
	t.Parallel()
	cfg := helper(t, "plain")
	cfg.MaxResult = 1 << 20
	cfg.Tools = map[string]Declaration{"garbage": {Class: agent.ClassRead}}
	m := startMCP(t, cfg)
	pid, err := callMCP(t, m, "pid", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	slow := make(chan error, 1)
	go func() {
		_, err := callMCP(t, m, "slow", `{}`)
		slow <- err
	}()
	wantMCPText(t, m, "twice", "first")
	wantMCPText(t, m, "twice", "first")
	wantMCPText(t, m, "junk", "after junk")
	wantMCPText(t, m, "ask", "asked")
	wantMCPText(t, m, "flood", "flooded")
	wantMCPText(t, m, "secret", "the token is [secret]")
	wantMCPText(t, m, "huge", `[the call was answered, but the answer of "huge" is larger than 1 MiB and was not kept; ask for less at a time]`)
	for _, name := range []string{"garbage", "deep"} {
		_, err := callMCP(t, m, name, `{}`)
		wantMeaning(t, err, OutcomeAmbiguous, "cannot be read")
	}
	_, err = callMCP(t, m, "refuse", `{}`)
	wantMeaning(t, err, OutcomeFailed, "amount is missing", "-32602")
	if strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
	_, err = callMCP(t, m, "fail", `{}`)
	wantMeaning(t, err, OutcomeFailed, "no such order")
	if err := <-slow; err != nil {
		t.Errorf("another call suffered: %v", err)
	}
	wantMCPText(t, m, "pid", pid)
}

func TestAReadWhoseAnswerIsTooLargeFails(t *testing.T) {
	t.Parallel()
	cfg := helper(t, "plain")
	cfg.MaxResult = 1 << 20
	cfg.Tools = map[string]Declaration{"huge": {Class: agent.ClassRead}}
	_, err := callMCP(t, startMCP(t, cfg), "huge", `{}`)
	wantMeaning(t, err, OutcomeFailed, "larger than 1 MiB")
}

func TestAHangingCallEndsAloneAndIsCancelledOnTheServer(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	m := startMCP(t, helper(t, "plain", helperLog+"="+log))
	pid, err := callMCP(t, m, "pid", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = callMCPUntil(ctx, t, m, "hang", `{}`)
	wantMeaning(t, err, OutcomeAmbiguous, "may have taken effect", "did not answer in time")
	awaitMCP(t, func() bool {
		b, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(b), "notifications/cancelled")
	})
	wantMCPText(t, m, "pid", pid)
}

func TestPrintingOnStandardOutputIsExplained(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain"))
	_, err := callMCP(t, m, "glue", `{}`)
	wantMeaning(t, err, OutcomeAmbiguous, "cannot be read", "debug without an end of line")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = callMCPUntil(ctx, t, m, "hang", `{}`)
	wantMeaning(t, err, OutcomeAmbiguous, "debug without an end of line", "reserved for the protocol")
}

func TestAServerThatDoesNotReadIsGivenUpAndStartedAnew(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain"))
	m.link.current.conn.stall = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := callMCPUntil(ctx, t, m, "deaf", `{}`)
	wantMeaning(t, err, OutcomeAmbiguous)
	// More than a pipe holds: the writer is stuck in this message.
	_, err = callMCP(t, m, "echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`)
	wantMeaning(t, err, OutcomeAmbiguous, "it has not read its standard input for 200ms")
	wantMCPText(t, m, "twice", "first")
}

func TestACallThatWaitsBehindAStuckOneIsNotSent(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe() // nobody reads theirs
	t.Cleanup(func() { theirs.Close() })
	c := newStdioConn(ours, ours, 1<<10, func() { ours.Close() }, func() bool { return false })
	t.Cleanup(func() { c.Close() })
	write := func(id int64) (*flight, context.CancelFunc, <-chan error) {
		ctx, f, cancel := newFlight(t.Context())
		done := make(chan error, 1)
		rid, err := jsonrpc.MakeID(float64(id))
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- c.Write(ctx, &jsonrpc.Request{ID: rid, Method: "tools/call"}) }()
		return f, cancel, done
	}
	stuck, cancelStuck, stuckDone := write(1)
	awaitMCP(t, func() bool { return stuck.state.Load() == flightSent })
	waiting, cancelWaiting, waitingDone := write(2)
	cancelWaiting()
	cancelStuck()
	for _, done := range []<-chan error{stuckDone, waitingDone} {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if stuck.abandon() || !waiting.abandon() {
		t.Error("only the call that waited is known not to be sent")
	}
}

func TestADiedServerIsStartedAnewAtTheNextCall(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain"))
	first, err := callMCP(t, m, "pid", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = callMCP(t, m, "die", `{}`)
	wantMeaning(t, err, OutcomeAmbiguous, `no answer to the call of "die", which may have taken effect`, "exit status 7")
	second, err := callMCP(t, m, "pid", `{}`)
	if err != nil || second == first {
		t.Errorf("pids %s and %s, %v", first, second, err)
	}
}

func TestAServerThatEndsAfterEachAnswerServes(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "oneshot"))
	for range 4 {
		wantMCPText(t, m, "secret", "the token is [secret]")
		awaitMCP(t, func() bool {
			m.link.mu.Lock()
			defer m.link.mu.Unlock()
			return m.link.current == nil || m.link.current.over()
		})
	}
}

func TestAServerThatKeepsDyingIsNotStartedInALoop(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain"))
	var err error
	for range 3 {
		_, err = callMCP(t, m, "die", `{}`)
	}
	wantMeaning(t, err, OutcomeNotSent, "will be started anew in", "exit status 7")
	if RetryAfter(err) <= 0 {
		t.Error("no time to wait for")
	}
}

func TestOneSessionsHangingCallsLeaveRoomForAnothers(t *testing.T) {
	t.Parallel()
	cfg := helper(t, "plain")
	cfg.Concurrency = 4
	m := startMCP(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	// What is sent is counted at the gate: a context ends its calls one after the other, and the slot of one that
	// has ended is there for one that has not.
	var sent atomic.Int32
	ctx = WithGate(ctx, func() error { sent.Add(1); return nil })
	done := make(chan error, 8)
	hang := toolOf(t, m, "hang")
	for range 8 {
		go func() {
			_, err := hang.Do(ctx, Call{Args: `{}`, Scope: agent.Scope{Session: "greedy", Life: "00000000"}})
			done <- err
		}()
	}
	awaitMCP(t, func() bool {
		m.slots.mu.Lock()
		defer m.slots.mu.Unlock()
		own := m.slots.session[agent.Scope{Session: "greedy", Life: "00000000"}]
		return own != nil && own.uses == 8 && sent.Load() >= 2
	})
	wantMCPText(t, m, "twice", "first")
	if n := sent.Load(); n != 2 {
		t.Errorf("%d calls of one session were sent, want half of 4", n)
	}
	cancel()
	for range 8 {
		if err := <-done; err == nil {
			t.Error("a call that hangs answered")
		}
	}
	if n := len(m.slots.session); n != 0 {
		t.Errorf("%d sessions are still kept", n)
	}
}

func TestACallOfAClosedServerIsNotSent(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain"))
	running := make(chan error, 1)
	log := toolOf(t, m, "hang")
	go func() {
		_, err := log.Do(t.Context(), Call{Args: `{}`})
		running <- err
	}()
	awaitMCP(t, func() bool { m.slots.mu.Lock(); defer m.slots.mu.Unlock(); return len(m.slots.session) == 1 })
	m.Close()
	if err := <-running; err == nil {
		t.Error("a running call outlived Close")
	}
	_, err := callMCP(t, m, "echo", `{}`)
	wantMeaning(t, err, OutcomeNotSent, "the connection to the server is closed")
}

func TestACallThatEndsBeforeItIsSentIsNotSent(t *testing.T) {
	t.Parallel()
	m := startMCP(t, helper(t, "plain"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := callMCPUntil(ctx, t, m, "echo", `{}`)
	wantMeaning(t, err, OutcomeNotSent)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// eventually waits for something that another goroutine or process does.
func awaitMCP(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		if ok() {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatal("it did not happen")
}
