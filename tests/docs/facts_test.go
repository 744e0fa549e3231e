package docs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/starter"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

func countNothing(context.Context, tool.Call, struct{}) (int, error) { return 0, nil }

// size writes bytes as documents do.
func size(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func TestTheLimitsInTheReadmeAreThoseOfTheCode(t *testing.T) {
	c := load(t, "bare", someModel+someAgent)
	limits := c.Agents["helper"].Limits
	readme := file(t, "README.md")
	for what, value := range map[string]string{
		"A message":                           size(agent.MaxMessage),
		"Messages that wait in a session":     fmt.Sprint(agent.MaxQueue),
		"Message ids that a session knows":    "1,000",
		"A session's id":                      "64 characters",
		"Model calls in a turn":               fmt.Sprintf("%d, `limits.steps`", limits.Steps),
		"Tool calls in one answer":            fmt.Sprintf("%d, `limits.calls`", limits.Calls),
		"Steps in a row with nothing to run":  fmt.Sprintf("%d, `limits.faults`", limits.Faults),
		"Arguments of a tool call":            size(approval.MaxArgs),
		"Effects of a turn that are open":     "1,000",
		"A tool's result":                     size(tool.DefaultMaxResult) + ", `max_result`",
		"What the model sees of a result":     size(c.Limits.Result) + ", `limits.result`",
		"An answer in the Temporal history":   size(agent.MaxAnswer),
		"`holdfast.yaml`":                     size(worker.MaxFile),
		"Tool calls and model calls a worker": fmt.Sprintf("%d, `worker.concurrency`", c.Worker.Concurrency),
	} {
		if !regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(what) + `[^|]* \| ` + regexp.QuoteMeta(value)).MatchString(readme) {
			t.Errorf("README.md has no row %q with %q", what, value)
		}
	}
	if agent.MaxSeen != 1000 || effect.MaxOpen != 1000 || !agent.ValidSessionID(strings.Repeat("a", 64)) || agent.ValidSessionID(strings.Repeat("a", 65)) {
		t.Error("a limit that README.md writes out has changed")
	}
}

func TestExitCodesInTheReadmeAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	readme := file(t, "README.md")
	for _, code := range []int{
		starter.ExitDone, starter.ExitError, starter.ExitUsage, starter.ExitFailed, starter.ExitCancelled,
		starter.ExitBudget, starter.ExitRefused, starter.ExitWaiting, starter.ExitInterrupted,
	} {
		// The command's own words, up to a semicolon.
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^ +%d +([^;,\n]*)`, code)).FindStringSubmatch(topic(t, "exit-codes"))
		if line == nil {
			t.Fatalf("the command says nothing about exit code %d", code)
		}
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \| %s`, code, line[1])).MatchString(readme) {
			t.Errorf("README.md does not say of exit code %d: %s", code, line[1])
		}
	}
}

func topic(t *testing.T, name string) string {
	t.Helper()
	cmd, _, err := holdfast().Find([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Long
}

var attribute = regexp.MustCompile(`\bHoldfast[A-Z][A-Za-z]+`)

func TestSearchAttributesAreThoseThatAreSet(t *testing.T) {
	t.Parallel()
	var all []string
	for _, a := range agent.Attributes() {
		all = append(all, a.Name)
	}
	for _, p := range pages(t) {
		for _, name := range attribute.FindAllString(p.text, -1) {
			if !slices.Contains(all, name) {
				t.Errorf("%s: there is no search attribute %q", p.name, name)
			}
		}
	}
	for _, name := range all {
		if !strings.Contains(file(t, "README.md"), name) {
			t.Errorf("README.md does not name the search attribute %q", name)
		}
	}
}

func TestNamesThatOthersRelyOnAreTheRightOnes(t *testing.T) {
	t.Parallel()
	tools := file(t, "docs/tools.md")
	for _, name := range []string{
		"`" + tool.MCPKey + "`", "`" + tool.MCPName("files", "read") + "`", "Idempotency-Key",
		string(agent.ClassRead), string(agent.ClassIdempotent), string(agent.ClassOnce), string(agent.ClassReconcilable),
	} {
		if !strings.Contains(tools, name) {
			t.Errorf("docs/tools.md does not name %s", name)
		}
	}
}

var machine = regexp.MustCompile(`/(?:tmp|home|root|Users)/|localhost:[0-9]{5}|127\.0\.0\.1:[0-9]{5}\b`)

func TestDocumentsNameNoMachine(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for i, line := range strings.Split(p.text, "\n") {
			if m := machine.FindString(line); m != "" && !strings.Contains(line, "127.0.0.1:11434") {
				t.Errorf("%s:%d names %q", p.name, i+1, m)
			}
		}
	}
}
