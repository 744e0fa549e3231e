package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// A process is a variant's worker as the bench sees it.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *bytes.Buffer
}

// spawn starts this program again as a worker and returns when it polls.
func spawn(args ...string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(exe, append([]string{"worker"}, args...)...), err: &bytes.Buffer{}}
	p.cmd.Stderr = p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for the bench
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if !p.out.Scan() || p.out.Text() != "ready" {
		p.stop()
		return nil, fmt.Errorf("worker %q did not start: %s", args, p.err)
	}
	return p, nil
}

// stop closes the worker's standard input, which ends it.
func (p *process) stop() {
	_ = p.in.Close()
	ended := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-ended
	}
}

// requests asks the worker how many requests it has made, by operation.
func (p *process) requests() (map[string]int64, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return nil, fmt.Errorf("worker died: %w: %s", err, p.err)
	}
	if !p.out.Scan() {
		return nil, fmt.Errorf("worker died: %s", p.err)
	}
	var n map[string]int64
	return n, json.Unmarshal(p.out.Bytes(), &n)
}

// tick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux that Go runs on (proc(5)).
const tick = 10 * time.Millisecond

// cpu returns the CPU time that a process has used, of the user and of the system.
func cpu(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(b)
}

// parseStat reads fields 14 and 15. The second field, the name, may hold anything but ends with the last ")".
func parseStat(b []byte) (time.Duration, error) {
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("not a line of /proc/<pid>/stat: %q", b)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("not a line of /proc/<pid>/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
