package starter

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/worker"
)

// A versionInfo says what this program was built from.
type versionInfo struct {
	Version string `json:"version"`
	Build   string `json:"build"` // what results record as their producer
	Go      string `json:"go"`
	SDK     string `json:"temporal_sdk"`
}

func newVersion(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the build id",
		Example: `  holdfast version -o json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *App) printVersion() error {
	v := versionInfo{Version: "(devel)", Build: worker.BuildID(), Go: runtime.Version(), SDK: temporal.SDKVersion}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	if a.json() {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.Out, "holdfast %s\nbuild %s\n%s, Temporal SDK %s\n", v.Version, v.Build, v.Go, v.SDK)
	return err
}
