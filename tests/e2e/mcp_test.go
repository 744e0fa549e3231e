package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// mcpServer returns the command of an MCP server from npm that nobody here wrote.
func mcpServer(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../mcp/node_modules/.bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		_, err = exec.LookPath("node")
	}
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("CI needs Node and `make mcp`: %v", err)
	case err != nil:
		t.Skipf("skipped: install Node and run `make mcp`: %v", err)
	}
	return path
}

func TestAnMCPServerThatWritesIsToldOnceThoughTheWorkerDies(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "mcp-server-filesystem")
	dir := t.TempDir()
	note := filepath.Join(dir, "note.txt")
	script := func(r modeltest.Request) modeltest.Step {
		switch len(r.Results()) {
		case 0:
			return modeltest.Want(modeltest.Call{ID: "call_w", Name: "files__write_file", Args: fmt.Sprintf(`{"path":%q,"content":"kept"}`, note)})
		case 1:
			return modeltest.Want(modeltest.Call{ID: "call_r", Name: "files__read_text_file", Args: fmt.Sprintf(`{"path":%q}`, note)})
		}
		return modeltest.Say("The note says: " + r.Results()[1])
	}
	for _, point := range []string{"", failpoint.ToolBeforeDispatch, failpoint.ToolAfterCommit, failpoint.ToolAfterAdoption} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setting{
				model: modeltest.Config{Func: script}, tools: `["files.write_file", "files.read_text_file"]`,
				toolsYML: fmt.Sprintf(`  files:
    mcp: {command: [%q, %q]}
    tools:
      read_text_file: {effect: read}
      write_file: {effect: once, timeout: 2s}
`, server, dir),
			})
			if point == "" {
				r.worker("")
				r.start("s", "Keep a note.")
			} else {
				dying := r.worker(point + ":1=kill")
				r.start("s", "Keep a note.")
				r.died(dying)
				r.worker("")
			}
			res := r.ended("s", 1)
			if res.Status != agent.StatusDone {
				t.Fatalf("result %+v", res)
			}
			uncertain := 0
			if point == failpoint.ToolAfterCommit {
				uncertain = 1 // a server that cannot be asked leaves nobody who knows
			}
			if len(res.Effects) != uncertain {
				t.Errorf("effects %+v", res.Effects)
			}
			if b, err := os.ReadFile(note); err != nil || strings.TrimSpace(string(b)) != "kept" {
				t.Errorf("the note holds %q, error %v", b, err)
			}
		})
	}
}
