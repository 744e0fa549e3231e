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

// saidLast is how many bytes of what each worker said are shown.
const saidLast = 8 << 10

// Said is the end of what each worker has said so far. All of it is in the world's folder.
func (w *World) Said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, p := range w.workers {
		fmt.Fprintf(&b, "--- %s, process %d\n%s\n", filepath.Base(p.log), p.PID(), p.said())
	}
	return b.String()
}

func (p *Worker) said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(b) > saidLast {
		_, b, _ = bytes.Cut(b[len(b)-saidLast:], []byte("\n"))
		return "...\n" + string(b)
	}
	return string(b)
}

// Holdfast runs the command line of the workers' program. Its exit code is no error.
func (w *World) Holdfast(ctx context.Context, args ...string) (stdout, stderr string, exit int, err error) {
	cmd := exec.CommandContext(ctx, w.lab.worker(), args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.Dir, &out, &errs
	cmd.Env = append(environ(), "TEMPORAL_ADDRESS="+w.Server.Address())
	if err = cmd.Run(); cmd.ProcessState != nil && cmd.ProcessState.Exited() {
		err = nil
	}
	if err != nil {
		return "", "", -1, fmt.Errorf("holdfast %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode(), nil
}
