package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/worker"
)

func newPolicy(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check the policy and explain its verdicts",
		Example: `  holdfast policy check
  holdfast policy explain --tool refund --args '{"order":"42","amount":"80.00"}'`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyCheck(a), newPolicyExplain(a))
	return cmd
}

func newPolicyCheck(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the policy of the configuration and say what it is",
		Long: `Reads the configuration and says what its policy is: posture, rules, approvers with the fingerprints of their keys,
and what may become of the calls of each agent. It needs no server and no key, and starts no MCP server, whose tools
are not looked at. It exits with 1 if something is wrong.`,
		Example: `  holdfast policy check
  holdfast policy check --config /etc/holdfast.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.checkPolicy() },
	}
}

func (a *App) checkPolicy() error {
	if err := a.configThere(); err != nil {
		return err
	}
	cfg, err := worker.LoadPolicy(a.config)
	var wrong *worker.ConfigError
	if a.json() && errors.As(err, &wrong) {
		if err := a.printJSON(worker.PolicyCheck{File: a.config, Problems: wrong.Problems}); err != nil {
			return err
		}
		return &exitError{code: ExitError}
	}
	if err != nil {
		return err
	}
	r := cfg.CheckPolicy(a.Tools...)
	r.File = a.config
	if a.json() {
		err = a.printJSON(r)
	} else {
		err = r.WriteText(a.Out)
	}
	if err == nil && !r.OK() {
		return &exitError{code: ExitError}
	}
	return err
}

// configThere says what to do when there is no configuration.
func (a *App) configThere() error {
	if _, err := os.Stat(a.config); errors.Is(err, fs.ErrNotExist) {
		return withHint(fmt.Errorf("there is no configuration %q", a.config), "write one with `holdfast config init`, or name another with --config")
	}
	return nil
}

func newPolicyExplain(a *App) *cobra.Command {
	var q worker.Question
	cmd := &cobra.Command{
		Use:   "explain --tool TOOL",
		Short: "Say what the policy decides about a call, and why",
		Long: `Says which rule of which layer decides about a call, what became of every other rule, and what an approval takes. The
call is neither made nor recorded. A tool of an MCP server needs the server: it is started as "holdfast config check"
does. For other tools nothing is started and no key is needed.`,
		Example: `  holdfast policy explain --tool refund --args '{"order":"42","amount":"80.00"}'
  holdfast policy explain --tool files.write_file --args @args.json --agent librarian --actor alice -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.explainPolicy(cmd.Context(), q) },
	}
	f := cmd.Flags()
	f.StringVar(&q.Tool, "tool", "", "the tool as a model calls it, or SERVER.TOOL")
	f.StringVar(&q.Args, "args", "{}", "its arguments as JSON, @FILE to read them, - for stdin")
	f.StringVar(&q.Agent, "agent", "", "the agent that asks (default: the one that lists the tool)")
	f.StringVar(&q.Actor, "actor", "", "who sent the message and signed it (default: somebody who did not sign)")
	f.StringVar(&q.Session, "session", "", "the session's id, for rules that look at it")
	return cmd
}

func (a *App) explainPolicy(ctx context.Context, q worker.Question) error {
	if q.Tool == "" {
		return usageError("name the tool: holdfast policy explain --tool TOOL --args JSON")
	}
	if err := a.configThere(); err != nil {
		return err
	}
	var err error
	if q.Args, err = a.readArgs(q.Args); err != nil {
		return err
	}
	answer, err := worker.ExplainPolicy(ctx, a.config, q, a.Tools...)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(answer)
	}
	_, err = io.WriteString(a.Out, answer.String())
	return err
}

// maxArgsFile bounds what is read as arguments in bytes.
const maxArgsFile = 1 << 20

// readArgs returns JSON as it is given, or what a file or stdin holds.
func (a *App) readArgs(given string) (string, error) {
	var from io.Reader
	switch {
	case given == "-":
		from = a.In
	case given != "" && given[0] == '@':
		f, err := os.Open(given[1:])
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		from = f
	default:
		return given, nil
	}
	b, err := io.ReadAll(io.LimitReader(from, maxArgsFile+1))
	if err == nil && len(b) > maxArgsFile {
		err = fmt.Errorf("the arguments are larger than %d bytes", maxArgsFile)
	}
	return string(b), err
}
