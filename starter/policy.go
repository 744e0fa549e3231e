package starter

import (
	"github.com/spf13/cobra"
)

func newPolicy(*App) *cobra.Command {
	return &cobra.Command{Use: "policy", Short: "Check the policy and explain its verdicts", Args: groupArgs}
}
