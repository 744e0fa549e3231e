package devserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestVersionDecidesWhetherATemporalIsNewEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		out string
		ok  bool
	}{
		{"temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)", true},
		{"temporal version 1.5.0 (Server 1.29.1, UI 2.42.1)", true},
		{"temporal version 1.10.2 (Server 1.32.1, UI 2.54.1)", true},
		{"temporal version 2.0.0", true},
		{"temporal version 1.4.9 (Server 1.28.0, UI 2.40.0)", false},
		{"temporal version 1.0.0 (server 1.24.1) (ui 2.27.2)", false},
		{"temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)", true}, // built from source, as `make tools` does
		{"temporal version 0.0.0-DEV (Server 1.20.0, UI 2.42.1)", false},
		{"temporal version 0.0.0-DEV", false},
		{"temporal version 1.5", false},
		{"tctl 1.18", false},
		{"", false},
	} {
		if found, ok := parseVersion(c.out); ok != c.ok {
			t.Errorf("parseVersion(%q) = %q, %v; want %v", c.out, found, ok, c.ok)
		}
	}
}

func TestOldTemporalIsReportedWithWhatToDo(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"old":     "echo temporal version 1.0.0",
		"strange": "echo hello",
		"broken":  "exit 3",
	} {
		path := fake(t, script)
		_, err := Find(context.Background(), path)
		var old *OldError
		if !errors.As(err, &old) {
			t.Fatalf("%s: Find = %v; want an OldError", name, err)
		}
		for _, part := range []string{path, Wanted, "make tools", EnvBinary} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not mention %q", name, err, part)
			}
		}
	}
}

func TestMissingExplicitTemporalIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Find(context.Background(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("Find found a command that is not there")
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)")
	f.Add("temporal version 99999999999999999999.0.0")
	f.Fuzz(func(t *testing.T, s string) { parseVersion(s) })
}

// fake makes a shell script that stands in for the temporal command.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "temporal")
	// A process forked meanwhile would hold the file open for writing: "text file busy" (golang.org/issue/22315).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
