//go:build !failpoint

package failpoint

import (
	"context"
	"io"
	"net"

	"google.golang.org/grpc"
)

// Enabled says whether this binary was built with the tag "failpoint".
const Enabled = false

// At marks a place that cannot fail.
func At(string) {}

// AtErr marks a place that can fail; it returns nil.
func AtErr(string) error { return nil }

// Effect marks a place of a tool's action that can fail, and of a compensation the place of the same name under
// "undo." instead; it returns nil.
func Effect(string, bool) error { return nil }

// EffectAt is [Effect] where it cannot fail.
func EffectAt(string, bool) {}

// Sent returns a context in which the place is marked when a request has left; in this build ctx itself.
func Sent(ctx context.Context, _ string) context.Context { return ctx }

// Leaves marks, in a context of [Sent], that what is written next to a pipe of [Pipe] is the request.
func Leaves(context.Context, io.Writer) {}

// Dial returns dial with connections for [Sent]; in this build dial itself.
func Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return dial
}

// Pipe returns what writes to w, for [Leaves]; in this build w itself.
func Pipe(w io.WriteCloser) io.WriteCloser { return w }

// Grpc returns the interceptor that marks what a worker tells the server, nil in this build.
func Grpc() grpc.UnaryClientInterceptor { return nil }
