package naive

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// Command is the first argument of a program that is to call [Main]: the one that calls [Run].
const Command = "naive-worker"

// A config is what a worker is told.
type config struct {
	address, queue  string // of Temporal
	model, payments string // URLs
	cold            bool   // it keeps no workflow in memory
}

// args are the arguments by which a worker is told, without [Command].
func (c config) args() []string {
	return []string{
		"-address", c.address, "-queue", c.queue, "-model", c.model, "-payments", c.payments, "-cold=" + strconv.FormatBool(c.cold),
	}
}

func parse(args []string) (c config, err error) {
	f := flag.NewFlagSet(Command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.address, "address", "", "")
	f.StringVar(&c.queue, "queue", "", "")
	f.StringVar(&c.model, "model", "", "")
	f.StringVar(&c.payments, "payments", "", "")
	f.BoolVar(&c.cold, "cold", false, "")
	return c, f.Parse(args)
}

// Main is the process of the loop's worker. Its arguments are what follows [Command] on the command line; it runs until
// it is told to end.
func Main() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := parse(os.Args[2:])
	if err != nil {
		return err
	}
	return work(ctx, c)
}

func work(ctx context.Context, c config) error {
	model, err := openai.New(openai.Config{BaseURL: c.model, Model: "scripted"})
	if err != nil {
		return err
	}
	// A plain client, of which it is known when a request has left.
	web := &http.Client{Transport: &http.Transport{DialContext: failpoint.Dial((&net.Dialer{}).DialContext)}}
	o := client.Options{HostPort: c.address, Logger: sdklog.NewStructuredLogger(slog.Default())}
	if i := failpoint.Grpc(); i != nil {
		o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(i))
	}
	temporal, err := client.DialContext(ctx, o)
	if err != nil {
		return err
	}
	defer temporal.Close()
	if c.cold {
		worker.SetStickyWorkflowCacheSize(0)
	}
	w := worker.New(temporal, c.queue, worker.Options{
		// As short as the harness has it: that decides how long a run takes, not what comes of it.
		StickyScheduleToStartTimeout: cell.Sticky,
		Interceptors:                 []interceptor.WorkerInterceptor{&marks{}},
	})
	w.RegisterWorkflowWithOptions(turn, workflow.RegisterOptions{Name: workflowTurn})
	w.RegisterActivity(&activities{model: model, http: web, payments: c.payments})
	failpoint.At(failpoint.WorkerReady)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	<-ctx.Done()
	return nil
}
