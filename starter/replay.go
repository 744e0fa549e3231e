package starter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/workflows"
)

type replayOptions struct {
	app        *App
	query      string
	allowEmpty bool
	parallel   int
}

func newReplay(a *App) *cobra.Command {
	o := &replayOptions{app: a}
	cmd := &cobra.Command{
		Use:   "replay [FILE|FOLDER]...",
		Short: "Replay histories against this build and say which would break",
		Long: `Run the workflow code of this build over recorded histories, and say where the two part: a worker of
this build could not go on with such a run. It exits with 0 when all of them replay, and with 1 otherwise.

Without files it looks at the open sessions and turns of the namespace, or at those that --query finds,
closed ones too. Nothing is changed, and no worker is needed. What cannot be fetched is listed and never
counts as passed.

With files no server is needed. A folder means all *.json files below it, and - means standard input. Save
one with: temporal workflow show -w WORKFLOW -o json`,
		Example: `  holdfast replay
  holdfast replay --query 'HoldfastStatus="waiting"'
  holdfast replay --query 'ExecutionStatus="Running" AND HoldfastAgent="support"' -o json
  holdfast replay tests/histories
  temporal workflow show -w chat-1:turn-3 -o json | holdfast replay -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("query") {
				return withHint(usageError("--query finds runs of the server, and files need none: give one of the two"), "see: %s --help", cmd.CommandPath())
			}
			return o.run(cmd.Context(), args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt // and folders
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.query, "query", "", "which runs, a `filter` as of: temporal workflow list --query (default: the open ones)")
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "that there is nothing to replay is no error")
	f.IntVar(&o.parallel, "parallel", 0, "so many at once (default: one and a half for each processor)")
	_ = cmd.RegisterFlagCompletionFunc("query", cobra.FixedCompletions(queryExamples, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// queryExamples show what a query looks like.
var queryExamples = []string{`HoldfastStatus="waiting"`, `ExecutionStatus="Running" AND HoldfastAgent="support"`}

func (o *replayOptions) run(ctx context.Context, paths []string) error {
	a := o.app
	if o.parallel < 0 {
		return usageError("--parallel %d: want at least 1", o.parallel)
	}
	g, closeGate := a.gate(o.parallel)
	defer closeGate()
	tell, wipe := a.progress("replaying")
	g.Progress = tell
	var r deploy.Report
	var err error
	if len(paths) > 0 {
		r, err = o.files(ctx, g, paths)
	} else {
		r, err = o.runs(ctx, g)
	}
	wipe()
	if err != nil {
		if r.Total > 0 {
			a.note("stopped: %s were looked at, %d of them do not replay", histories(r.Total), len(r.Failures))
		}
		return err
	}
	verdict := o.verdict(r, paths)
	if !a.json() {
		a.printReplay(r)
		return verdict
	}
	if err := a.printJSON(struct {
		OK bool `json:"ok"`
		deploy.Report
	}{verdict == nil, r}); err != nil {
		return err
	}
	return verdict
}

func (o *replayOptions) files(ctx context.Context, g deploy.Gate, paths []string) (deploy.Report, error) {
	c, err := o.app.clientOptions() // for its codec
	if err != nil {
		return deploy.Report{}, err
	}
	g.Payloads, g.Stdin = c.DataConverter, o.app.In
	return g.Files(ctx, paths, nil)
}

func (o *replayOptions) runs(ctx context.Context, g deploy.Gate) (deploy.Report, error) {
	c, err := o.app.connect(ctx)
	if err != nil {
		return deploy.Report{}, err
	}
	defer c.Close()
	c.serve(&g)
	r, err := g.Runs(ctx, o.query, nil)
	return r, queryHint(err)
}

// queryHint shows what a query looks like to whoever wrote one that the server does not take.
func queryHint(err error) error {
	var bad *deploy.QueryError
	if errors.As(err, &bad) {
		return withHint(err, "a query is one of temporal workflow list, for example: --query '%s'", queryExamples[0])
	}
	return err
}

// gate makes what replays histories; the caller calls the function when it is done. The store is opened if a history
// needs it.
func (a *App) gate(parallel int) (deploy.Gate, func()) {
	var opened atomic.Pointer[store.Store] // a replay that was interrupted may still open it
	g := deploy.Gate{
		Parallel: parallel,
		Register: func(r sdkworker.WorkflowRegistry) { workflows.Register(r, workflows.Options{Replay: true}) },
		Stored: func(ctx context.Context) (converter.StorageDriver, error) {
			s, err := a.openStore(ctx, "")
			if err != nil {
				return nil, err
			}
			opened.Store(s)
			return s.PayloadDriver(), nil
		},
	}
	return g, func() {
		if s := opened.Load(); s != nil {
			_ = s.Close()
		}
	}
}

// serve lets a gate ask the server.
func (c *conn) serve(g *deploy.Gate) {
	g.Client, g.Namespace, g.Payloads = c.Client, c.namespace, c.payloads
}

// verdict turns a report into the command's end.
func (o *replayOptions) verdict(r deploy.Report, paths []string) error {
	switch {
	case len(r.Failures) > 0:
		return withHint(fmt.Errorf("%d of %s %s not replay with this build", len(r.Failures), histories(r.Total), do(len(r.Failures))),
			"a worker of this build could not go on with them: what to do stands with each")
	case len(r.Unread) > 0:
		return withHint(fmt.Errorf("%d of %s could not be looked at", len(r.Unread), histories(r.Total)), "why stands with each; what was not seen does not count as passed")
	case r.Replayed() > 0 || o.allowEmpty:
		return nil
	case r.NotRun > 0:
		return withHint(fmt.Errorf("there is nothing to replay: %s, and the code of none has run yet", count(r.Total, "run")), "--allow-empty takes that as good")
	case len(paths) > 0:
		return withHint(errors.New("there is nothing to replay: no *.json file"), "--allow-empty takes that as good")
	}
	return withHint(errors.New("there is nothing to replay: no session and no turn matches"), "--allow-empty takes that as good")
}

func do(n int) string {
	if n == 1 {
		return "does"
	}
	return "do"
}
