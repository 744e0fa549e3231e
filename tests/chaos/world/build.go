package world

import (
	"bytes"
	"context"
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
	_, err := goCommand(ctx, "build", "-tags", "failpoint", "-o", l.bin+string(filepath.Separator), module, module+"/tests/chaos/world/bank")
	return err
}

func (l *Lab) worker() string { return filepath.Join(l.bin, "holdfast") }

func (l *Lab) bank() string { return filepath.Join(l.bin, "bank") }

// goCommand runs the go command and returns what it prints.
func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out.String(), nil
}

// writeFile makes the folder too.
func writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
