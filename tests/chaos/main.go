package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/naive"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == naive.Command {
		os.Exit(exit(naive.Main()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exit(chaos(ctx, os.Args[1:])))
}

// errViolated is the end of a run that found something.
var errViolated = errors.New("the promise was broken: see the violations above")

func exit(err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errViolated):
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "chaos:", err)
	return 2
}

// options are the command line's.
type options struct {
	quick, list, keep, plain bool
	schedules                int
	lasting                  time.Duration
	seed                     uint64
	first                    int
	only                     string
	jobs                     int
	markdown, json           string
	render, soaked           string
	dir                      string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.BoolVar(&o.quick, "quick", false, "a representative tenth of the table")
	f.BoolVar(&o.list, "list", false, "print the names of the cells, and what is left out and why")
	f.StringVar(&o.only, "only", "", "run only the cell of this name, or those whose name contains the `text`")
	f.IntVar(&o.schedules, "soak", 0, "run `n` random schedules instead of the table")
	f.DurationVar(&o.lasting, "for", 0, "run random schedules for this long")
	f.Uint64Var(&o.seed, "seed", 1, "what random schedules are made of")
	f.IntVar(&o.first, "first", 0, "the `number` of the first random schedule; with -soak 1 one is run again")
	f.IntVar(&o.jobs, "jobs", 4*runtime.NumCPU(), "how many cells run at a time")
	f.BoolVar(&o.plain, "plain", true, "run the plain loop beside it")
	f.StringVar(&o.markdown, "markdown", "", "write the table to this `file` instead of to standard output")
	f.StringVar(&o.json, "json", "", "write the table as JSON to this `file`")
	f.StringVar(&o.render, "render", "", "run nothing: print the table that was saved as JSON in this `file`")
	f.StringVar(&o.soaked, "soaked", "", "with the soak that was saved as JSON in this `file`")
	f.BoolVar(&o.keep, "keep", false, "keep the folder in which it happened, with what the workers said")
	f.StringVar(&o.dir, "dir", "", "the `folder` in which a new one is made for it (default: that of temporary files)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: see chaos -help", f.Arg(0))
	case o.jobs < 1 || o.schedules < 0 || o.first < 0:
		return o, errors.New("-jobs, -soak and -first count from 1, 0 and 0")
	case o.soaked != "" && o.render == "":
		return o, errors.New("-soaked goes with -render")
	case o.random() && (o.quick || o.only != ""):
		return o, errors.New("-soak and -for make schedules of their own: leave -quick and -only out")
	}
	return o, nil
}

func (o options) random() bool { return o.schedules > 0 || o.lasting > 0 }

// cells are the ones of the table that are asked for.
func (o options) cells() ([]cell.Cell, error) {
	if c, ok := cell.Find(o.only); ok {
		return []cell.Cell{c}, nil
	}
	var out []cell.Cell
	for _, c := range cell.All() {
		if (!o.quick || c.Quick) && strings.Contains(c.Name(), o.only) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no cell is called %q: chaos -list prints the names", o.only)
	}
	return out, nil
}
