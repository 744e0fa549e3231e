package tooling

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// copyOf makes a tools folder with the real tools/temporal.sh and a build.sh that only says that it ran.
func copyOf(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, name := range []string{"tools/temporal.sh", "tools/go.mod"} {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		script(t, filepath.Join(root, name), string(b))
	}
	script(t, filepath.Join(root, "tools/build.sh"), "#!/bin/sh\necho built \"$1\" from \"$2\"\n")
	return root
}

func script(t *testing.T, path, text string) {
	t.Helper()
	// A process forked meanwhile would hold the file open for writing: "text file busy" (golang.org/issue/22315).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestATemporalThatIsNewEnoughIsUsedAndAnyOtherIsBuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says  string // body of the temporal on the PATH; empty is none there
		build bool
	}{
		"the pinned one":   {`echo "temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)"`, false},
		"a newer one":      {`echo "temporal version 1.10.0 (Server 1.32.1, UI 2.54.1)"`, false},
		"an older one":     {`echo "temporal version 1.5.0 (Server 1.29.0, UI 2.42.0)"`, true},
		"a much older one": {`echo "temporal version 0.13.2 (server 1.24.1) (ui 2.27.2)"`, true},
		"built by hand":    {`echo "temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)"`, true},
		"something else":   {`echo "hello"`, true},
		"a broken one":     {`exit 3`, true},
		"none":             {``, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, bin := copyOf(t), t.TempDir()
			want := filepath.Join(root, "bin/temporal")
			if c.says != "" {
				script(t, filepath.Join(bin, "temporal"), "#!/bin/sh\n"+c.says+"\n")
			}
			if !c.build {
				want = filepath.Join(bin, "temporal")
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, "tools/temporal.sh"))
			cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if got := strings.TrimSpace(string(out)); got != want {
				t.Errorf("path %q, want %q", got, want)
			}
			if built := strings.Contains(stderr.String(), "built temporal from tools"); built != c.build {
				t.Errorf("built %v, want %v; it said:\n%s", built, c.build, stderr.String())
			}
		})
	}
}

func TestTheVariableNamesTheTemporalToUse(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), filepath.Join(copyOf(t), "tools/temporal.sh"))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOLDFAST_TEMPORAL=/opt/my/temporal"}
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "/opt/my/temporal" {
		t.Errorf("path %q, %v, want the variable's", got, err)
	}
}
