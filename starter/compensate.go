package starter

import "github.com/spf13/cobra"

func newCompensate(*App) *cobra.Command {
	return &cobra.Command{Use: "compensate SESSION/turn-N [EFFECT-KEY...]", Short: "Run, or try again, a turn's compensations", Args: cobra.MinimumNArgs(1)}
}
