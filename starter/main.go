package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-run/holdfast/tool"
)

// Main runs the command line with args (without the program's name) and returns the exit code. The tools
// are what "holdfast worker" and "holdfast dev" offer besides those of the configuration. An interrupt or
// SIGTERM ends what runs in good order; a second one ends the process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, tools ...tool.Tool) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	app := &App{In: stdin, Out: stdout, Err: stderr, Tools: tools}
	root := NewRoot(app)
	root.SetArgs(args)
	return app.report(ctx, root.ExecuteContext(ctx))
}

// report prints how a command ended and returns its exit code.
func (a *App) report(ctx context.Context, err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &exit):
		if exit.err == nil {
			return exit.code
		}
	case ctx.Err() != nil && isCancelled(err):
		return ExitInterrupted
	}
	message, hint := explain(err)
	fmt.Fprintf(a.Err, "%s %s\n", a.paint(a.Err, red, "error:"), visibleLines(message))
	if hint != "" {
		fmt.Fprintf(a.Err, "%s %s\n", a.paint(a.Err, yellow, "hint:"), visibleLines(hint))
	}
	if exit != nil {
		return exit.code
	}
	return ExitError
}
