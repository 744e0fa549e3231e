// Bank is the MCP server of a world: its argument is the path of its books.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-run/holdfast/internal/payments/bank"
)

func main() {
	if err := bank.Main(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
