//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// waker sends a process SIGCONT after a time and says so. It ends with all that it started when its input does, which
// happens however the process ends that it is to wake.
const waker = `{ sleep "$1"; kill -CONT "$2"; echo awake; } & read -r _; kill -9 0`

// freeze stops the whole process for a time, its heartbeats included, as a paused machine does.
func freeze(span time.Duration) error {
	pid := os.Getpid()
	cmd := exec.Command("/bin/sh", "-c", waker, "holdfast-waker", strconv.FormatFloat(span.Seconds(), 'f', 3, 64), strconv.Itoa(pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("failpoint: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("failpoint: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("failpoint: nobody would wake this process: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("failpoint: %w", err)
	}
	// The signal may reach another thread first: this one goes on only when the freeze is over.
	_, _ = out.Read(make([]byte, 1))
	_ = in.Close()
	_ = cmd.Wait()
	return nil
}
