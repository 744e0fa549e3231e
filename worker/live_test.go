package worker

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

// A bench is a live configuration whose looks the test decides on.
type bench struct {
	*live
	t    *testing.T
	path string
	log  *bytes.Buffer
}

func startLive(t *testing.T, text string) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "holdfast.yaml"), log: &bytes.Buffer{}}
	b.write(text)
	log := slog.New(slog.NewTextHandler(b.log, nil))
	b.live = &live{fleet: newFleet(log), log: log}
	c, err := Load(b.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.fleet.stop)
	return b
}

func (b *bench) write(text string) {
	b.t.Helper()
	write(b.t, b.path, text)
}

// looks as often as it takes to act on a change.
func (b *bench) looks() {
	for range 3 {
		b.look(b.t.Context())
	}
}

func (b *bench) instructions() string { return b.snapshot().Agents["hello"].Instructions }

func withSerial(serial, text string) string { return "serial: " + serial + "\n" + text }

func TestAHigherSerialReplacesTheConfiguration(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("4", least))
	before := b.snapshot()
	b.write(withSerial("5", strings.Replace(least, "Say hello", "Say goodbye", 1)))
	b.looks()
	if got := b.instructions(); got != "Say goodbye." || b.snapshot().Serial != 5 {
		t.Errorf("instructions %q, serial %d", got, b.snapshot().Serial)
	}
	if before.Agents["hello"].Instructions != "Say hello." {
		t.Error("what was handed out has changed")
	}
}

func TestAChangeWithoutAHigherSerialIsRefusedAndSaidOnce(t *testing.T) {
	t.Parallel()
	for _, serial := range []string{"4", "3"} {
		b := startLive(t, withSerial("4", least))
		b.write(withSerial(serial, strings.Replace(least, "Say hello", "Say goodbye", 1)))
		b.looks()
		b.looks()
		if got := b.instructions(); got != "Say hello." {
			t.Errorf("serial %s: instructions %q", serial, got)
		}
		if got := strings.Count(b.log.String(), "raise serial"); got != 1 {
			t.Errorf("serial %s: said %d times:\n%s", serial, got, b.log)
		}
	}
}

func TestAnInvalidOrMissingFileLeavesTheOldOneInForce(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("4", least))
	b.write("models: [")
	b.looks()
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	b.looks()
	if got := strings.Count(b.log.String(), "stays in force"); got != 2 || b.instructions() != "Say hello." {
		t.Errorf("said %d times, instructions %q\n%s", got, b.instructions(), b.log)
	}
	b.write(withSerial("5", strings.Replace(least, "Say hello", "Say goodbye", 1)))
	b.looks()
	if b.instructions() != "Say goodbye." {
		t.Errorf("the mended file is not taken: %s", b.log)
	}
}

func TestAFileIsNotReadWhileItIsBeingWritten(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("4", least))
	b.look(t.Context())
	b.write("serial: 5\nmodels:")
	b.look(t.Context())
	b.write(withSerial("5", strings.Replace(least, "Say hello", "Say goodbye", 1)))
	b.look(t.Context())
	if b.log.Len() > 0 || b.snapshot().Serial != 4 {
		t.Errorf("acted on half a file: %s", b.log)
	}
	b.look(t.Context())
	if b.snapshot().Serial != 5 {
		t.Errorf("serial is %d", b.snapshot().Serial)
	}
}

func TestAChangedSecretNeedsNoHigherSerial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	write(t, key, "sk-first-key")
	b := startLive(t, strings.Replace(least, "base_url", "key: 'file:"+key+"', base_url", 1))
	write(t, key, "sk-second-key")
	b.looks()
	if got := b.config().Models["main"].Key.Reveal(); got != "sk-second-key" {
		t.Errorf("the key is %q", got)
	}
	if got := b.mask().String("sk-second-key"); strings.Contains(got, "second") {
		t.Error("the new key is not masked")
	}
}

