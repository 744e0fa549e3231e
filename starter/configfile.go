package starter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/worker"
)

// loadConfig reads the configuration that --config names, for a worker.
func (a *App) loadConfig() (*worker.Config, error) {
	if err := a.configThere(); err != nil {
		return nil, err
	}
	return worker.Load(a.config)
}

func newConfig(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write and check holdfast.yaml",
		Example: `  holdfast config init
  holdfast config check`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigInit(a), newConfigCheck(a))
	return cmd
}

func newConfigInit(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Write a small holdfast.yaml to begin with",
		Example: `  holdfast config init --config agents/holdfast.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.initConfig() },
	}
}

const firstConfig = `# What the workers may do: models, tools and agents. Clients only name an agent.
# Check it with: holdfast config check

# Raise it with every change: a worker with a lower one than a turn has seen refuses the turn.
serial: 1

models:
  gpt-5:
    # Any server that speaks the OpenAI chat completions protocol.
    base_url: https://api.openai.com/v1
    # Keys are references: env:NAME or file:/path.
    key: env:OPENAI_API_KEY

agents:
  assistant:
    instructions: You are a helpful assistant. Answer briefly.
    model: gpt-5
    tools: []

# A tool says what it does when it is sent twice: read, idempotent, reconcilable, or once (the default).
# tools:
#   get_order:
#     description: Looks an order up by its number.
#     effect: read
#     parameters:
#       type: object
#       properties: {id: {type: string}}
#       required: [id]
#     http:
#       url: https://orders.example.com/orders/{id}
#       headers:
#         Authorization: Bearer ${env:ORDERS_TOKEN}

# What reads is allowed and what changes something asks a person (holdfast approvals), unless a rule says otherwise.
# The first rule that matches decides. Try it with: holdfast policy explain --tool refund --args '{"amount":5}'
# policy:
#   rules:
#   - name: small-refunds
#     when: tool == "refund" && args.amount <= 50
#     then: allow
#   # A conversation takes its agent's new instructions, model and tools at its next turn (follow), keeps the old ones
#   # (pin), or asks a person (ask). What would change for which: holdfast deploy check
#   upgrade: follow

# Name a deployment to run two builds side by side and to move work from one to the other (holdfast deploy).
# worker:
#   deployment: assistants
`

// initConfig writes a file to begin with and never over another one.
func (a *App) initConfig() error {
	if err := os.MkdirAll(filepath.Dir(a.config), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(a.config, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return withHint(fmt.Errorf("%q is there already and is left as it is", a.config), "name another with --config, or check this one: holdfast config check")
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(firstConfig)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(map[string]string{"file": a.config})
	}
	flag := ""
	if a.config != defaultConfig {
		flag = " --config " + a.config
	}
	_, err = fmt.Fprintf(a.Out, "wrote %s\nnext: export OPENAI_API_KEY=..., then holdfast dev%s\n", a.config, flag)
	return err
}

func newConfigCheck(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and say what a worker would register",
		Long: `Reads the configuration, starts its MCP servers and lists their tools, proves the store, and says what a worker
would register. It exits with 1 if a worker would not start. No model is asked.`,
		Example: `  holdfast config check
  holdfast config check --config /etc/holdfast.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.checkConfig(cmd.Context()) },
	}
}

func (a *App) checkConfig(ctx context.Context) error {
	cfg, err := a.loadConfig()
	var wrong *worker.ConfigError
	if a.json() && errors.As(err, &wrong) {
		if err := a.printJSON(wrong.Report(a.config)); err != nil {
			return err
		}
		return &exitError{code: ExitError}
	}
	if err != nil {
		return err
	}
	r, err := cfg.Check(ctx, a.Tools...)
	if err != nil {
		return err
	}
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
