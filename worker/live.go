package worker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
)

// lookEvery is how often the file is looked at. Polling works on every file system, also where a folder
// is swapped under a symbolic link, as Kubernetes does.
const lookEvery = time.Second

// A force is a configuration and what was assembled from it. Both change together.
type force struct {
	config   *Config
	snapshot *activities.Snapshot
}

// live holds the configuration in force and replaces it when the file has a newer one.
type live struct {
	extras extras
	fleet  *fleet
	log    *slog.Logger

	now atomic.Pointer[force]

	// Of the goroutine that watches.
	seen  agent.Digest // content at the last look
	acted agent.Digest // content that was loaded, accepted or not
}

// snapshot returns what the activities work with now.
func (l *live) snapshot() *activities.Snapshot { return l.now.Load().snapshot }

// config returns the configuration in force.
func (l *live) config() *Config { return l.now.Load().config }

// mask hides the secrets of the configuration in force.
func (l *live) mask() *secret.Mask {
	if f := l.now.Load(); f != nil {
		return f.config.mask
	}
	return nil
}

// begin puts the first configuration in force: everything in it must work.
func (l *live) begin(ctx context.Context, c *Config) error {
	ships, problems := l.fleet.start(ctx, c, l.extras.refuse)
	if len(problems) > 0 {
		l.fleet.drop(ships)
		return &ConfigError{problems}
	}
	l.acted = fingerprint(c.source.files)
	l.seen = l.acted
	return l.put(c, ships)
}

func (l *live) put(c *Config, ships map[string]ship) error {
	s, err := c.assemble(l.extras, byName(ships))
	if err != nil {
		l.fleet.drop(ships)
		return err
	}
	l.now.Store(&force{c, s})
	l.fleet.keep(ships)
	return nil
}

// watch looks at the file until ctx ends.
func (l *live) watch(ctx context.Context) {
	if l.config().Path() == "" {
		return
	}
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			l.look(ctx)
		}
	}
}

// look loads the file when its content, or that of a file it refers to, is another than before and has
// been so for two looks: an editor may be in the middle of writing it.
func (l *live) look(ctx context.Context) {
	got := fingerprint(l.config().source.files)
	settled := got == l.seen
	l.seen = got
	if !settled || got == l.acted {
		return
	}
	l.acted = got
	old := l.config()
	next, err := Load(old.Path())
	if err == nil {
		err = l.replace(ctx, old, next)
	}
	if err != nil && ctx.Err() == nil {
		l.log.Error("the changed configuration is not taken; the one before stays in force", "serial", old.Serial, "reason", err)
	}
}

var errSerial = errors.New("its content changed but its serial did not rise; raise serial")

// replace puts next in force. Changed secrets need no new serial: they are no part of what the file
// decides.
func (l *live) replace(ctx context.Context, old, next *Config) error {
	changed := next.Digest() != old.Digest()
	if !changed && slices.Equal(next.source.secrets, old.source.secrets) {
		return nil
	}
	if changed && next.Serial <= old.Serial {
		return errSerial
	}
	ships, problems := l.fleet.start(ctx, next, l.extras.refuse)
	if len(problems) > 0 {
		l.fleet.drop(ships)
		return &ConfigError{problems}
	}
	if err := l.put(next, ships); err != nil {
		return err
	}
	l.acted = fingerprint(next.source.files)
	l.seen = l.acted
	l.log.Info("configuration in force", "serial", next.Serial, "digest", next.Digest().Short())
	if what := old.restart(next); len(what) > 0 {
		l.log.Warn("some of what changed takes effect when the worker is started again", "fields", what)
	}
	return nil
}

// restart names what differs and is read at start only.
func (c *Config) restart(next *Config) []string {
	differs := map[string]bool{
		"store":                 c.Store != next.Store,
		"limits.cache":          c.Limits.Cache != next.Limits.Cache,
		"worker.task_queue":     c.Worker.TaskQueue != next.Worker.TaskQueue,
		"worker.deployment":     c.Worker.Deployment != next.Worker.Deployment,
		"worker.concurrency":    c.Worker.Concurrency != next.Worker.Concurrency,
		"worker.health":         c.Worker.Health != next.Worker.Health,
		"worker.stop_timeout":   c.Worker.StopTimeout != next.Worker.StopTimeout,
		"worker.sticky_timeout": c.Worker.StickyTimeout != next.Worker.StickyTimeout,
	}
	maps.DeleteFunc(differs, func(_ string, d bool) bool { return !d })
	return sortedKeys(differs)
}

// fingerprint digests what the files hold now; one that cannot be read counts by the reason.
func fingerprint(files []string) agent.Digest {
	var all []byte
	for _, path := range files {
		text, err := readBounded(path, MaxFile)
		if err != nil {
			text = "\x00" + err.Error()
		}
		all = append(append(append(all, path...), 0), agent.DigestOf([]byte(text))...)
	}
	return agent.DigestOf(all)
}
