package tool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

// npmServer returns the configuration of a server from npm, pinned in tests/mcp and installed by "make mcp".
func npmServer(t *testing.T, name string, args ...string) MCPConfig {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "tests", "mcp", "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(bin)
	}
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("needs Node and the servers of tests/mcp; install Node and run make mcp: %v", err)
	case err != nil:
		t.Skipf("NOTICE: not tested with %s: install Node and run make mcp: %v", name, err)
	}
	return MCPConfig{Name: "npm", Command: append([]string{bin}, args...), ListTimeout: defaultListTimeout}
}

func mustCall(t *testing.T, m *MCPServer, name, args string) string {
	t.Helper()
	got, err := callMCP(t, m, name, args)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNPMServerEverything(t *testing.T) {
	t.Parallel()
	m := startMCP(t, npmServer(t, "mcp-server-everything"))
	for _, l := range m.Listing() {
		if l.Problem != "" {
			t.Errorf("%s: %s", l.Tool, l.Problem)
		}
	}
	if _, err := NewSet(m.Tools()...); err != nil {
		t.Error(err)
	}
	if got := mustCall(t, m, "echo", `{"message":"hi ☃"}`); got != "Echo: hi ☃" {
		t.Errorf("%q", got)
	}
	if got := mustCall(t, m, "get-sum", `{"a":1,"b":2}`); !strings.Contains(got, "3") {
		t.Errorf("%q", got)
	}
	_, err := callMCP(t, m, "get-sum", `{"a":"x"}`)
	wantMeaning(t, err, OutcomeFailed, "a")
	if got := mustCall(t, m, "get-tiny-image", `{}`); !strings.Contains(got, "[image, image/png, ") || strings.Contains(got, "iVBOR") {
		t.Errorf("%q", got)
	}
	if got := mustCall(t, m, "get-structured-content", `{"location":"New York"}`); !strings.Contains(got, "temperature") {
		t.Errorf("%q", got)
	}
	// The tool says of itself that it only reads, and prints the environment: it gets to see none.
	for name := range parseEnv(t, mustCall(t, m, "get-env", `{}`)) {
		if name != "PATH" {
			t.Errorf("the server sees %s", name)
		}
	}
}

func parseEnv(t *testing.T, text string) map[string]any {
	t.Helper()
	var env map[string]any
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return env
}

func TestNPMServerFilesystem(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := npmServer(t, "mcp-server-filesystem", dir)
	cfg.Trusted = true
	m := startMCP(t, cfg)
	path := filepath.Join(dir, "a.txt")
	args, err := json.Marshal(map[string]string{"path": path, "content": "kept"})
	if err != nil {
		t.Fatal(err)
	}
	mustCall(t, m, "write_file", string(args))
	if b, err := os.ReadFile(path); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
	_, err = callMCP(t, m, "read_text_file", `{"path":"/etc/hostname"}`)
	wantMeaning(t, err, OutcomeFailed, "denied")
	if c := toolOf(t, m, "read_text_file").Spec().Class; c != agent.ClassRead {
		t.Errorf("class %s", c)
	}
}

func TestNPMServerMemory(t *testing.T) {
	t.Parallel()
	cfg := npmServer(t, "mcp-server-memory")
	cfg.Env = []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.json")}
	m := startMCP(t, cfg)
	mustCall(t, m, "create_entities", `{"entities":[{"name":"holdfast","entityType":"root","observations":["grips rock"]}]}`)
	if got := mustCall(t, m, "read_graph", `{}`); !strings.Contains(got, "grips rock") {
		t.Errorf("%q", got)
	}
}

func TestNPMServerSequentialThinking(t *testing.T) {
	t.Parallel()
	m := startMCP(t, npmServer(t, "mcp-server-sequential-thinking"))
	got := mustCall(t, m, "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`)
	if !strings.Contains(got, "thoughtNumber") {
		t.Errorf("%q", got)
	}
}

func TestNPMServerThatTalksOnStandardOutput(t *testing.T) {
	t.Parallel()
	_, err := ConnectMCP(t.Context(), npmServer(t, "time-mcp"), nil)
	if err == nil || !strings.HasPrefix(err.Error(), `mcp server "npm": printed "`) ||
		!strings.Contains(err.Error(), "on its standard output, which is reserved for the protocol; ") {
		t.Errorf("got %v", err)
	}
}
