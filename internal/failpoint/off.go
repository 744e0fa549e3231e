//go:build !failpoint

package failpoint

import (
	"context"

	"google.golang.org/grpc"
)

// Enabled says whether this binary was built with the tag "failpoint".
const Enabled = false

// At marks a place that cannot fail.
func At(string) {}

// AtErr marks a place that can fail; it returns nil.
func AtErr(string) error { return nil }

// Effect marks a place of a tool's action that can fail, and of a compensation the place of the same name under
// "undo."; it returns nil.
func Effect(string, bool) error { return nil }

// Sent returns a context in which the place is marked when a request over HTTP has left; in this build ctx itself.
func Sent(ctx context.Context, _ string) context.Context { return ctx }

// Grpc returns the interceptor that marks the continue-as-new places, nil in this build.
func Grpc() grpc.UnaryClientInterceptor { return nil }
