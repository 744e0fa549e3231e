package starter

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/internal/demo"
)

// demoModel is used with OPENAI_API_KEY when OPENAI_MODEL names none.
const demoModel = "gpt-5-mini"

func newDemo(a *App) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See a worker die right after a payment, and the payment happen once",
		Long: `Starts a Temporal server, a worker, a payments service and a model, has an agent refund an
order, kills the worker right after the payment was made, and shows the books. Takes about
a minute and needs no API key. The exit code is 0 only if there is exactly one refund.

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
				Keep:   keep,
				Model:  demoModelFrom(os.Getenv),
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running at the end, until Ctrl-C")
	return cmd
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
