package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// BuildClock builds the workers whose clock is off by an hour, which otherwise [Lab.New] does when the first world wants
// one. It takes seconds.
func (l *Lab) BuildClock() error {
	_, ahead := l.shifted(context.Background(), time.Hour)
	_, behind := l.shifted(context.Background(), -time.Hour)
	return errors.Join(ahead, behind)
}

// shifted returns the worker whose wall clock is off by a time, which is built when the first world wants it.
func (l *Lab) shifted(ctx context.Context, off time.Duration) (path string, err error) {
	l.clocks.Lock()
	defer l.clocks.Unlock()
	seconds := int(off.Seconds())
	dir := filepath.Join(l.dir, "clocks", fmt.Sprint(seconds))
	path = filepath.Join(dir, "holdfast")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	l.say("building the worker whose clock is off by %s", off)
	archive, err := shiftedTime(ctx, dir, seconds)
	if err != nil {
		return "", err
	}
	return path, linkWith(ctx, dir, archive, path)
}

// In time.Now: from here on it has read both clocks.
const readClocks = "\tmono -= startNano\n\tsec += unixToInternal - minWall\n"

// shiftedTime compiles the standard library's package time with a time.Now that is off, so that all of a process is
// deceived. What is measured by the monotonic clock stays right, as it does on a machine whose clock is off.
func shiftedTime(ctx context.Context, dir string, seconds int) (archive string, err error) {
	root, err := goCommand(ctx, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(root), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), readClocks); n != 1 {
		return "", fmt.Errorf("%s reads the clocks %d times as this harness knows it, want once: mend readClocks for this version of Go", original, n)
	}
	edited := filepath.Join(dir, "time.go")
	off := strings.Replace(readClocks, "sec += ", fmt.Sprintf("sec += %d + ", seconds), 1)
	if err := writeFile(edited, []byte(strings.Replace(string(text), readClocks, off, 1))); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{original: edited}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := writeFile(list, b); err != nil {
		return "", err
	}
	// With the name that the original has in it, the package differs from it in one function's body alone: what was
	// compiled against the original can be linked with it, which the linker makes sure of.
	name := "-gcflags=time=-trimpath=" + edited + "=>$GOROOT/src/time/time.go"
	out, err := goCommand(ctx, "list", "-export", "-overlay", list, name, "-f", "{{.Export}}", "time")
	return strings.TrimSpace(out), err
}

var timeLine = regexp.MustCompile(`(?m)^packagefile time=.*$`)

// linkWith links the worker with another package time. To compile it with one would be to compile everything anew.
func linkWith(ctx context.Context, dir, archive, to string) error {
	const form = "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}"
	packages, err := goCommand(ctx, "list", "-deps", "-export", "-tags", "failpoint", "-f", form, module)
	if err != nil {
		return err
	}
	if !timeLine.MatchString(packages) {
		return errors.New("the worker does not use package time: its clock cannot be off")
	}
	_, main, _ := strings.Cut(packages, "packagefile "+module+"=")
	main, _, _ = strings.Cut(main, "\n")
	config := filepath.Join(dir, "importcfg")
	if err := writeFile(config, []byte(timeLine.ReplaceAllLiteralString(packages, "packagefile time="+archive))); err != nil {
		return err
	}
	_, err = goCommand(ctx, "tool", "link", "-s", "-w", "-importcfg", config, "-o", to+".next", main)
	if err != nil {
		return err
	}
	return os.Rename(to+".next", to)
}
