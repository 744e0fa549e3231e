//go:build failpoint

package failpoint_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/payments/bank"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// books is the variable by which this binary is an MCP server with those books.
const books = "HOLDFAST_TEST_BOOKS"

func TestMain(m *testing.M) {
	if path := os.Getenv(books); path != "" {
		if err := bank.Main(path); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// alone runs the test in a process of its own, with rules, and returns what it says on standard error and what it
// traced and measured; in that process it runs act.
func alone(t *testing.T, rules string, act func(dir string)) (said string, trace, widths []string) {
	t.Helper()
	if dir := os.Getenv("HOLDFAST_TEST_DIR"); dir != "" {
		act(dir)
		os.Exit(0)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "HOLDFAST_TEST_DIR="+dir, "HOLDFAST_FAILPOINT="+rules,
		"HOLDFAST_FAILPOINT_TRACE="+filepath.Join(dir, "trace"), "HOLDFAST_FAILPOINT_WIDTH="+filepath.Join(dir, "widths"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return stderr.String(), lines(t, filepath.Join(dir, "trace")), lines(t, filepath.Join(dir, "widths"))
}

// lines returns the first word of each line, none if there is no file.
func lines(t *testing.T, path string) (out []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, word)
	}
	return out
}

// TestAStoreFailsAsItsFileSystemWould: the error comes from below all that the store does with one. A new store takes a
// read and a write to begin with.
func TestAStoreFailsAsItsFileSystemWould(t *testing.T) {
	t.Parallel()
	rules := "store.before_write:2=error:ENOSPC, store.before_write:3=error:EROFS, store.after_write:2=error:EIO, store.before_read:3=error:EIO"
	said, _, _ := alone(t, rules, func(dir string) {
		s, err := store.Open(t.Context(), store.Config{URL: "file://" + filepath.Join(dir, "store")})
		if err != nil {
			t.Fatal(err)
		}
		space := s.Space(agent.NewScope("s", "run"))
		for _, want := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO} {
			_, err := space.PutBody(t.Context(), []byte("kept"), "")
			body := agent.Body{Digest: agent.DigestOf([]byte("kept")), Size: 4}
			_, there := space.Body(t.Context(), body)
			fmt.Fprintln(os.Stderr, errors.Is(err, want), err, "| read:", there)
		}
	})
	for i, want := range []string{"the store is full: free space", "the store is read-only", "store.after_write 2"} {
		got := append(strings.Split(said, "\n"), "", "", "")[i]
		if !strings.HasPrefix(got, "true ") || !strings.Contains(got, want) {
			t.Errorf("write %d: %s, want %s", i+2, got, want)
		}
	}
	if !strings.Contains(said, "read: <nil>") || !strings.Contains(said, "failpoint store.before_read 3") {
		t.Errorf("%s, want one read to fail, and the last one to find what was written", said)
	}
}

// TestACallOfAnMCPServerIsNoticedWhenItLeaves: the handshake and the list of tools are no actions, and a question about a
// call is none either.
func TestACallOfAnMCPServerIsNoticedWhenItLeaves(t *testing.T) {
	t.Parallel()
	said, trace, widths := alone(t, "worker.ready=error", func(dir string) {
		server, err := tool.ConnectMCP(t.Context(), tool.MCPConfig{
			Name: "bank", Command: []string{os.Args[0]}, Env: []string{books + "=" + filepath.Join(dir, "books")},
			Tools: map[string]tool.Declaration{bank.Keyed: {Class: agent.ClassIdempotent}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for _, keyed := range server.Tools() {
			if !strings.HasSuffix(keyed.Spec().Name, bank.Keyed) {
				continue
			}
			ctx := tool.WithGate(failpoint.Sent(t.Context(), failpoint.ToolAfterSend), func() error { return nil })
			call := tool.Call{Key: "k", Args: `{"order":"42","amount":"19.90"}`, Scope: agent.NewScope("s", "run")}
			_, first := keyed.Do(ctx, call)
			_, second := keyed.Do(t.Context(), call)
			fmt.Fprintln(os.Stderr, first, second)
		}
	})
	if said != "<nil> <nil>\n" || !slices.Equal(trace, []string{failpoint.ToolAfterSend}) || len(widths) != 1 {
		t.Errorf("said %q, passed %v, measured %v; want two calls, the first of which passes its place", said, trace, widths)
	}
}
