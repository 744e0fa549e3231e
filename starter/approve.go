package starter

import (
	"github.com/spf13/cobra"
)

func newApprove(*App) *cobra.Command {
	return &cobra.Command{Use: "approve ID", Short: "Approve an action that waits", Args: cobra.ExactArgs(1)}
}

func newDecline(*App) *cobra.Command {
	return &cobra.Command{Use: "decline ID", Short: "Decline an action that waits", Args: cobra.ExactArgs(1)}
}
