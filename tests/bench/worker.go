package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/worker"
)

// A variant is one way to do the job.
type variant string

const (
	holdfast variant = "holdfast"
	byNaive  variant = "naive"
	byFloor  variant = "floor"
)

// workerMain is the process of one variant's worker. It says "ready" on its standard output, answers every
// line of its standard input with a report, and stops at its end.
func workerMain(args []string) error {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	kind := f.String("variant", "", "")
	address := f.String("address", "", "")
	model := f.String("model", "", "")
	config := f.String("config", "", "")
	profile := f.String("profile", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *profile != "" {
		p, err := os.Create(filepath.Join(*profile, *kind+".cpu"))
		if err != nil {
			return err
		}
		defer p.Close()
		if err := pprof.StartCPUProfile(p); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	requests := newRequests()
	ctx, cancel := context.WithCancel(context.Background())
	go answer(requests, cancel)
	o := client.Options{HostPort: *address, MetricsHandler: requests, Logger: quiet()}
	if variant(*kind) == holdfast {
		return serveHoldfast(ctx, o, *config)
	}
	return serveLoop(ctx, o, variant(*kind), *model)
}

// answer reports what was asked of the server so far, for each line of standard input.
func answer(r *requests, end context.CancelFunc) {
	defer end()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		b, err := json.Marshal(r.counts())
		if err != nil {
			return
		}
		fmt.Println(string(b))
	}
}

func serveHoldfast(ctx context.Context, o client.Options, config string) error {
	c, err := worker.Load(config)
	if err != nil {
		return err
	}
	own, err := tools()
	if err != nil {
		return err
	}
	return worker.Options{
		Client: &o, Logger: slog.New(slog.DiscardHandler), Ready: func(worker.Status) { fmt.Println("ready") },
	}.Run(ctx, c, own...)
}

// serveLoop runs a hand-written loop with the options that Holdfast's worker has.
func serveLoop(ctx context.Context, o client.Options, v variant, model string) error {
	c, err := client.Dial(o)
	if err != nil {
		return err
	}
	defer c.Close()
	m, err := openai.New(openai.Config{BaseURL: model, Model: "scripted", Stream: true, AttemptTimeout: 5 * time.Minute})
	if err != nil {
		return err
	}
	pollers := sdk.PollerBehaviorAutoscalingOptions{InitialNumberOfPollers: 5, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 50}
	w := sdk.New(c, string(v), sdk.Options{
		MaxConcurrentActivityExecutionSize: 200,
		WorkflowTaskPollerBehavior:         sdk.NewPollerBehaviorAutoscaling(pollers),
		ActivityTaskPollerBehavior:         sdk.NewPollerBehaviorAutoscaling(pollers),
	})
	if v == byNaive {
		(&naive{model: m}).register(w)
	} else {
		(&floor{model: m}).register(w)
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}
