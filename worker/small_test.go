package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/internal/secret"
)

func TestTheBuildIDNamesCodeThatCanBeFoundAgain(t *testing.T) {
	t.Parallel()
	vcs := func(rev, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: rev}, {Key: "vcs.modified", Value: modified}}}
	}
	released := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"clean tree", vcs("0123456789abcdef0123", "false"), "0123456789ab"},
		{"modified tree", vcs("0123456789abcdef0123", "true"), ""},
		{"release", released, "v1.2.3"},
		{"nothing known", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, ""},
		{"no information", nil, ""},
	} {
		if got := buildID(tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if id := BuildID(); id == "" || id != BuildID() {
		t.Errorf("BuildID is %q", id)
	}
}

func TestNothingThatIsLoggedShowsASecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := secret.New("sk-hidden-value")
	l := slog.New(maskHandler{slog.NewTextHandler(&out, nil), func() *secret.Mask { return m }})
	l.With("with", "sk-hidden-value").WithGroup("g").Error("message sk-hidden-value",
		"text", "a sk-hidden-value b", "error", errors.New("sk-hidden-value"), "bytes", []byte("x"),
		slog.Group("inner", "struct", struct{ A string }{"sk-hidden-value"}), "number", 7)
	if got := out.String(); strings.Contains(got, "sk-hidden") || strings.Count(got, secret.Placeholder) != 5 || !strings.Contains(got, "number=7") {
		t.Errorf("logged: %s", got)
	}
}

func TestOnlyAConfigurationThatWasReadWholeIsRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	text := "models: {m: {base_url: 'http://127.0.0.1:1/v1', key: env:NOT_SET_HERE}}\nagents: {a: {instructions: help}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	partly, err := LoadStore(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Config{"for the store": partly, "by hand": {}} {
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "read it with Load") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
