package starter

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/worker"
)

// Each script has a deployment of its own, and starts and stops the workers of its builds.
func TestDeployOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	model := modeltest.ForTest(t, modeltest.Config{Func: script})
	server, err := devserver.Start(context.Background(), devserver.Options{Headless: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() }) // after the scripts, which run as parallel subtests
	builds := &builds{address: server.Address(), stops: map[string]func(){}}
	cmds := commands()
	maps.Copy(cmds, map[string]func(*testscript.TestScript, bool, []string){"worker": builds.start, "stopworker": builds.stop})
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/deploy",
		Cmds: cmds,
		Setup: func(env *testscript.Env) error {
			if err := cleanEnv(env, server.Address(), model.URL()); err != nil {
				return err
			}
			name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			env.Setenv("DEPLOYMENT", name)
			config := fmt.Appendf(nil, deployConfig, filepath.Join(env.WorkDir, "store"), model.URL(), name, name)
			return os.WriteFile(filepath.Join(env.WorkDir, "holdfast.yaml"), config, 0o600)
		},
	})
}

const deployConfig = `
serial: 1
store: {url: "file://%s"}
models:
  scripted: {base_url: "%s", prices: {input: 1, output: 4}}
agents:
  helper: {instructions: Help., model: scripted, tools: [note]}
  fixed: {instructions: Help., model: scripted, tools: [note], upgrade: pin}
worker: {stop_timeout: 1s, sticky_timeout: 1s, task_queue: %q, deployment: %q}
`

// builds are the workers that scripts have started, by deployment and build.
type builds struct {
	address string
	mu      sync.Mutex
	stops   map[string]func()
}

// start BUILD starts a worker of a build, which says what it understands as "holdfast worker" does.
func (b *builds) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: worker BUILD")
	}
	cfg, err := worker.Load(ts.MkAbs("holdfast.yaml"))
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- worker.Options{
			Client: &client.Options{HostPort: b.address}, Health: "off", Build: args[0],
			Logger: slog.New(slog.DiscardHandler), Ready: func(worker.Status) { close(ready) },
		}.Run(ctx, cfg, tools()...)
	}()
	select {
	case <-ready:
	case err := <-done:
		cancel()
		ts.Fatalf("worker: %v", err)
	}
	stop := sync.OnceFunc(func() { cancel(); <-done })
	ts.Defer(stop)
	b.mu.Lock()
	b.stops[cfg.Worker.Deployment+" "+args[0]] = stop
	b.mu.Unlock()
	ts.Check(b.publish(cfg.Worker.Deployment, args[0]))
}

func (b *builds) publish(deployment, build string) error {
	c, err := client.Dial(client.Options{HostPort: b.address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return worker.Publish(ctx, c, deployment, build, 1)
}

// stop BUILD stops the worker of a build.
func (b *builds) stop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stopworker BUILD")
	}
	b.mu.Lock()
	stop := b.stops[ts.Getenv("DEPLOYMENT")+" "+args[0]]
	b.mu.Unlock()
	if stop == nil {
		ts.Fatalf("no worker of build %s was started", args[0])
	}
	stop()
}