func TestAChangedInstructionFileNeedsAHigherSerial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prompt := filepath.Join(dir, "prompt.md")
	write(t, prompt, "Say hello.")
	b := startLive(t, strings.Replace(least, "Say hello.", "'file:"+prompt+"'", 1))
	write(t, prompt, "Say goodbye.")
	b.looks()
	if b.instructions() != "Say hello." || !strings.Contains(b.log.String(), "raise serial") {
		t.Errorf("instructions %q: %s", b.instructions(), b.log)
	}
}

func TestWhatNeedsARestartIsNamed(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("4", least))
	b.write(withSerial("5", least+"worker: {task_queue: other, deployment: agents, tool_heartbeat: 2s}\nstore: {url: 'mem://'}\n"))
	b.looks()
	if !strings.Contains(b.log.String(), `fields="[store worker.deployment worker.task_queue]"`) {
		t.Errorf("log: %s", b.log)
	}
	if b.snapshot().ToolHeartbeat.String() != "2s" {
		t.Error("what needs no restart was not taken")
	}
}

func TestAnMCPServerIsStartedAnewOnlyWhenItsPartChanged(t *testing.T) {
	t.Parallel()
	yaml, starts := mcpYAML(t)
	text := strings.Replace(least, "{ins", "{tools: [files.*], ins", 1) + "tools: {files: " + yaml + "}\n"
	b := startLive(t, withSerial("1", text))
	if starts() != 1 {
		t.Fatalf("%d starts", starts())
	}
	old := b.fleet.running["files"].server
	b.write(withSerial("2", strings.Replace(text, "Say hello", "Say goodbye", 1)))
	b.looks()
	if starts() != 1 || b.snapshot().Serial != 2 {
		t.Errorf("%d starts, serial %d after a change elsewhere: %s", starts(), b.snapshot().Serial, b.log)
	}
	b.write(withSerial("3", strings.Replace(text, "{mcp:", "{list_timeout: 9s, mcp:", 1)))
	b.looks()
	if starts() != 2 || b.snapshot().Serial != 3 {
		t.Errorf("%d starts, serial %d after a change of its part: %s", starts(), b.snapshot().Serial, b.log)
	}
	if _, ok := b.fleet.retired[old]; !ok || len(b.fleet.retired) != 1 {
		t.Error("the old server is not kept for what runs on it")
	}
	var names []string
	for _, ref := range b.snapshot().Agents["hello"].Tools {
		names = append(names, ref.Name)
	}
	if diff := cmp.Diff([]string{"files__act", "files__look"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestAServerThatDoesNotStartLeavesTheOldConfigurationInForce(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("1", least))
	b.write(withSerial("2", least+"tools: {files: {mcp: {command: [/no/such/program]}}}\n"))
	b.looks()
	if b.snapshot().Serial != 1 || !strings.Contains(b.log.String(), "/no/such/program") {
		t.Errorf("serial %d: %s", b.snapshot().Serial, b.log)
	}
	if len(b.fleet.running) != 0 {
		t.Error("the fleet holds a server that does not run")
	}
}

func TestAStopWhileServersStartIsNotLoggedAsTrouble(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("1", least))
	b.write(withSerial("2", least+"tools: {files: {mcp: {command: [sleep, '60']}}}\n"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		b.look(ctx)
	}
	if b.log.Len() > 0 {
		t.Errorf("log: %s", b.log)
	}
}

func TestAChangedUpgradeHoldsFromTheFileOn(t *testing.T) {
	t.Parallel()
	b := startLive(t, withSerial("4", least))
	before := b.snapshot().Upgrades["hello"]
	b.write(withSerial("5", least+"policy: {upgrade: pin}\n"))
	b.looks()
	if after := b.snapshot().Upgrades["hello"]; before != agent.UpgradeFollow || after != agent.UpgradePin {
		t.Errorf("%q, then %q: %s", before, after, b.log)
	}
}
