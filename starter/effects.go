package starter

import "github.com/spf13/cobra"

func newEffects(*App) *cobra.Command {
	return &cobra.Command{Use: "effects [SESSION[/turn-N]]", Short: "Show what actions did, or may have done", Args: cobra.MaximumNArgs(1)}
}
