package starter

import "github.com/spf13/cobra"

func newAttention(*App) *cobra.Command {
	return &cobra.Command{Use: "attention", Short: "List what needs a person", Args: cobra.NoArgs}
}
