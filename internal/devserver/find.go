package devserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// EnvBinary is the environment variable that names the temporal command to use.
const EnvBinary = "HOLDFAST_TEMPORAL"

// Wanted is the version of the temporal command that holdfast is tested with.
const Wanted = "1.5.1"

const howToGetOne = "run `make tools` or set " + EnvBinary

// minimum is compared with what "temporal --version" says. A command built from source calls itself
// 0.0.0-DEV; then the server in it decides.
var (
	minimum       = version{1, 5, 0}
	minimumServer = version{1, 29, 0}
)

// ErrNotFound is returned by [Find] when there is no temporal command anywhere.
var ErrNotFound = errors.New("no `temporal` command found: " + howToGetOne)

// An OldError reports a temporal command that is too old or that says something else than its version.
type OldError struct {
	Path  string
	Found string // what it says of itself; empty when that cannot be understood
	Cause error  // why it could not be asked, if so
}

func (e *OldError) Error() string {
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("found temporal at %s but cannot ask for its version (%v); holdfast needs %s or newer: %s",
			e.Path, e.Cause, Wanted, howToGetOne)
	case e.Found == "":
		return fmt.Sprintf("found temporal of unknown version at %s; holdfast needs %s or newer: %s", e.Path, Wanted, howToGetOne)
	}
	return fmt.Sprintf("found temporal %s at %s; holdfast needs %s or newer: %s", e.Found, e.Path, Wanted, howToGetOne)
}

func (e *OldError) Unwrap() error { return e.Cause }

// Find returns the path of a temporal command that is new enough. It takes the first there is of: explicit,
// the one that HOLDFAST_TEMPORAL names, one beside this program (or in bin/ there), bin/temporal of the
// holdfast repository that the current folder is in, and the PATH's. One that is too old is reported as an
// [*OldError] and not passed over in silence.
func Find(ctx context.Context, explicit string) (string, error) {
	path, err := locate(explicit)
	if err != nil {
		return "", err
	}
	return path, checkVersion(ctx, path)
}

func locate(explicit string) (string, error) {
	if explicit == "" {
		explicit = os.Getenv(EnvBinary)
	}
	if explicit != "" {
		path, err := exec.LookPath(explicit)
		if err != nil {
			return "", fmt.Errorf("temporal command %q: %w: %s", explicit, err, howToGetOne)
		}
		return path, nil
	}
	for _, path := range candidates() {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	path, err := exec.LookPath("temporal")
	if err != nil {
		return "", ErrNotFound
	}
	return filepath.Abs(path)
}

func candidates() []string {
	var paths []string
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		paths = append(paths, filepath.Join(dir, "temporal"), filepath.Join(dir, "bin", "temporal"))
	}
	dir, err := os.Getwd()
	for err == nil {
		// Only our own repository: what lies in bin/ of somebody else's folder is not for us to run.
		if b, readErr := os.ReadFile(filepath.Join(dir, "go.mod")); readErr == nil &&
			bytes.HasPrefix(b, []byte("module github.com/holdfast-run/holdfast\n")) {
			return append(paths, filepath.Join(dir, "bin", "temporal"))
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return paths
}

func checkVersion(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = environ()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return &OldError{Path: path, Cause: err}
	}
	found, ok := parseVersion(string(out))
	if !ok {
		return &OldError{Path: path, Found: found}
	}
	return nil
}

type version [3]int

func (v version) less(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

var (
	commandVersion = regexp.MustCompile(`temporal version v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(\S*)`)
	serverVersion  = regexp.MustCompile(`[Ss]erver (\d{1,6})\.(\d{1,6})\.(\d{1,6})`)
)

// parseVersion reads what "temporal --version" prints, for instance "temporal version 1.5.1 (Server
// 1.29.1, UI 2.42.1)". It returns the command's version as printed and whether it is new enough.
func parseVersion(out string) (found string, ok bool) {
	m := commandVersion.FindStringSubmatch(out)
	if m == nil {
		return "", false
	}
	found = strings.TrimSuffix(strings.TrimPrefix(m[0], "temporal version "), ",")
	if v := toVersion(m[1:4]); v != (version{}) {
		return found, !v.less(minimum)
	}
	s := serverVersion.FindStringSubmatch(out)
	if s == nil {
		return found, false
	}
	return found + " with server " + strings.Join(s[1:4], "."), !toVersion(s[1:4]).less(minimumServer)
}

func toVersion(parts []string) (v version) {
	for i, p := range parts {
		v[i], _ = strconv.Atoi(p) // digits only, as matched
	}
	return v
}
