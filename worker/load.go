package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
	"github.com/holdfast-run/holdfast/policy"
)

// MaxFile bounds the size of holdfast.yaml in bytes.
const MaxFile = 512 << 10

// source is where a configuration came from and what can be said about it later: the place of a value in
// the file, and the files that it depends on.
type source struct {
	path    string
	digest  agent.Digest
	secrets []string
	files   []string
	whole   bool     // every reference is resolved
	decoder *decoder // for the places of problems that only show when the tools are known
	policy  *policy.Policy
}

// Load reads a holdfast.yaml. Anything wrong with it, a missing environment variable included, comes back
// as one *[ConfigError]; a file that cannot be read as a plain error.
func Load(path string) (*Config, error) { return load(path, nil) }

// LoadStore reads a holdfast.yaml for somebody who only wants to read the store: references are resolved
// for the store alone, so that the keys of models need not be there. It cannot be run.
func LoadStore(path string) (*Config, error) {
	return load(path, func(p string) bool { return strings.HasPrefix(p, "store/") })
}

// LoadPolicy reads a holdfast.yaml for somebody who only wants to know what it allows: no reference is resolved,
// so that no key and no other file need be there. It cannot be run.
func LoadPolicy(path string) (*Config, error) {
	return load(path, func(string) bool { return false })
}

func load(path string, only func(string) bool) (*Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("configuration %q: %w", path, err)
	}
	b, err := readBounded(abs, MaxFile)
	if err != nil {
		hint := ""
		if errors.Is(err, errNoFile) {
			hint = "; name another file or write one (the folder examples/ has some)"
		}
		return nil, fmt.Errorf("configuration %q: %w%s", path, err, hint)
	}
	c, err := parse(path, filepath.Dir(abs), []byte(b), &references{lookup: os.LookupEnv, only: only})
	if err != nil {
		return nil, err
	}
	c.source.path = abs
	c.source.files = append(c.source.files, abs)
	return c, nil
}

// Parse decodes b as [Load] does a file. Name is what problems call it; relative references count from
// the folder dir.
func Parse(name, dir string, b []byte) (*Config, error) {
	return parse(name, dir, b, &references{lookup: os.LookupEnv})
}

func parse(name, dir string, b []byte, refs *references) (*Config, error) {
	refs.dir = dir
	d := &decoder{file: name, at: map[string]position{}, texts: map[string]string{}, refs: refs}
	c := defaults()
	var rules *policy.Policy
	switch {
	case len(b) > MaxFile:
		d.add(position{}, "the file is larger than %d bytes; move long instructions into files of their own", MaxFile)
	case !utf8.Valid(b):
		d.add(position{}, "the file is not UTF-8 text; save it as UTF-8")
	default:
		b = bytes.TrimPrefix(b, []byte("\ufeff"))
		d.lines = strings.Split(string(b), "\n")
		if root, ok := d.parseTree(b); ok {
			d.config(root, c)
			c.finish(d, dir)
			rules = c.compilePolicy(d)
		}
	}
	if len(d.problems) > 0 {
		return nil, &ConfigError{sortProblems(d.problems)}
	}
	c.mask = secret.New(refs.secrets...)
	c.source = source{
		digest: contentDigest(b, c), secrets: refs.secrets, files: refs.files, whole: refs.only == nil,
		decoder: d, policy: rules,
	}
	return c, nil
}

// contentDigest tells two contents apart: the bytes of the file and the instructions that they refer to.
func contentDigest(b []byte, c *Config) agent.Digest {
	parts := append([]byte(nil), b...)
	for _, name := range sortedKeys(c.Agents) {
		parts = fmt.Appendf(parts, "\x00%s\x00%s", name, c.Agents[name].Instructions)
	}
	return agent.DigestOf(parts)
}

func defaults() *Config {
	return &Config{
		Serial: 1,
		Store:  Store{URL: "file://./.holdfast/store"},
		Models: map[string]Model{}, Tools: map[string]Tool{}, Agents: map[string]Agent{}, Policy: defaultPolicy(), Upgrade: agent.UpgradeFollow,
		Limits: Limits{Result: activities.DefaultMaxResult, Cache: 128 << 20},
		Worker: Worker{
			TaskQueue: agent.TaskQueue, Concurrency: 200,
			StopTimeout: 30 * time.Second, StickyTimeout: 5 * time.Second, ToolHeartbeat: 15 * time.Second,
		},
	}
}

func defaultModel() Model {
	return Model{
		BaseURL: defaultBaseURL, Stream: true,
		Timeout: ModelTimeouts{
			Attempt: activities.DefaultAttempt, Call: activities.DefaultCall,
			Idle: time.Minute, Heartbeat: 15 * time.Second,
		},
	}
}

const defaultBaseURL = "https://api.openai.com/v1"

// defaultLimits bound a turn whose agent says nothing about it.
func defaultLimits() agent.Limits {
	return agent.Limits{Steps: 100, Calls: 256, Faults: 5, Wait: agent.Duration(24 * time.Hour)}
}
