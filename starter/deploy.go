package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/worker"
)

// defaultDeployment is what the commands mean where neither a flag nor the configuration names one.
const defaultDeployment = "holdfast"

// deployOptions are what the commands about builds share.
type deployOptions struct {
	app        *App
	deployment string // as the flag has it
}

func newDeploy(a *App) *cobra.Command {
	o := &deployOptions{app: a}
	cmd := &cobra.Command{
		Use:   "deploy",
		Short: "Bring a new build into service and take an old one out",
		Long: `Commands for workers of a worker deployment (holdfast worker --deployment NAME --build-id ID). A turn stays with the
build that it began on; a session goes on with the current build when it is resumed. In the order of a rollout:

  holdfast deploy check                          what would break, before anything runs
  start workers of the new build beside those of the old one
  holdfast deploy ramp v2 --percent 10 --resumed  a share of the sessions that there are, each only if it replays
  holdfast deploy ramp v2 --percent 10            a share of what begins
  holdfast deploy status                          how the builds compare
  holdfast deploy promote v2                      everything new
  holdfast deploy drain v1                        until nothing needs the old build; then stop its workers`,
		Example: `  holdfast deploy status
  holdfast deploy promote v2 && holdfast deploy drain v1`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&o.deployment, "deployment", "", "`name` of the worker deployment (default: the configuration's worker.deployment, or \"holdfast\")")
	_ = cmd.RegisterFlagCompletionFunc("deployment", o.completeDeployments)
	cmd.AddCommand(newDeployCheck(o), newDeployStatus(o), newDeployRamp(o), newDeployPromote(o), newDeployDrain(o))
	return cmd
}

// name is the deployment's.
func (o *deployOptions) name() (string, error) {
	name, err := o.named()
	return cmp.Or(name, defaultDeployment), err
}

// named is what the flag or the configuration names, "" for none. A configuration that is not there names none.
func (o *deployOptions) named() (string, error) {
	if o.deployment != "" {
		return o.deployment, checkDeploymentFlag(o.deployment)
	}
	if _, err := os.Stat(o.app.config); errors.Is(err, fs.ErrNotExist) && o.app.config == defaultConfig {
		return "", nil
	}
	cfg, err := worker.LoadPolicy(o.app.config)
	if err != nil {
		return "", withHint(err, "or name the deployment with --deployment")
	}
	return cfg.Worker.Deployment, nil
}

func checkDeploymentFlag(name string) error {
	if name == "" {
		return nil
	}
	if err := worker.CheckDeployment(name); err != nil {
		return usageError("--deployment: %v", err)
	}
	return nil
}

func checkBuildFlag(id string) error {
	if id == "" {
		return nil
	}
	if err := worker.CheckBuild(id); err != nil {
		return usageError("--build-id: %v", err)
	}
	return nil
}

// fleet connects to the server; the caller closes the connection.
func (o *deployOptions) fleet(ctx context.Context) (*conn, deploy.Fleet, error) {
	name, err := o.name()
	if err != nil {
		return nil, deploy.Fleet{}, err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return nil, deploy.Fleet{}, err
	}
	return c, deploy.Fleet{Client: c.Client, Namespace: c.namespace, Deployment: name, Payloads: c.payloads}, nil
}

// explain adds what to do to errors of package deploy that cannot say it themselves.
func (o *deployOptions) explain(err error) error {
	var none *deploy.NoDeploymentError
	switch {
	case errors.As(err, &none) && len(none.Known) > 0:
		return withHint(err, "name one with --deployment or worker.deployment in %s", o.app.config)
	case errors.Is(err, deploy.ErrChanged):
		return withHint(err, "look at it: holdfast deploy status%s", o.flag())
	}
	return err
}

// flag repeats the flag in commands that are named to a person.
func (o *deployOptions) flag() string {
	if o.deployment == "" {
		return ""
	}
	return " --deployment " + o.deployment
}

// upgrades says what the configuration in force has for each agent.
func (o *deployOptions) upgrades() (deploy.Upgrades, error) {
	if err := o.app.configThere(); err != nil {
		return nil, withHint(fmt.Errorf("%w: whether an agent's runs may go to another build stands there", err), "name it with --config")
	}
	cfg, err := worker.LoadPolicy(o.app.config)
	if err != nil {
		return nil, err
	}
	return func(name string) (agent.Upgrade, bool) {
		a, ok := cfg.Agents[name]
		return a.Upgrade, ok
	}, nil
}

// trial replays histories on this program; the caller calls the function when it is done.
func (o *deployOptions) trial(c *conn) (deploy.Trial, func()) {
	g, closeGate := o.app.gate(0)
	c.serve(&g)
	return g.Try, closeGate
}

// warn says what a person should know before the next step. It stands in the fields of -o json as well.
func (a *App) warn(format string, args ...any) {
	a.note("%s %s", a.paint(a.Err, yellow, "warning:"), fmt.Sprintf(format, args...))
}

func (a *App) warnGaps(build, other string, gaps []deploy.Gap) {
	for _, g := range gaps {
		a.warn("new runs on build %s take number %d of %s, and build %s understands %d to %d: those that have begun cannot go back to it",
			line(build, 64), g.Number, line(g.Type, 64), line(other, 64), g.Oldest, g.Newest)
	}
}

// completeBuilds offers the builds of the deployment.
func (o *deployOptions) completeBuilds(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	name, err := o.name()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.app.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		d, err := deploy.Fleet{Client: c.Client, Namespace: c.namespace, Deployment: name}.Describe(ctx)
		if err != nil {
			return nil
		}
		var out []string
		for _, b := range d.Builds {
			if strings.HasPrefix(b.ID, prefix) && worker.CheckBuild(b.ID) == nil { // any other would be trouble in a shell
				out = append(out, b.ID+"\t"+standing(b))
			}
		}
		return out
	})
}

// completeDeployments offers those that there are.
func (o *deployOptions) completeDeployments(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return o.app.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		names, _ := deploy.Fleet{Client: c.Client, Namespace: c.namespace}.Deployments(ctx) // without a server nothing is offered
		var out []string
		for _, name := range names {
			if strings.HasPrefix(name, prefix) && worker.CheckDeployment(name) == nil {
				out = append(out, name)
			}
		}
		return out
	})
}

// standing is what Temporal does with a build, in words.
func standing(b deploy.Build) string {
	if b.Standing == deploy.Ramping {
		return fmt.Sprintf("ramping %v%%", b.Percent)
	}
	return string(b.Standing)
}

// polling says whether workers of a build poll.
func polling(b deploy.Build, now time.Time) string {
	switch {
	case b.Polls():
		return fmt.Sprint(b.Workers)
	case b.Polled.IsZero():
		return "none"
	}
	return "none for " + span(now.Sub(b.Polled))
}
