package starter

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/worker"
)

type workerOptions struct {
	app        *App
	deployment string
	build      string
	health     string
	logFormat  string
	logLevel   string
}

func newWorker(a *App) *cobra.Command {
	o := &workerOptions{app: a}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker",
		Long: `Runs the agents of the configuration until it is told to stop (SIGTERM or an interrupt). Then it takes nothing new
and lets what runs finish; what does not finish in time is taken up by another worker. The connection to
Temporal comes from the standard environment variables and profiles.

A worker of a deployment is one build of it: a turn stays with the build that it began on, and nothing new reaches a
build until "holdfast deploy promote" or "holdfast deploy ramp" says so. Without a deployment any worker takes any work.`,
		Example: `  TEMPORAL_ADDRESS=temporal:7233 holdfast worker --config /etc/holdfast.yaml --health 127.0.0.1:8080
  holdfast worker --deployment support --build-id v2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.deployment, "deployment", "", "`name` of the worker deployment that this is a build of, \"off\" is none (default: the configuration's)")
	f.StringVar(&o.build, "build-id", "", "which `build` this is (default: what the program was built from, see: holdfast version)")
	f.StringVar(&o.health, "health", "", "`address` of /healthz and /readyz, \"off\" serves none (default: the configuration's)")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}

func (o *workerOptions) run(ctx context.Context) error {
	log, err := o.logger()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	cfg, err := o.app.loadConfig()
	if err != nil {
		return err
	}
	client, err := o.app.clientOptions()
	if err != nil {
		return err
	}
	client.Logger = nil // the worker's own
	w := worker.Options{
		Client: &client, Logger: log, Health: o.health, Deployment: o.deployment, Build: o.build,
		Ready: func(s worker.Status) {
			log.Info("worker is ready", "address", client.HostPort, "namespace", s.Namespace, "task_queue", s.TaskQueue,
				"build", s.Build, "deployment", s.Deployment, "serial", s.Serial, "store", s.Store, "health", s.Health)
		},
	}
	return w.Run(ctx, cfg, o.app.Tools...)
}

// check looks at what Temporal would refuse, or keep silent about.
func (o *workerOptions) check() error {
	if o.deployment != worker.NoDeployment {
		if err := checkDeploymentFlag(o.deployment); err != nil {
			return err
		}
	}
	return checkBuildFlag(o.build)
}

func (o *workerOptions) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, usageError("--log-level %q: want debug, info, warn or error", o.logLevel)
	}
	h := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(o.app.Err, h)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(o.app.Err, h)), nil
	}
	return nil, usageError("--log-format %q: want text or json", o.logFormat)
}

func newSetup(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Prepare a Temporal namespace",
		Long: `Registers the search attributes that sessions and turns have, and says what else a namespace should have.
Doing it again changes nothing. A server of "holdfast dev" needs it not.`,
		Example: `  TEMPORAL_ADDRESS=temporal:7233 holdfast setup --namespace agents`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.setup(cmd.Context()) },
	}
}

func (a *App) setup(ctx context.Context) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	warnings, err := worker.Setup(ctx, c.Client, c.namespace)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(struct {
			Namespace string   `json:"namespace"`
			Address   string   `json:"address"`
			Warnings  []string `json:"warnings,omitempty"`
		}{c.namespace, c.address, warnings})
	}
	for _, w := range warnings {
		a.note("%s %s", a.paint(a.Err, yellow, "warning:"), w)
	}
	_, err = fmt.Fprintf(a.Out, "namespace %q at %s is ready for holdfast\n", c.namespace, c.address)
	return err
}
