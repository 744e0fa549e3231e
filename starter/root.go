package starter

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/tool"
)

// An App is what every command shares: where it reads and prints, the tools of this program, and the flags
// that all commands have.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Tools    []tool.Tool

	output    string
	quiet     bool
	config    string
	address   string
	namespace string
	profile   string
}

// defaultConfig is what --config names unless it is given.
const defaultConfig = "holdfast.yaml"

const rootHelp = `Holdfast runs AI agents durably on Temporal: kill anything at any moment, and each
effect on the world has happened once, or is shown as uncertain.

Start here:   holdfast config init && holdfast dev
In a second terminal:   holdfast run assistant "hello"`

// NewRoot returns the command "holdfast" with all its subcommands.
func NewRoot(a *App) *cobra.Command {
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Durable AI agents on Temporal",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := usageError("unknown command %q", args[0])
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				return withHint(err, "did you mean: holdfast %s", strings.Join(like, ", holdfast "))
			}
			return withHint(err, "see what there is: holdfast --help")
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkFlags() },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see: %s --help"
		if strings.Contains(cmd.Use, "[MESSAGE]") {
			hint += "; put -- before a message that begins with a hyphen"
		}
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // which says it in Go's words
		return withHint(usageError("%s", text), hint, cmd.CommandPath())
	})
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	a.addFlags(root)
	root.AddCommand(a.commands()...)
	root.AddCommand(topics()...)
	strictArgs(root)
	return root
}

func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		newDev(a), newWorker(a), newSetup(a), newConfig(a),
		newRun(a), newStart(a), newSend(a), newWatch(a),
		newShow(a), newSessions(a), newTranscript(a), newAttention(a),
		newApprovals(a), newApprove(a), newDecline(a),
		newEffects(a), newCompensate(a), newPolicy(a),
		newCancel(a), newClose(a), newExtend(a),
		newReplay(a), newRecover(a), newFork(a), newDeploy(a),
		newDemo(a), newVersion(a),
	}
}

func (a *App) addFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVarP(&a.output, "output", "o", "text", "text, or json: one object, or one a line (see: holdfast help json)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no notes on stderr")
	f.StringVar(&a.config, "config", defaultConfig, "the configuration `file`")
	f.StringVar(&a.address, "address", "", "Temporal server, host:port (default: TEMPORAL_ADDRESS, the profile's, 127.0.0.1:7233)")
	f.StringVar(&a.namespace, "namespace", "", "Temporal namespace (default: TEMPORAL_NAMESPACE, the profile's, \"default\")")
	f.StringVar(&a.profile, "profile", "", "profile of Temporal's client configuration file (default: TEMPORAL_PROFILE)")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml")
}

func (a *App) checkFlags() error {
	if a.output != "text" && a.output != "json" {
		return usageError("--output %q: want text or json", a.output)
	}
	return nil
}

// strictArgs makes every complaint about arguments a usage error.
func strictArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var exit *exitError
			if err == nil || errors.As(err, &exit) {
				return err
			}
			return withHint(usageError("%s", wanted(cmd, args)), "usage: %s", cmd.UseLine())
		}
	}
	for _, sub := range cmd.Commands() {
		strictArgs(sub)
	}
}

// wanted says what a command takes and what it got instead.
func wanted(cmd *cobra.Command, args []string) string {
	takes := "no argument"
	if _, names, ok := strings.Cut(cmd.Use, " "); ok && !strings.HasPrefix(names, "-") {
		takes = names
	}
	if len(args) == 0 {
		return cmd.CommandPath() + " takes " + takes
	}
	return fmt.Sprintf("%s takes %s, and got %s: %s", cmd.CommandPath(), takes, count(len(args), "argument"), line(strings.Join(args, " "), 80))
}

// groupArgs is for commands that only hold others.
func groupArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}
