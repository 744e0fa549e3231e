package world

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/holdfast-run/holdfast"

// build makes the programs: the worker with failpoints, and the bank that it starts as an MCP server.
func (l *Lab) build(ctx context.Context) error {
	l.say("building the worker")
	return goBuild(ctx, "-tags", "failpoint", "-o", l.bin+string(filepath.Separator), module, module+"/tests/chaos/world/bank")
}

func (l *Lab) worker() string { return filepath.Join(l.bin, "holdfast") }

func (l *Lab) bank() string { return filepath.Join(l.bin, "bank") }

// BuildClock builds the worker whose wall clock can be off, which [Lab.New] otherwise does when the first world
// wants one. Everything is compiled anew for it, the standard library included: minutes of a processor, once.
func (l *Lab) BuildClock() error {
	_, err := l.clock()
	return err
}

// clockEnv holds by how many seconds the wall clock of a shifted program is off.
const clockEnv = "HOLDFAST_CHAOS_CLOCK"

func (l *Lab) buildShifted(ctx context.Context) (string, error) {
	l.say("building the worker whose clock is off, which takes minutes the first time")
	list, err := shift(ctx, filepath.Join(l.dir, "clock"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(l.bin, "holdfast-shifted")
	return path, goBuild(ctx, "-tags", "failpoint", "-overlay", list, "-o", path, module)
}

// shift writes the standard library's time.Now anew, with an offset, and returns the list of what is replaced that
// the go command takes. Time that is measured by the monotonic clock stays right, as it does on a machine whose
// clock is off.
func shift(ctx context.Context, dir string) (list string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	lib := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(lib, "time.go"))
	if err != nil {
		return "", err
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if n := strings.Count(string(source), now); n != 1 {
		return "", fmt.Errorf("%s has time.Now %d times as this harness knows it, want once: mend shift for this version of Go", lib, n)
	}
	replace := map[string]string{}
	for name, text := range map[string]string{
		"time.go":  strings.Replace(string(source), now, now+"\tsec += shifted\n", 1),
		"shift.go": shifted,
	} {
		replace[filepath.Join(lib, name)] = filepath.Join(dir, name)
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, writeFile(list, b)
}

const shifted = `package time

import "syscall"

var shifted = func() int64 {
	text, found := syscall.Getenv("` + clockEnv + `")
	if !found {
		return 0
	}
	n, err := atoi(text)
	if err != nil {
		panic("` + clockEnv + `: want seconds")
	}
	return int64(n)
}()
`

func goBuild(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// writeFile makes the folder too.
func writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
