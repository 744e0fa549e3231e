package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

const stocked = `
models:
  main: {base_url: "http://127.0.0.1:1/v1", key: env:KEY, model: m-1, temperature: 0.2}
  spare: {base_url: "http://127.0.0.1:1/v1"}
agents:
  hello: {instructions: Say hello., model: main, tools: [clock], upgrade: pin}
  other: {instructions: Say less., model: spare}
policy: {upgrade: ask}
`

func stock(t *testing.T, text string, own ...tool.Tool) *Inventory {
	t.Helper()
	c, err := parseWith(map[string]string{"KEY": "sk-some-key", "OTHER": "sk-other-key"}, t.TempDir(), text)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Options{Build: "v1"}.Inventory(t.Context(), c, own...)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestTheInventoryIsWhatAWorkerWouldWorkWith(t *testing.T) {
	t.Parallel()
	yaml, starts := mcpYAML(t)
	in := stock(t, strings.Replace(stocked, "[clock]", "[clock, files.look]", 1)+"tools: {files: "+yaml+"}\n", goTool(t, "clock"))
	if in.Build != "v1" || in.Serial != 1 || !in.Policy.Valid() || starts() != 1 {
		t.Errorf("%+v after %d starts", in, starts())
	}
	if diff := cmp.Diff([]string{"clock", "files__act", "files__look"}, slices.Sorted(maps.Keys(in.Tools))); diff != "" {
		t.Error(diff)
	}
	hello, other := in.Agents["hello"], in.Agents["other"]
	if hello.Upgrade != agent.UpgradePin || other.Upgrade != agent.UpgradeAsk {
		t.Errorf("upgrades %q and %q", hello.Upgrade, other.Upgrade)
	}
	if hello.Definition.ModelVersion != in.Models["main"] || !hello.Digest.Valid() || hello.Digest == other.Digest {
		t.Errorf("hello: %+v, models: %v", hello, in.Models)
	}
	want := []agent.ToolRef{{Name: "clock", Version: in.Tools["clock"]}, {Name: "files__look", Version: in.Tools["files__look"]}}
	if diff := cmp.Diff(want, hello.Definition.Tools); diff != "" {
		t.Error(diff)
	}
}

func TestADefinitionChangesWithHowItsModelAnswersAndNotWithWhereItIs(t *testing.T) {
	t.Parallel()
	before := stock(t, stocked, goTool(t, "clock"))
	for change, differs := range map[string]bool{
		"model: m-2": true, "temperature: 0.3": true, "temperature: 0": true, "temperature: ~": true, "limits: {output_tokens: 100}": true,
		"base_url: http://127.0.0.1:2/v1": false, "key: env:OTHER": false, "stream: false": false, "limits: {concurrency: 7}": false,
		"prices: {input: 3}": false, "timeouts: {attempt: 7m}": false,
	} {
		field, _, _ := strings.Cut(change, ":")
		var kept []string
		for _, f := range []string{`base_url: "http://127.0.0.1:1/v1"`, "key: env:KEY", "model: m-1", "temperature: 0.2"} {
			if !strings.HasPrefix(f, field+":") {
				kept = append(kept, f)
			}
		}
		line := "  main: {" + strings.Join(append(kept, change), ", ") + "}"
		lines := strings.Split(stocked, "\n")
		lines[2] = line
		after := stock(t, strings.Join(lines, "\n"), goTool(t, "clock"))
		if got := after.Agents["hello"].Digest != before.Agents["hello"].Digest; got != differs {
			t.Errorf("%s: the definition differs: %t", change, got)
		}
		if after.Agents["other"].Digest != before.Agents["other"].Digest {
			t.Errorf("%s: an agent with another model differs", change)
		}
	}
}

// A session that is pinned keeps the version in the store: another build has to come to the same one.
func TestTheVersionOfAModelIsTheSameInEveryBuild(t *testing.T) {
	t.Parallel()
	got, err := Model{Model: "gpt-5", Limits: ModelLimits{OutputTokens: 4000}, Temperature: new(float32)}.version()
	const want = `{"model":"gpt-5","outputTokens":4000,"rule":"holdfast-model-1","temperature":0}`
	if err != nil || got != agent.DigestOf([]byte(want)) {
		t.Errorf("%s, %v: not that of %s", got, err, want)
	}
}

func TestAnInventoryOfWhatDoesNotStartSaysWhyWithoutASecret(t *testing.T) {
	t.Parallel()
	const key = "sk-some-key"
	c, err := parseWith(map[string]string{"KEY": key}, t.TempDir(), least+"tools: {a: {mcp: {command: [/no/such/sk-some-key], env: {TOKEN: 'env:KEY'}}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Options{}.Inventory(t.Context(), c)
	if p := problemsOf(t, err); len(p) != 1 || p[0].Line != 6 || !strings.Contains(p[0].Message, "/no/such/") {
		t.Errorf("problems: %v", p)
	}
	if strings.Contains(err.Error(), key) {
		t.Errorf("it shows the secret: %v", err)
	}
}

func TestAnInventoryNeedsAWholeConfigurationAndTime(t *testing.T) {
	t.Parallel()
	if _, err := (Options{}).Inventory(t.Context(), &Config{}); err == nil || !strings.Contains(err.Error(), "read it with Load") {
		t.Errorf("made by hand: %v", err)
	}
	c, err := parseWith(nil, t.TempDir(), least+"tools: {a: {mcp: {command: [sleep, '60']}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Options{}).Inventory(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if _, err := (Options{Build: "a b"}).Inventory(t.Context(), c); err == nil || !strings.Contains(err.Error(), "cannot be a build id") {
		t.Errorf("a build that cannot be: %v", err)
	}
}
