package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"golang.org/x/sys/unix"

	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/worker"
)

const (
	defaultPort   = 7233
	defaultUIPort = 8233
)

type devOptions struct {
	app          *App
	port, uiPort int
	verbose      bool
}

func newDev(a *App) *cobra.Command {
	o := &devOptions{app: a}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything here: Temporal, its Web UI and a worker",
		Long: `Starts a Temporal development server with its Web UI and a worker with the agents of ./holdfast.yaml, until an
interrupt. The state is kept in .holdfast beside the file, so that what runs goes on after a restart.`,
		Example: `  holdfast config init && holdfast dev
  holdfast dev --port 7300 --ui-port 8300`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.IntVar(&o.port, "port", defaultPort, "port of the Temporal server, 0 chooses a free one")
	f.IntVar(&o.uiPort, "ui-port", defaultUIPort, "port of the Web UI, 0 chooses a free one")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show the worker's whole log")
	return cmd
}

// run starts the server, then the worker, and stops them the other way round: the worker needs the server
// to finish in good order.
func (o *devOptions) run(ctx context.Context) (err error) {
	cfg, err := o.app.loadConfig()
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(cfg.Path()), ".holdfast")
	lock, err := lockDev(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	log, err := os.OpenFile(filepath.Join(dir, "temporal.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	server, err := devserver.Start(ctx, devserver.Options{
		DBFile: filepath.Join(dir, "temporal.db"), Port: o.port, UIPort: o.uiPort, Namespace: o.app.namespace, Log: log,
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := writeLock(lock, runningDev{os.Getpid(), server.Address(), server.UI()}); err != nil {
		return err
	}
	return o.work(ctx, cfg, server)
}

// work runs the worker until ctx ends or the server dies.
func (o *devOptions) work(ctx context.Context, cfg *worker.Config, server *devserver.Server) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-server.Done():
			stop(server.Err())
		case <-ctx.Done():
		}
	}()
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	w := worker.Options{
		Client: &client.Options{HostPort: server.Address(), Namespace: server.Namespace()},
		Logger: slog.New(slog.NewTextHandler(o.app.Err, &slog.HandlerOptions{Level: level})),
		Ready:  func(worker.Status) { o.ready(cfg, server) },
		// The only worker here takes all work at once, and nobody has to promote it.
		Deployment: worker.NoDeployment,
	}
	err := w.Run(ctx, cfg, o.app.Tools...)
	if death := server.Err(); death != nil {
		return death
	}
	return err
}

// A devReady is what dev prints with -o json when it is ready.
type devReady struct {
	Address   string   `json:"address"`
	Namespace string   `json:"namespace"`
	UI        string   `json:"ui"`
	Agents    []string `json:"agents"`
	PID       int      `json:"pid"`
}

func (o *devOptions) ready(cfg *worker.Config, server *devserver.Server) {
	r := devReady{Address: server.Address(), Namespace: server.Namespace(), UI: server.UI(), Agents: []string{}, PID: os.Getpid()}
	for name := range cfg.Agents {
		r.Agents = append(r.Agents, name)
	}
	sort.Strings(r.Agents)
	a := o.app
	if a.json() {
		_ = a.printJSON(r)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Temporal  %s, namespace %s\nWeb UI    %s\nagents    %s\n", r.Address, r.Namespace, r.UI, strings.Join(r.Agents, ", "))
	if len(r.Agents) > 0 {
		fmt.Fprintf(&b, "\nin another terminal:\n\n  holdfast run %s \"hello\"%s\n\n", r.Agents[0], o.flags(r))
	}
	b.WriteString("Ctrl-C stops; what runs goes on at the next start.\n")
	fmt.Fprint(a.Out, b.String())
}

// flags are what a client needs to find this server.
func (o *devOptions) flags(r devReady) string {
	flags := ""
	if r.Address != fmt.Sprintf("127.0.0.1:%d", defaultPort) {
		flags += " --address " + r.Address
	}
	if o.app.namespace != "" {
		flags += " --namespace " + r.Namespace
	}
	return flags
}

// A runningDev is what a running "holdfast dev" writes into its lock file.
type runningDev struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
	UI      string `json:"ui"`
}

// lockDev takes the folder for this process; the lock goes with it however it ends.
func lockDev(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "dev.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	defer func() { _ = f.Close() }()
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("cannot lock %q: %w", f.Name(), err)
	}
	var other runningDev
	if json.NewDecoder(f).Decode(&other) != nil || other.PID == 0 {
		return nil, errors.New("another `holdfast dev` is starting in this folder")
	}
	return nil, withHint(fmt.Errorf("`holdfast dev` is running in this folder already: process %d, Temporal at %s, Web UI at %s",
		other.PID, line(other.Address, 80), line(other.UI, 80)), "use it, or stop it first with Ctrl-C in its terminal or: kill %d", other.PID)
}

func writeLock(f *os.File, r runningDev) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return err
}
