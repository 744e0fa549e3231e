// Command holdfast runs AI agents durably on Temporal. See package starter for the command line and
// package worker for what it runs.
package main

import (
	"os"

	"github.com/holdfast-run/holdfast/starter"
)

func main() { os.Exit(starter.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
