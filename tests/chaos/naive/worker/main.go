// Command worker is the worker of the plain loop and nothing else, for tests of package naive. Build it with the tag
// "failpoint".
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-run/holdfast/tests/chaos/naive"
)

func main() {
	if err := naive.Main(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
