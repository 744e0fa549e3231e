package tool

import (
	"context"
	"net"
	"time"
)

type gateKey struct{}

// WithGate returns a context for a [Tool]'s Do. The gate says why nothing of the call may leave any more, nil while
// it may. A tool that is [Gated] asks it after everything that takes its time (a name, a connection, a server that
// starts) and before the first byte.
func WithGate(ctx context.Context, gate func() error) context.Context {
	return context.WithValue(ctx, gateKey{}, gate)
}

// gateOf returns the gate of a context; without one everything may leave.
func gateOf(ctx context.Context) func() error {
	if gate, ok := ctx.Value(gateKey{}).(func() error); ok {
		return gate
	}
	return func() error { return nil }
}

// Gated says whether the calls of a tool ask their gate, as those over HTTP and of MCP servers do. A Go function does
// not: it may send at any moment until its timeout.
func Gated(t Tool) bool {
	switch t.(type) {
	case *httpTool, *mcpTool:
		return true
	}
	return false
}

// bar makes sure that nothing is written to a connection that nothing has been written to.
func bar(conn net.Conn) { _ = conn.SetWriteDeadline(time.Unix(1, 0)) }
