package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(exit(workerMain(os.Args[2:])))
	}
	if len(os.Args) > 1 && os.Args[1] == "cli" {
		os.Exit(cliMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exit(benchMain(ctx, os.Args[1:])))
}

func exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}

// options are the command line's.
type options struct {
	quick, full bool
	memory      bool   // nothing touches a disk
	profile     string // folder for CPU profiles of the workers
	json        string // file for the numbers
	only        string // part of a cell's name
}

func benchMain(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.BoolVar(&o.quick, "quick", false, "a smaller matrix, once: a minute or two")
	f.BoolVar(&o.full, "full", false, "the whole matrix, 50 at a time with 100 steps too: half an hour and more")
	f.BoolVar(&o.memory, "memory", false, "keep the server's database and the store in memory instead of on disk")
	f.StringVar(&o.profile, "profile", "", "write CPU profiles of the worker processes into this `folder`")
	f.StringVar(&o.json, "json", "", "write the numbers to this `file`")
	f.StringVar(&o.only, "only", "", "measure only cells whose name contains this `text`, such as K=5 or \"deploy check\"")
	if err := f.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	l, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer l.close()
	r, err := l.measure(ctx, o)
	if err != nil {
		return err
	}
	r.Took = time.Since(began).Round(time.Second).String()
	r.markdown(os.Stdout)
	if b := l.model.Breaches(); len(b) > 0 {
		return fmt.Errorf("a strict provider would refuse what was sent: %s", b[0])
	}
	return writeJSON(o.json, r)
}

func writeJSON(path string, v any) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
