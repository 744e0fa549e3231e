package tool

import (
	"io"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A brokenInput is the input of a server that is gone; it takes so many bytes before it says so.
type brokenInput int

func (b brokenInput) Write([]byte) (int, error) { return int(b), syscall.EPIPE }
func (brokenInput) Close() error                { return nil }

func TestOnlyACallOfWhichNotAByteLeftWasNotSent(t *testing.T) {
	t.Parallel()
	id, err := jsonrpc.MakeID(float64(1))
	if err != nil {
		t.Fatal(err)
	}
	for taken, unsent := range map[int]bool{0: true, 1: false} {
		out, _ := io.Pipe()
		c := newStdioConn(brokenInput(taken), out, 1<<10, func() {}, func() bool { return false })
		ctx, f, done := newFlight(t.Context())
		if err := c.Write(ctx, &jsonrpc.Request{ID: id, Method: "tools/call"}); err == nil {
			t.Errorf("%d bytes taken: written", taken)
		}
		if f.abandon() != unsent {
			t.Errorf("%d bytes taken: not sent is %v", taken, !unsent)
		}
		done()
	}
}
