package docs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// patience bounds every wait. Nothing waits for it when all goes well.
const patience = 3 * time.Minute

// program builds a main package of this module once and returns the binary.
func program(t *testing.T, pkg string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs programs, with the Temporal dev server")
	}
	built.Lock()
	defer built.Unlock()
	if path, ok := built.paths[pkg]; ok {
		return path
	}
	file(t, pkg+"/main.go") // the test cache sees what this process opens, and not what the go command does
	path := filepath.Join(built.dir, filepath.Base(pkg)+".bin")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s does not build: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

// built are the programs that the tests of this package share.
var built = struct {
	sync.Mutex
	dir   string
	paths map[string]string
}{paths: map[string]string{}}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "holdfast-docs-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		built.dir = dir
		return m.Run()
	}())
}

// dev runs "dev" in a folder, as the documents say, and returns the address of its server.
func dev(t *testing.T, binary, dir string, env ...string) string {
	t.Helper()
	cmd := exec.Command(binary, "dev", "--port", "0", "--ui-port", "0", "-o", "json")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		hard := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer hard.Stop()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("dev: %v\n%s", err, stderr.String())
		}
	})
	var ready struct {
		Address string `json:"address"`
	}
	line := make(chan []byte, 1)
	go func() {
		b, _ := bufio.NewReader(out).ReadBytes('\n') // an empty line is no JSON
		line <- b
	}()
	select {
	case b := <-line:
		if err := json.Unmarshal(b, &ready); err != nil {
			t.Fatalf("dev said %q: %v", b, err)
		}
	case <-time.After(patience):
		t.Fatal("dev was not ready")
	}
	return ready.Address
}

// ask runs "run AGENT MESSAGE" and returns the answer.
func ask(t *testing.T, binary, dir, address string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append(append([]string{"run"}, args...), "--address", address)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run: %v\n%s", err, stderr.String())
	}
	return string(out)
}

// scripted is a model that calls one tool and then says what it was told.
func scripted(t *testing.T, name, args string) *modeltest.Server {
	t.Helper()
	return modeltest.ForTest(t, modeltest.Config{Func: func(r modeltest.Request) modeltest.Step {
		if results := r.Results(); len(results) > 0 {
			return modeltest.Say("The tool says: " + results[len(results)-1])
		}
		return modeltest.Want(modeltest.Call{ID: "call_1", Name: name, Args: args})
	}})
}

// The ten lines of YAML run, with a model server and an encyclopedia of ours in the place of theirs.
func TestTheFirstAgentOfTheReadmeAnswers(t *testing.T) {
	t.Parallel()
	binary := program(t, ".")
	const path = "examples/lookup/holdfast.yaml"
	text := whole(t, path)
	if n := strings.Count(text, "\n"); n != 10 {
		t.Errorf("README.md promises ten lines of YAML, these are %d", n)
	}
	model := scripted(t, "lookup", `{"word":"Tern Stone"}`)
	encyclopedia := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("asked for " + r.URL.EscapedPath()))
	}))
	t.Cleanup(encyclopedia.Close)
	text = replace(t, text, "http://127.0.0.1:11434/v1", model.URL())
	text = replace(t, text, "https://en.wikipedia.org", encyclopedia.URL)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "holdfast.yaml"), text)
	got := ask(t, binary, dir, dev(t, binary, dir), "reader", "What is a tern stone?")
	if want := "asked for /api/rest_v1/page/summary/Tern%20Stone"; !strings.Contains(got, want) {
		t.Errorf("the agent answered %q, want %q in it", got, want)
	}
}

// The thirty lines of Go run, with a model server of ours.
func TestTheProgramOfTheReadmeCounts(t *testing.T) {
	t.Parallel()
	const path = "examples/library/main.go"
	if n := strings.Count(whole(t, path), "\n"); n > 30 {
		t.Errorf("README.md promises thirty lines of Go, these are %d", n)
	}
	binary := program(t, "./examples/library")
	model := scripted(t, "count_words", `{"text":"one two three four five six seven"}`)
	dir := t.TempDir()
	text := replace(t, file(t, "examples/library/holdfast.yaml"), "    key: env:OPENAI_API_KEY\n",
		"    key: env:OPENAI_API_KEY\n    base_url: "+model.URL()+"\n")
	write(t, filepath.Join(dir, "holdfast.yaml"), text)
	got := ask(t, binary, dir, dev(t, binary, dir, "OPENAI_API_KEY=sk-docs-test-0001"), "editor", "How many words?")
	if want := "The tool says: 7"; !strings.Contains(got, want) {
		t.Errorf("the agent answered %q, want %q in it", got, want)
	}
}

// whole returns a file that README.md shows as a whole.
func whole(t *testing.T, path string) string {
	t.Helper()
	for _, b := range read(t, "README.md").blocks {
		if len(b.info) > 1 && b.info[1] == path {
			if b.text != file(t, path) {
				t.Errorf("%s is not %s", b, path)
			}
			return b.text
		}
	}
	t.Fatalf("README.md does not show %s", path)
	return ""
}

func replace(t *testing.T, text, old, with string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("no %q in:\n%s", old, text)
	}
	return strings.Replace(text, old, with, 1)
}

var (
	folder = regexp.MustCompile(`/\S*holdfast-demo-\S*`)
	hex    = regexp.MustCompile(`\b[0-9a-f]{8,}\b`)
	number = regexp.MustCompile(`\d+(\.\d+)?`)
	gaps   = regexp.MustCompile(` +`)
)

// shape is a line of the demo without what differs from run to run.
func shape(line string) string {
	line = hex.ReplaceAllString(folder.ReplaceAllString(line, "DIR"), "#")
	return strings.TrimSpace(gaps.ReplaceAllString(number.ReplaceAllString(line, "#"), " "))
}

func TestTheDemoPrintsWhatTheReadmeShows(t *testing.T) {
	t.Parallel()
	binary := program(t, ".")
	cmd := exec.CommandContext(t.Context(), binary, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "OPENAI_MODEL=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("demo: %v\n%s%s", err, out, stderr.String())
	}
	printed := map[string]bool{}
	for line := range strings.SplitSeq(string(out), "\n") {
		printed[shape(line)] = true
	}
	for _, b := range blocks(t, "text", "demo") {
		for line := range strings.SplitSeq(b.text, "\n") {
			if s := shape(line); s != "..." && !printed[s] {
				t.Errorf("%s: the demo does not print this line: %s\nit prints:\n%s", b, line, out)
			}
		}
	}
}
