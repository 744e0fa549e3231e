//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// process is package state, which we have nowhere else: a failpoint is a property of the process, and
// handing one through every call would put it into builds that have none.
var process = sync.OnceValue(func() *points {
	rules, err := parse(os.Getenv("HOLDFAST_FAILPOINT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(2)
	}
	return &points{
		rules: rules, passed: map[string]int{},
		log: os.Getenv("HOLDFAST_FAILPOINT_LOG"), trace: os.Getenv("HOLDFAST_FAILPOINT_TRACE"),
		widths: os.Getenv("HOLDFAST_FAILPOINT_WIDTH"),
	}
})

// points counts the passings of one process; safe for concurrent use.
type points struct {
	rules  []rule
	log    string // of what acted
	trace  string // of every passing
	widths string // of the window before each send: see departure
	mu     sync.Mutex
	passed map[string]int
}

func (p *points) pass(name string) error {
	p.mu.Lock()
	p.passed[name]++
	n := p.passed[name]
	p.mu.Unlock()
	line := fmt.Sprintf("%s %d %d %d", name, n, time.Now().UnixNano(), os.Getpid())
	if err := note(p.trace, line, false); err != nil {
		return err
	}
	for _, r := range p.rules {
		if !r.acts(name, n) {
			continue
		}
		// Before anything happens: after a SIGKILL the line is the only witness.
		if err := note(p.log, line, true); err != nil {
			return err
		}
		if err := r.take(n); err != nil {
			return err
		}
	}
	return nil
}

// note appends a line to a file in one write, so that several processes may share it. Without a path it does nothing.
func note(path, line string, sync bool) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("failpoint log: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("failpoint log: %w", err)
	}
	if sync {
		return f.Sync()
	}
	return nil
}

// take does what the rule says at the n-th passing of its place.
func (r rule) take(n int) error {
	switch r.act {
	case actKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing more may happen
	case actFreeze:
		return freeze(r.span)
	case actHang:
		time.Sleep(r.span)
	case actFile:
		for {
			if _, err := os.Stat(r.path); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
	case actError:
		err := fmt.Errorf("failpoint %s %d", r.name, n)
		if r.errno != 0 {
			err = fmt.Errorf("%w: %w", err, r.errno)
		}
		return err
	}
	return nil
}
