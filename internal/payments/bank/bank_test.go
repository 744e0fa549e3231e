package bank_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/internal/payments/bank"
	"github.com/holdfast-run/holdfast/tool"
)

// books names the books of the bank that this test binary is when it is set.
const books = "HOLDFAST_BANK"

func TestMain(m *testing.M) {
	if path := os.Getenv(books); path != "" {
		if err := bank.Main(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

// open starts a bank of its own process and connects to it.
func open(t *testing.T, path string) *mcp.ClientSession {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), books+"="+path)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// call calls a tool under a key; empty sends none. It returns the answer's text, or the error that the tool answered with.
func call(ctx context.Context, s *mcp.ClientSession, name, key, amount string) (string, error) {
	p := &mcp.CallToolParams{Name: name, Arguments: map[string]any{"order": "42", "amount": amount}}
	if key != "" {
		p.Meta = mcp.Meta{tool.MCPKey: key}
	}
	res, err := s.CallTool(ctx, p)
	if err != nil {
		return "", err
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

// read returns the books, without the time of day.
func read(t *testing.T, path string) []bank.Transfer {
	t.Helper()
	all, err := bank.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if time.Since(all[i].At) > time.Hour {
			t.Errorf("it says that it was made at %v", all[i].At)
		}
		all[i].At = time.Time{}
	}
	return all
}

func transfer(name, key string, made bool) bank.Transfer {
	return bank.Transfer{Tool: name, Key: key, Order: "42", Amount: "19.90", Made: made}
}

func TestEachToolTreatsARepeatAsItIsDeclared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books")
	for range 2 { // a second process finds what the first one wrote
		s := open(t, path)
		for _, name := range []string{bank.Blind, bank.Asked, bank.Keyed} {
			if text, err := call(t.Context(), s, name, "k", "19.90"); err != nil || text != "refunded 42" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	want := []bank.Transfer{
		transfer("blind", "k", true), transfer("asked", "k", true), transfer("keyed", "k", true),
		transfer("blind", "k", true), transfer("asked", "k", true), transfer("keyed", "k", false),
	}
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("books (-want +got):\n%s", diff)
	}
}

func TestOnlyTheToolThatCanBeAskedIsFound(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "books"))
	find := func() string {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "find", Arguments: map[string]any{"key": "k"}})
		if err != nil || res.IsError {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	if text := find(); text != `{"transfers":[]}` {
		t.Errorf("before: %s", text)
	}
	for _, name := range []string{bank.Keyed, bank.Blind, bank.Asked} {
		if _, err := call(t.Context(), s, name, "k", "19.90"); err != nil {
			t.Error(err)
		}
	}
	if text := find(); strings.Count(text, `"tool"`) != 1 || !strings.Contains(text, `"tool":"asked"`) {
		t.Errorf("after: %s", text)
	}
}

func TestAKeyThatHidesSomethingIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books")
	s := open(t, path)
	if _, err := call(t.Context(), s, bank.Keyed, "", "19.90"); err == nil || !strings.Contains(err.Error(), "no idempotency key") {
		t.Errorf("without a key: %v", err)
	}
	if _, err := call(t.Context(), s, bank.Keyed, "k", "19.90"); err != nil {
		t.Error(err)
	}
	if _, err := call(t.Context(), s, bank.Keyed, "k", "1.00"); err == nil || !strings.Contains(err.Error(), "another refund") {
		t.Errorf("another amount under the same key: %v", err)
	}
	if diff := cmp.Diff([]bank.Transfer{transfer("keyed", "k", true)}, read(t, path)); diff != "" {
		t.Errorf("books (-want +got):\n%s", diff)
	}
}

// TestTwoBanksWithTheSameBooksMakeOneEntryOfAKey is a frozen worker whose bank wakes beside its successor's.
func TestTwoBanksWithTheSameBooksMakeOneEntryOfAKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books")
	var all sync.WaitGroup
	for range 2 {
		s := open(t, path)
		for range 10 {
			all.Go(func() {
				if _, err := call(t.Context(), s, bank.Keyed, "k", "19.90"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	made := 0
	for _, x := range read(t, path) {
		if x.Made {
			made++
		}
	}
	if n := len(read(t, path)); made != 1 || n != 20 {
		t.Errorf("%d entries of %d requests, want one of 20", made, n)
	}
}

func TestARequestThatADeathHasCutSpoilsNothingButItself(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books")
	s := open(t, path)
	for _, key := range []string{"a", "b"} {
		if _, err := call(t.Context(), s, bank.Keyed, key, "19.90"); err != nil {
			t.Error(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "\n"+`{"tool":"keyed","key":"b","order":"4`); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	want := []bank.Transfer{transfer("keyed", "a", true), transfer("keyed", "b", true)}
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("books (-want +got):\n%s", diff)
	}
}

func TestEachFaultLeavesWhatItSaysAndTheNextCallIsWell(t *testing.T) {
	t.Parallel()
	for fault, c := range map[payments.Fault]struct {
		entered, answers, ends bool
	}{
		payments.FaultNone:    {entered: true, answers: true},
		payments.FaultRefuse:  {},
		payments.FaultLose:    {ends: true},
		payments.FaultDrop:    {entered: true, ends: true},
		payments.FaultSilence: {entered: true},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "books")
			s := open(t, path)
			if err := bank.Inflict(path, fault); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answer := make(chan error, 1)
			go func() {
				_, err := call(ctx, s, bank.Blind, "k", "19.90")
				answer <- err
			}()
			if fault == payments.FaultSilence {
				silent(t, path, answer)
				cancel()
			}
			if err := <-answer; (err == nil) != c.answers {
				t.Errorf("answer: %v", err)
			}
			var want []bank.Transfer
			if c.entered {
				want = append(want, transfer("blind", "k", true))
			}
			if diff := cmp.Diff(want, read(t, path), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("books (-want +got):\n%s", diff)
			}
			if c.ends {
				s = open(t, path)
			}
			if _, err := call(t.Context(), s, bank.Blind, "k", "19.90"); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// silent waits for an entry, and a while longer for the answer that should not come.
func silent(t *testing.T, path string, answer <-chan error) {
	t.Helper()
	for began := time.Now(); len(read(t, path)) == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing was entered")
		}
	}
	select {
	case err := <-answer:
		t.Fatalf("it was answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestFaultsArePlayedInOrderOneForEachCallByWhicheverBank(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books")
	if err := bank.Inflict(path, payments.FaultNone, payments.FaultRefuse); err != nil {
		t.Fatal(err)
	}
	if err := bank.Inflict(path, payments.FaultRefuse); err != nil {
		t.Fatal(err)
	}
	first, second := open(t, path), open(t, path)
	var refused []bool
	for _, s := range []*mcp.ClientSession{first, second, first, second} {
		_, err := call(t.Context(), s, bank.Asked, "k", "19.90")
		refused = append(refused, err != nil)
	}
	if diff := cmp.Diff([]bool{false, true, true, false}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if err := bank.Inflict(path, payments.FaultError); err == nil {
		t.Error("it takes a fault that it cannot play")
	}
}
