package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"time"
)

// nobodyLeft fails when a process lives on that the demo has started. One that was sent its death signal may
// take a moment to go.
func (r *run) nobodyLeft() {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := r.living()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Errorf("processes left behind: %q", left)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// living returns the command lines of the processes that carry the mark.
func (r *run) living() []string {
	var left []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		// Processes end while we look: an error is one that is gone or not ours.
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte(r.mark)) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		left = append(left, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
	}
	return left
}
