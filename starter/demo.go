package starter

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/internal/demo"
)

// demoModel is used with OPENAI_API_KEY when OPENAI_MODEL names none.
const demoModel = "gpt-5-mini"

func newDemo(a *App) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See a worker die after an approval and after a payment, and the payment happen once",
		Long: `Starts a Temporal server, a worker, a payments service and a model, has an agent ask for a
refund that policy lets wait for an approval, kills the worker after the approval and again
right after the payment was made, and shows the service's books and the ledger. On a
terminal it asks you for the approval; elsewhere it approves by itself, with a throw-away
key. Takes less than a minute and needs no API key. The exit code is 0 only if there is
exactly one refund, or none because you declined.

With OPENAI_API_KEY set it asks that model instead of the scripted one; OPENAI_BASE_URL and
OPENAI_MODEL name another server and another model.`,
		Example: "  holdfast demo\n  holdfast demo --keep    # look around in the Web UI afterwards",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := os.Executable()
			if err != nil {
				return fmt.Errorf("cannot find this program's own file: %w", err)
			}
			return demo.Run(cmd.Context(), demo.Config{
				Binary: binary,
				Out:    a.Out,
				Bold:   func(s string) string { return a.paint(a.Out, bold, s) },
				Ask:    a.demoAsk(),
				Keep:   keep,
				Model:  demoModelFrom(os.Getenv),
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running at the end, until Ctrl-C")
	return cmd
}

// demoAsk returns how to ask the person at the terminal, nil if there is none. Anything but yes is no.
func (a *App) demoAsk() func(context.Context, string) (bool, error) {
	if in, ok := a.In.(*os.File); !ok || !isTerminal(in) || !isTerminal(a.Out) {
		return nil
	}
	return func(ctx context.Context, question string) (bool, error) {
		fmt.Fprint(a.Out, question)
		text, err := readAnswer(ctx, a.In, 100)
		return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(text))), err
	}
}

// demoModelFrom returns the model that the usual environment variables name, or nil.
func demoModelFrom(getenv func(string) string) *demo.Model {
	if getenv("OPENAI_API_KEY") == "" {
		return nil
	}
	m := &demo.Model{BaseURL: getenv("OPENAI_BASE_URL"), Name: getenv("OPENAI_MODEL")}
	if m.Name == "" {
		m.Name = demoModel
	}
	return m
}
