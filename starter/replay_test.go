package starter

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/deploy"
)

// ran is how a command ended.
type ran struct {
	code     int
	out, err string
}

// command runs a command in this process.
func command(stdin string, args ...string) ran {
	var out, errs bytes.Buffer
	code := Main(args, strings.NewReader(stdin), &out, &errs)
	return ran{code, out.String(), errs.String()}
}

const savedTurn = "../tests/histories/0.2.0/turn-approved.json"

func saved(t *testing.T, edits ...string) string {
	t.Helper()
	b, err := os.ReadFile(savedTurn)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("the history does not have %q", edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	return text
}

func TestSavedHistoriesReplayWithoutAServer(t *testing.T) {
	t.Parallel()
	got := command("", "replay", "../tests/histories/0.1.0", "../tests/histories/0.2.0", "--address", "127.0.0.1:1")
	if got.code != ExitDone || got.err != "" {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{"Session: 37 histories, 37 replay, 0 do not (number 1: 14, number 2: 23)\n", "Turn: 103 histories, 103 replay, 0 do not (number 1: 30, number 2: 73)\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("output lacks %q: %s", want, got.out)
		}
	}
}

func TestAHistoryThatDoesNotReplayIsExplained(t *testing.T) {
	t.Parallel()
	got := command(saved(t, `"name": "tool"`, `"name": "hammer"`), "replay", savedTurn, "-")
	if got.code != ExitError || !strings.Contains(got.err, "1 of 2 histories does not replay with this build") || !strings.Contains(got.err, "hint:") {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{
		"Turn: 2 histories, 1 replay, 1 does not (number 2: 2)\n",
		"does not replay: Turn approved:turn-1, run 01a2299d-e64a-771a-9c5d-b9a37c3f3938, number 2, in standard input\n",
		"    event 14: another command stands in its place",
		"        history has  activity (type hammer,", "        the code has activity (type tool,",
		"    what to do: put the change under the next number of Turn in versioning/table.go",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("output lacks %q: %s", want, got.out)
		}
	}
}

func TestTheReportOfAReplayIsOneObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.json")
	got := command(saved(t, `"name": "tool"`, `"name": "hammer"`), "replay", savedTurn, "-", missing, "-o", "json")
	var r struct {
		OK *bool `json:"ok"`
		deploy.Report
	}
	d := json.NewDecoder(strings.NewReader(got.out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() {
		t.Fatalf("%v: %s", err, got.out)
	}
	if got.code != ExitError || r.OK == nil || *r.OK || r.Total != 3 || len(r.Types) != 1 || len(r.Failures) != 1 || len(r.Unread) != 1 {
		t.Errorf("%d, %+v", got.code, r)
	}
	f := r.Failures[0]
	if f.Source != "-" || f.Workflow != "approved:turn-1" || f.Type != "Turn" || f.Number != 2 || f.Findings[0].Event != 14 || f.Findings[0].Advice == "" {
		t.Errorf("failure %+v", f)
	}
	if r.Unread[0].Source != missing || r.Unread[0].Reason == "" {
		t.Errorf("unread %+v", r.Unread[0])
	}
}

func TestReplayingNothingIsAnErrorUnlessAllowed(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	notRun := filepath.Join(t.TempDir(), "begun.json")
	begun := `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED","workflowExecutionStartedEventAttributes":{"workflowType":{"name":"Turn"}}}]}`
	if err := os.WriteFile(notRun, []byte(begun), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, notRun} {
		got := command("", "replay", path)
		if got.code != ExitError || !strings.Contains(got.err, "nothing to replay") || !strings.Contains(got.err, "--allow-empty") {
			t.Errorf("%s: %+v", path, got)
		}
		if got := command("", "replay", path, "--allow-empty", "-o", "json"); got.code != ExitDone || !strings.Contains(got.out, `"ok":true`) {
			t.Errorf("%s: allowed: %+v", path, got)
		}
	}
	// What is there and cannot be looked at is not nothing.
	if got := command("no history", "replay", "-", "--allow-empty"); got.code != ExitError || !strings.Contains(got.out, "could not be looked at: standard input") {
		t.Errorf("unreadable: %+v", got)
	}
}

func TestReplayIsToldWhatToLookAtInOneWay(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"replay", savedTurn, "--query", `HoldfastStatus="waiting"`},
		{"replay", savedTurn, "--parallel", "-1"},
		{"replay", savedTurn, "--parallel", "many"},
	} {
		if got := command("", args...); got.code != ExitUsage || !strings.Contains(got.err, "hint:") && !strings.Contains(got.err, "want at least 1") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// Whatever a history has in it, a terminal obeys none of it.
func TestAHistoryCannotWriteToTheTerminal(t *testing.T) {
	t.Parallel()
	got := command(saved(t, `"name": "tool"`, `"name": "\u001b[31mhammer\u0007"`, `"workflowId": "approved:turn-1"`, `"workflowId": "a\u001b]0;x"`), "replay", "-")
	if got.code != ExitError || strings.ContainsAny(got.out+got.err, "\x1b\x07") || !strings.Contains(got.out, "hammer") {
		t.Errorf("%+v", got)
	}
}

func TestReplayCompletesFilesAndQueries(t *testing.T) {
	t.Parallel()
	if got := command("", "__complete", "replay", ""); !strings.Contains(got.out, "json\n:8\n") {
		t.Errorf("files: %+v", got)
	}
	if got := command("", "__complete", "replay", "--query", ""); !strings.Contains(got.out, `HoldfastStatus="waiting"`) {
		t.Errorf("queries: %+v", got)
	}
}
