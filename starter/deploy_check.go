package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/worker"
)

type deployCheckOptions struct {
	*deployOptions
	build    string
	query    string
	parallel int
}

func newDeployCheck(d *deployOptions) *cobra.Command {
	o := &deployCheckOptions{deployOptions: d}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say before a rollout what would break, and what becomes of open sessions",
		Long: `Looks at the open sessions and turns of the namespace through the eyes of this build and this configuration,
before any worker of it runs. It replays their histories, and compares what each session's last turn and each
open turn was made with - the agent's definition, policy, build - with what they would get now.

Errors are what would stop a run or take from it what it was promised: a history that does not replay, an agent
that is gone, a pinned definition, tool version or model version that is not there any more. Each says what to do.
A drift alone is no error: what becomes of it is what upgrade says in the configuration (follow, pin or ask).

It needs the server, the configuration with its MCP servers, and the store; no worker, and it changes nothing. Run
the new build with the new configuration. It exits with 1 if there is any error.`,
		Example: `  holdfast deploy check
  holdfast deploy check --config next/holdfast.yaml --query 'HoldfastAgent="support"'
  holdfast deploy check -o json | jq '.runs[] | select(.errors)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.build, "build-id", "", "which `build` this is (default: what the program was built from, see: holdfast version)")
	f.StringVar(&o.query, "query", "", "only open runs that match, a `filter` as of: temporal workflow list --query")
	f.IntVar(&o.parallel, "parallel", 0, "so many histories at once (default: one and a half for each processor)")
	_ = cmd.RegisterFlagCompletionFunc("query", cobra.FixedCompletions(checkQueries, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// checkQueries show what a query looks like.
var checkQueries = []string{`HoldfastAgent="support"`, `HoldfastStatus="waiting"`}

// A deployChecked is what -o json prints.
type deployChecked struct {
	OK bool `json:"ok"`
	deploy.CheckReport
	// Runs has every run that was compared, by its workflow id.
	Runs []deploy.Crossing `json:"runs"`
	Next []string          `json:"next,omitempty"`
}

func (o *deployCheckOptions) run(ctx context.Context) error {
	a := o.app
	if err := o.usage(); err != nil {
		return err
	}
	if err := a.configThere(); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	check := deploy.Check{Query: o.query}
	problems, noStore, closeStore := o.atHand(ctx, &check)
	defer closeStore()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out := deployChecked{Runs: []deploy.Crossing{}}
	if a.json() {
		check.Each = func(x deploy.Crossing) { out.Runs = append(out.Runs, x) }
	}
	gate, closeGate := a.gate(o.parallel)
	defer closeGate()
	c.serve(&gate)
	tell, wipe := a.progress("replaying")
	gate.Progress, check.Gate = tell, gate
	out.CheckReport, err = check.Run(ctx)
	wipe()
	if err != nil {
		return queryHint(err)
	}
	slices.SortFunc(out.Runs, func(a, b deploy.Crossing) int { return strings.Compare(a.Workflow, b.Workflow) })
	if noStore != "" && out.Replay.Total > 0 { // before anything has run there may be none yet
		problems = append(problems, noStore)
	}
	out.Problems = append(problems, out.Problems...)
	out.OK, out.Next = out.CheckReport.OK(), o.next(out.CheckReport)
	return o.print(out)
}

// atHand gets what runs are compared with. What cannot be had is a problem, that of the store by itself, and the replay
// is worth its while without. The caller calls the function when it is done.
func (o *deployCheckOptions) atHand(ctx context.Context, check *deploy.Check) (problems []string, noStore string, done func()) {
	problem := func(what string, err error) string {
		message, hint := explain(err)
		if hint != "" {
			message += "\n" + hint
		}
		return what + ": " + message
	}
	var err error
	if check.Now, err = o.inventory(ctx); err != nil {
		return []string{problem("the configuration cannot be used, so that nothing is compared with it", err)}, "", func() {}
	}
	s, err := o.app.openStore(ctx, "")
	if err != nil {
		return nil, problem("the store cannot be read, so that old definitions are not looked at", err), func() {}
	}
	check.Store = s
	return nil, "", func() { _ = s.Close() } // it was only read
}

func (o *deployCheckOptions) usage() error {
	if o.parallel < 0 {
		return usageError("--parallel %d: want at least 1", o.parallel)
	}
	if err := checkDeploymentFlag(o.deployment); err != nil {
		return err
	}
	return checkBuildFlag(o.build)
}

// inventory is what a worker of this build would use with the file.
func (o *deployCheckOptions) inventory(ctx context.Context) (*worker.Inventory, error) {
	a := o.app
	cfg, err := worker.Load(a.config)
	if err != nil {
		return nil, err
	}
	for _, t := range cfg.Tools {
		if t.MCP != nil {
			a.note("starting the MCP servers of %s to list their tools", a.config)
			break
		}
	}
	return worker.Options{Build: o.build}.Inventory(ctx, cfg, a.Tools...)
}

func (o *deployCheckOptions) print(out deployChecked) error {
	a := o.app
	if a.json() {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.printReplay(out.Replay)
		a.printCheck(out.CheckReport, out.Next)
	}
	if out.OK {
		return nil
	}
	wrong := len(out.Problems) + len(out.Errors) + len(out.Replay.Failures) + len(out.Replay.Unread)
	return withHint(fmt.Errorf("%s: this build and this configuration are not to be rolled out as they are", count(wrong, "error")),
		"what to do stands with each; then check again")
}

// next says what comes after a check that found nothing wrong.
func (o *deployCheckOptions) next(r deploy.CheckReport) []string {
	if !r.OK() {
		return nil
	}
	deployment, _ := o.named() // the configuration was read a moment ago
	flag := o.flag()
	if deployment == "" {
		return []string{"restart the workers with this build and this configuration: without a deployment (worker.deployment) any worker takes any run"}
	}
	out := []string{
		fmt.Sprintf("start workers of this build: holdfast worker --deployment %s --build-id %s", deployment, r.Build),
		fmt.Sprintf("give it a share: holdfast deploy ramp %s --percent 10%s, and look at it: holdfast deploy status%s", r.Build, flag, flag),
		fmt.Sprintf("give it everything: holdfast deploy promote %s%s", r.Build, flag),
	}
	for _, d := range r.Drift {
		if d.Then == deploy.FateStays {
			out = append(out, fmt.Sprintf("keep workers of %s until nothing needs them: holdfast deploy drain %s%s", line(d.From, 128), word(d.From), flag))
		}
	}
	return out
}
