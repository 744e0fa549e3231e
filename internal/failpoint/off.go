//go:build !failpoint

package failpoint

import "google.golang.org/grpc"

// Enabled says whether this binary was built with the tag "failpoint".
const Enabled = false

// At marks a place that cannot fail.
func At(string) {}

// AtErr marks a place that can fail; it returns nil.
func AtErr(string) error { return nil }

// Grpc returns the interceptor that marks the continue-as-new places, nil in this build.
func Grpc() grpc.UnaryClientInterceptor { return nil }
