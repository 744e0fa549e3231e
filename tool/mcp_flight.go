package tool

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A flight is one request on its way, as the transport sees it. It rides in the request's context,
// because the SDK can tell neither of the two things that matter here: whether anything was sent, and
// what the answer's exact bytes are (it decodes numbers to float64).
type flight struct {
	cancel context.CancelCauseFunc
	gate   func() error
	state  atomic.Int32
	resume atomic.Int32 // attempts to take up a broken answer stream
	asked  atomic.Int32 // requests of the server, before it answered
	answer atomic.Pointer[answer]
}

// An answer is a server's response to a request.
type answer struct {
	result json.RawMessage
	err    error
}

const (
	flightWaiting int32 = iota
	flightSent
	flightAbandoned
)

type flightKey struct{}

// newFlight returns a context for one request. The caller ends it with the CancelFunc.
func newFlight(ctx context.Context) (context.Context, *flight, context.CancelFunc) {
	gate := gateOf(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{cancel: cancel, gate: gate}
	return context.WithValue(ctx, flightKey{}, f), f, func() { cancel(nil) }
}

func flightOf(ctx context.Context) *flight {
	f, _ := ctx.Value(flightKey{}).(*flight)
	return f
}

// begin is called before the first byte leaves. False means that nobody waits any more, or that it is too late, and the
// request must not be sent.
func (f *flight) begin() bool {
	if f.state.Load() == flightWaiting {
		if err := f.gate(); err != nil && f.abandon() {
			f.fail(err)
			return false
		}
	}
	return f.state.CompareAndSwap(flightWaiting, flightSent) || f.state.Load() == flightSent
}

// unsent takes begin back: not a byte left.
func (f *flight) unsent() { f.state.CompareAndSwap(flightSent, flightWaiting) }

// abandon is called when the caller gives up. True means that nothing was sent and nothing will be.
func (f *flight) abandon() bool {
	f.state.CompareAndSwap(flightWaiting, flightAbandoned)
	return f.state.Load() == flightAbandoned
}

// fail ends this request and no other: the SDK would break the connection for all.
func (f *flight) fail(err error) { f.cancel(&flightError{err}) }

// A flightError went wrong with one request; it says nothing about the connection.
type flightError struct{ err error }

func (e *flightError) Error() string { return e.err.Error() }
func (e *flightError) Unwrap() error { return e.err }

// take keeps what the response says and returns one in its place that is cheap to decode.
func (f *flight) take(r *jsonrpc.Response) *jsonrpc.Response {
	f.answer.CompareAndSwap(nil, &answer{result: r.Result, err: r.Error})
	if r.Error == nil {
		return &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{"content":[],"tools":[]}`)}
	}
	return r
}
