package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Why an exchange ended its own context.
var (
	errAttempt = errors.New("the attempt took too long")
	errIdle    = errors.New("the answer stalled")
	errOver    = errors.New("the exchange is over")
	errTooBig  = errors.New("the answer is too big")
)

// An exchange is one request and what came back, as seen on the wire. It travels through go-openai in the
// request's context. Only the goroutine that asks touches it, except for what is atomic.
type exchange struct {
	cfg      Config
	progress func(int)
	messages []byte // JSON

	cancel    context.CancelCauseFunc
	idle      *time.Timer
	connected atomic.Bool

	status  int // 0 until the headers came
	header  http.Header
	arrived int // bytes of the body

	raw   []byte // a body that was no event stream
	whole bool   // raw is all of a successful answer

	trouble []byte // the error object that ended a stream
	junk    []byte // the first line that belongs in no event stream
	torn    bool   // the last line had no line break
	done    bool   // [DONE] came
	failure *Error // a limit
}

type exchangeKey struct{}

func (x *exchange) begin(ctx context.Context) context.Context {
	ctx, x.cancel = context.WithCancelCause(ctx)
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) },
	})
}

// end closes the connection unless the answer has been read to its end.
func (x *exchange) end() {
	if x.idle != nil {
		x.idle.Stop()
	}
	x.cancel(errOver)
}

// heard counts n more bytes, starts the wait for the next ones anew and tells the caller.
func (x *exchange) heard(n int) error {
	x.arrived += n
	switch {
	case x.idle != nil:
		x.idle.Reset(x.cfg.IdleTimeout)
	case n > 0:
		x.idle = time.AfterFunc(x.cfg.IdleTimeout, func() { x.cancel(errIdle) })
	}
	if x.progress != nil {
		x.progress(x.arrived)
	}
	if x.arrived > x.cfg.MaxAnswer {
		x.failure = badAnswer("the answer is longer than %d bytes; ask for less", x.cfg.MaxAnswer)
		return errTooBig
	}
	return nil
}

// A meter reads the body of an exchange and reports what it reads.
type meter struct {
	x   *exchange
	src io.Reader
}

func (m meter) Read(p []byte) (int, error) {
	n, err := m.src.Read(p)
	if n > 0 && !m.x.done {
		if tooBig := m.x.heard(n); tooBig != nil {
			return n, tooBig
		}
	}
	return n, err
}
