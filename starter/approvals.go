package starter

import (
	"github.com/spf13/cobra"
)

func newApprovals(*App) *cobra.Command {
	return &cobra.Command{Use: "approvals", Short: "List what waits for a person's approval", Args: groupArgs}
}
